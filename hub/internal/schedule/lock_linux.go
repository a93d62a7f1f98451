package schedule

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// held reports whether a process has locked a file with flock(2). It reads /proc/locks, which every
// user may read, because the file itself may be for its owner alone.
func held(path string) bool {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return false
	}
	b, err := os.ReadFile("/proc/locks")
	if err != nil {
		return false
	}
	file := fmt.Sprintf("%02x:%02x:%d", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino)
	return lockedIn(string(b), file)
}

// lockedIn reports whether /proc/locks has a lock on a file, given as MAJOR:MINOR:INODE. Lines with
// an arrow are waiting processes.
func lockedIn(locks, file string) bool {
	for line := range strings.Lines(locks) {
		f := strings.Fields(line)
		if len(f) >= 6 && f[1] == "FLOCK" && f[5] == file {
			return true
		}
	}
	return false
}
