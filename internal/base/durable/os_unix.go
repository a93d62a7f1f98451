//go:build unix && !aix

package durable

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

const (
	noFollow = unix.O_NOFOLLOW
	noWait   = unix.O_NONBLOCK // a pipe without a writer opens at once
)

// isLink reports the error of open(2) for a symbolic link: ELOOP, and EMLINK on FreeBSD.
func isLink(err error) bool { return errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EMLINK) }

// lockFile uses flock(2). The lock belongs to the open file, not to the process, so two Locks
// inside one process exclude each other too, and closing another descriptor of the same file does
// not release it, as it would with fcntl(2) locks.
func lockFile(file *os.File) error {
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		// The Go runtime preempts by signals, and flock(2) may be interrupted even if it does not
		// wait.
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EWOULDBLOCK):
			return ErrLocked
		default:
			return err
		}
	}
}

func renameOS(from, to string) error { return os.Rename(from, to) }

func syncDirOS(name string) error {
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	defer dir.Close() // Opened for reading: closing loses no data.
	err = dir.Sync()
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		// Some FUSE and CIFS mounts cannot sync a directory and report that. They offer no better
		// guarantee.
		return nil
	}
	return err
}
