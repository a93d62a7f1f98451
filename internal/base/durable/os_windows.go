package durable

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockOffset is far behind the content: Windows locks are mandatory, and the pid in the file has to
// stay readable for others.
const lockOffset = 1 << 30

func lockFile(file *os.File) error {
	region := windows.Overlapped{Offset: lockOffset}
	// Windows drops the lock when the handle is closed or its process ends, but not at once
	// (LockFileEx, Remarks): a start right after a kill may still meet it.
	err := windows.LockFileEx(windows.Handle(file.Fd()),
		windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &region)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return ErrLocked
	}
	return err
}

// renameOS writes the rename through to the disk, because there is no directory sync that could do
// it later.
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

// syncDirOS has nothing to do: NTFS journals its directories, and renames are written through.
func syncDirOS(string) error { return nil }
