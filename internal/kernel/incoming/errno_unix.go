//go:build !windows

package incoming

import "syscall"

// ofPeer are errors of one connection or of one datagram.
var ofPeer = []syscall.Errno{
	syscall.ECONNABORTED, syscall.ECONNRESET, syscall.ECONNREFUSED, syscall.EPROTO, syscall.ENOPROTOOPT,
	syscall.EOPNOTSUPP, syscall.EHOSTDOWN, syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.ETIMEDOUT,
	syscall.EMSGSIZE, syscall.EACCES, syscall.EINTR,
}

// ofSocket are errors that no later call survives.
var ofSocket = []syscall.Errno{syscall.EBADF, syscall.ENOTSOCK, syscall.EINVAL, syscall.EFAULT, syscall.ENOSYS}
