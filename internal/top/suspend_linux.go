package top

import "golang.org/x/sys/unix"

// canSuspend reports whether a shell would notice that this program stops and could continue it.
// The leader of a session, such as a program that ssh starts instead of a shell, has no shell: the
// kernel does not stop it, and waiting for it to continue would never end.
func canSuspend() bool {
	session, err := unix.Getsid(0)
	return err == nil && session != unix.Getpgrp()
}
