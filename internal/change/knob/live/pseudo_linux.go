package live

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/change/knob"
)

// One page is all that an attribute of sysfs holds (Documentation/filesystems/sysfs.rst); a list of
// CPUs in /proc may take more.
const pseudoBuffer = 64 << 10

// readPseudo returns the text of a small file of sysfs or /proc, in an open directory
// (unix.AT_FDCWD for an absolute path).
//
// If reading a file that was opened returns ENOENT, the driver reports that the file means nothing
// here (xps_cpus of a NIC with one queue); a device that is removed at this moment returns ENODEV.
func readPseudo(dir int, path string) (knob.Value, error) {
	fd, err := retry(func() (int,
		error) {
		return unix.Openat(dir, path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	})
	if err != nil {
		return "", pseudoError(dir, path, err, false)
	}
	defer func() { _ = unix.Close(fd) }() // opened for reading: nothing to lose
	buf := make([]byte, pseudoBuffer)
	n, err := retry(func() (int, error) { return unix.Pread(fd, buf, 0) })
	if err != nil {
		return "", deviceError(err)
	}
	return knob.Value(buf[:n]), nil
}

// writePseudo sets such a file with one call: every write is a value of its own for the kernel.
func writePseudo(dir int, path string, v knob.Value) error {
	fd, err := retry(func() (int,
		error) {
		return unix.Openat(dir, path, unix.O_WRONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	})
	if err != nil {
		return pseudoError(dir, path, err, true)
	}
	text := []byte(v + "\n")
	n, err := retry(func() (int, error) { return unix.Write(fd, text) })
	if closeErr := unix.Close(fd); err == nil {
		err = closeErr
	}
	switch {
	case err != nil:
		return deviceError(err)
	case n < len(text)-1:
		return &knob.RangeError{Value: v,
			Allowed: fmt.Sprintf("a value that the kernel takes whole; it took %d of %d bytes", n, len(text))}
	}
	return nil
}

// checkPseudo returns what opening such a file for writing would answer, without opening it.
func checkPseudo(dir int, path string) error {
	if err := unix.Faccessat(dir, path, unix.W_OK, 0); err != nil {
		return pseudoError(dir, path, err, true)
	}
	return nil
}

// pseudoError distinguishes a file that no process may write, or read, from one that this process
// may not.
//
// A file of mode 0444 is read-only for every process, even root with all capabilities; one of mode
// 0644 is refused for lack of a capability, and "run it as root" helps. Files of mode 0200
// (route/flush) are commands, not settings; files of mode 0400 are readable by root only.
func pseudoError(dir int, path string, err error, writing bool) error {
	switch {
	case errors.Is(err, unix.EROFS):
		return fmt.Errorf("%w: %w", knob.ErrReadOnly, err)
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		const anyWrite, anyRead = 0o222, 0o444
		var st unix.Stat_t
		switch {
		case unix.Fstatat(dir, path, &st, 0) != nil:
		case writing && st.Mode&anyWrite == 0:
			return fmt.Errorf("%w: %w", knob.ErrReadOnly, err)
		case !writing && st.Mode&anyRead == 0:
			return fmt.Errorf("%w: can only be written", knob.ErrNotSupported)
		}
	}
	return err
}

// deviceError sorts what the kernel answers behind an open file into the answers of this package.
//
// EOVERFLOW is a mask with a CPU that the kernel has no room for (lib/bitmap-str.c).
func deviceError(err error) error {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return err
	}
	switch errno {
	case unix.ENODEV, unix.ENXIO:
		return fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	case unix.EOPNOTSUPP, unix.ENOSYS:
		return fmt.Errorf("%w: %w", knob.ErrNotSupported, err)
	case unix.ENOENT:
		// The text only: the errno itself is an fs.ErrNotExist, but the file exists.
		return fmt.Errorf("%w: the device has the file and nothing behind it (%s)", knob.ErrNotSupported, errno)
	case unix.EOVERFLOW, unix.E2BIG:
		return fmt.Errorf("%w: %w", knob.ErrInvalid, err)
	}
	return err
}
