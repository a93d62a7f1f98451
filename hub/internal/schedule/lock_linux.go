package schedule

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// held tells whether a process has locked a file with flock(2), by what the kernel shows everybody:
// the file itself may be for its owner alone.
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

// lockedIn finds a file, as MAJOR:MINOR:INODE, in the text of /proc/locks. Lines of those who wait
// for a lock have an arrow.
func lockedIn(locks, file string) bool {
	for line := range strings.Lines(locks) {
		f := strings.Fields(line)
		if len(f) >= 6 && f[1] == "FLOCK" && f[5] == file {
			return true
		}
	}
	return false
}
