package durable

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockOffset is far after the content: Windows locks are mandatory, and other processes must be
// able to read the pid in the file.
const lockOffset = 1 << 30

func lockFile(file *os.File) error {
	region := windows.Overlapped{Offset: lockOffset}
	// Windows releases the lock when the handle is closed or its process ends, but with a delay
	// (LockFileEx, Remarks): a process started right after a kill may still encounter it.
	err := windows.LockFileEx(windows.Handle(file.Fd()),
		windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &region)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return ErrLocked
	}
	return err
}

// renameOS writes the rename through to the disk, because no later directory sync could.
func renameOS(from, to string) error {
	source, err := windows.UTF16PtrFromString(from)
	if err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	target, err := windows.UTF16PtrFromString(to)
	if err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	if err := windows.MoveFileEx(source, target,
		windows.MOVEFILE_REPLACE_EXISTING|windows.MOVEFILE_WRITE_THROUGH); err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}

// syncDirOS does nothing: NTFS journals its directories, and renames are written through.
func syncDirOS(string) error { return nil }

const noFollow, noWait = 0, 0 // this system has no such flags

func isLink(error) bool { return false }

// trusted does not know how this system protects files.
func trusted(string) error { return nil }
