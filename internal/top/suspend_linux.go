package top

import "golang.org/x/sys/unix"

// canSuspend tells whether a shell would notice that this program stops and could let it go on. The
// leader of a session, such as what ssh starts instead of a shell, has nobody for that: the kernel
// does not stop it, and whoever waited for it to go on would wait forever.
func canSuspend() bool {
	session, err := unix.Getsid(0)
	return err == nil && session != unix.Getpgrp()
}
