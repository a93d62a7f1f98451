//go:build unix

package sys

import (
	"fmt"
	"os"
	"syscall"
)

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
