package sys

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Getsockopt asks for a socket option whose value is a structure. The buffer holds the question,
// where the option has one, and then the answer; it returns the answer's length in bytes.
func Getsockopt(fd, level, option int, value []byte) (int, error) {
	if len(value) == 0 {
		return 0, unix.EINVAL
	}
	size := uint32(len(value))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), uintptr(level), uintptr(option),
		uintptr(unsafe.Pointer(&value[0])), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return 0, errno
	}
	return int(min(size, uint32(len(value)))), nil
}
