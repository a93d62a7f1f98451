package schedule

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/kernel/procfs"
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
	major, minor := unix.Major(uint64(st.Dev)), unix.Minor(uint64(st.Dev))
	// The list has the device of the file system. Files of btrfs and overlay have other ones.
	var x unix.Statx_t
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err == nil && unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_MNT_ID, &x) == nil && x.Mask&unix.STATX_MNT_ID != 0 {
		all, _ := procfs.ParseMountInfo(mounts) // those before a line that is malformed
		for _, m := range all {
			if m.ID == x.Mnt_id {
				major, minor = m.Major, m.Minor
			}
		}
	}
	return lockedIn(string(b), fmt.Sprintf("%02x:%02x:%d", major, minor, st.Ino))
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
