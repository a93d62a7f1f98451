package sys

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// kmsgRecord is the most that one record of the kernel's log takes (CONSOLE_EXT_LOG_MAX).
const kmsgRecord = 8192

// KernelLog passes the given number of records of the kernel's log at most, oldest first, to each,
// and returns without waiting for more (Documentation/ABI/testing/dev-kmsg). The bytes are valid
// until each returns. Reading needs CAP_SYSLOG where kernel.dmesg_restrict is 1.
func KernelLog(most int, each func(record []byte)) error {
	fd, err := unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return fmt.Errorf("read kernel log: %w", err)
	}
	defer unix.Close(fd)
	// A container may have another file in this place, which could be endless or block.
	var s unix.Stat_t
	if err := unix.Fstat(fd, &s); err != nil || s.Mode&unix.S_IFMT != unix.S_IFCHR || s.Rdev != unix.Mkdev(1, 11) {
		return &UnsupportedError{Feature: "kernel log at /dev/kmsg"}
	}
	buffer := make([]byte, kmsgRecord)
	for range most {
		n, err := unix.Read(fd, buffer)
		switch {
		case errors.Is(err, unix.EPIPE), errors.Is(err, unix.EINVAL), errors.Is(err, unix.EINTR):
			continue // the record was overwritten meanwhile, or is longer than any should be
		case errors.Is(err, unix.EAGAIN), err == nil && n == 0:
			return nil
		case err != nil:
			return fmt.Errorf("read kernel log: %w", err)
		}
		each(buffer[:n])
	}
	return nil
}
