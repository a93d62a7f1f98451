//go:build unix

package durable

import (
	"io/fs"
	"syscall"
)

// Owner returns the numbers of the user and the group that own a file. They are not known for a
// file that does not come from the operating system, nor on systems without such numbers.
func Owner(info fs.FileInfo) (uid, gid int, known bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return int(stat.Uid), int(stat.Gid), true
}
