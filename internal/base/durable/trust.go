package durable

import (
	"errors"
	"fmt"
	"io/fs"
)

// Truster is a file system that knows who may replace a file.
type Truster interface {
	// Trusted returns nil when only this process's user and root can change or replace the file or
	// directory of that name, or any directory on the way to it. Otherwise the error is a
	// *TrustError. On a system that does not report this, it is nil.
	Trusted(name string) error
}

// SafeState returns nil unless another user can change one of these files or directories of a state
// directory, or replace it. A file that does not exist is trusted, and so is every file of a file
// system that does not know who may replace it. The error is an fs.ErrPermission.
func SafeState(fsys FS, names ...string) error {
	disk, ok := fsys.(Truster)
	if !ok {
		return nil
	}
	for _, name := range names {
		var unsafe *TrustError
		switch err := disk.Trusted(name); {
		case errors.As(err, &unsafe):
			return fmt.Errorf("state directory is not safe: %w", err)
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("check who may change the state directory: %w", err)
		}
	}
	return nil
}

// TrustError names what another user can change. It is an fs.ErrPermission.
type TrustError struct {
	Path   string
	Reason string
}

func (e *TrustError) Error() string { return fmt.Sprintf("%s: %s", e.Path, e.Reason) }

// Is makes errors.Is(err, fs.ErrPermission) true.
func (e *TrustError) Is(target error) bool { return target == fs.ErrPermission }

// Hint returns what the user can do.
func (e *TrustError) Hint() string {
	return "only root and the user who runs linerate may be able to change it: " +
		"see chown(1) and chmod(1), or use another place"
}
