package native

import "syscall"

// How kernels refuse a value: FreeBSD answers ESRCH for an algorithm that is not loaded.
const (
	errInvalidArgument = syscall.EINVAL
	errNoSuchProcess   = syscall.ESRCH
)
