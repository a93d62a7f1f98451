//go:build unix

package sys

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// Owner returns the user and the group that own a file.
func Owner(info fs.FileInfo) (uid, gid int, known bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return int(stat.Uid), int(stat.Gid), true
}

// Become gives up the rights of root for those of another user and group, in all threads and for
// good.
func Become(uid, gid int) error {
	if err := syscall.Setgroups([]int{gid}); err != nil {
		return fmt.Errorf("become user %d: %w", uid, os.NewSyscallError("setgroups", err))
	}
	if err := syscall.Setgid(gid); err != nil {
		return fmt.Errorf("become user %d: %w", uid, os.NewSyscallError("setgid", err))
	}
	if err := syscall.Setuid(uid); err != nil {
		return fmt.Errorf("become user %d: %w", uid, os.NewSyscallError("setuid", err))
	}
	return nil
}
