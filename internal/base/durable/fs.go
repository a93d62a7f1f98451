package durable

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
)

// ErrLocked says that another process holds a lock; the error in hand is a *LockedError.
var ErrLocked = errors.New("locked by another process")

// FS is a file system as this package needs it. Names are paths of the operating system. Errors are
// those of package os: errors.Is with fs.ErrNotExist, fs.ErrExist and fs.ErrPermission works for
// all implementations.
type FS interface {
	// Create opens a file for writing, new or cut to nothing.
	Create(name string, perm fs.FileMode) (File, error)
	// OpenAppend opens a file, new or with its content, for writing at its end.
	OpenAppend(name string, perm fs.FileMode) (File, error)
	// ReadFile gives the whole content.
	ReadFile(name string) ([]byte, error)
	// Rename gives a file another name, replacing what had it.
	Rename(from, to string) error
	// Remove takes a name, or an empty directory, away.
	Remove(name string) error
	// ReadDir gives the names in a directory, sorted.
	ReadDir(name string) ([]string, error)
	// Stat describes a file.
	Stat(name string) (fs.FileInfo, error)
	// Mkdir makes one directory.
	Mkdir(name string, perm fs.FileMode) error
	// SyncDir makes the names in a directory survive power loss.
	SyncDir(name string) error
	// Lock takes an exclusive lock that Close, or the end of the process by any means, releases.
	// The file holds the decimal process id of the last holder and stays; only its owner may open
	// it. A lock held elsewhere is a *LockedError at once; there is no waiting.
	Lock(name string) (io.Closer, error)
}

// File is an open file for writing. A failed Sync is final: what it should have saved may be lost,
// and another Sync that succeeds proves nothing.
type File interface {
	io.Writer
	// Sync makes the content survive power loss.
	Sync() error
	// Truncate cuts the file to size bytes.
	Truncate(size int64) error
	io.Closer
}

// LockedError says who holds a lock.
type LockedError struct {
	Path string
	PID  int // 0: not known
}

func (e *LockedError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("lock %s: %v", e.Path, ErrLocked)
	}
	return fmt.Sprintf("lock %s: %v (pid %d)", e.Path, ErrLocked, e.PID)
}

// Is makes errors.Is(err, ErrLocked) true.
func (e *LockedError) Is(target error) bool { return target == ErrLocked }

// Replace gives the file at path new content, atomically: a reader, and the disk after power loss
// at any moment, has the old content or the new one. It writes path.tmp beside it, syncs, renames
// and syncs the directory. When it returns nil the new content is safe; when it returns an error
// the old content is in place, unless only the directory sync failed: then either may be there
// after power loss.
func Replace(fsys FS, path string, data []byte, perm fs.FileMode) error {
	temp := path + ".tmp"
	// A leftover may, after a crash between rename and directory sync, be the very file that path
	// names: emptying it would be fatal, unlinking it is not.
	if err := fsys.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("replace %s: %w", path, err)
	}
	// Content before name: if the rename were on disk first, power loss would leave the name with
	// an empty or half-written file. Some file systems guess this order for us (ext4 with
	// auto_da_alloc); none promises it.
	if err := writeSynced(fsys, temp, data, perm); err != nil {
		// Best effort: a leftover does no harm, the next Replace of this path begins by removing
		// it.
		_ = fsys.Remove(temp)
		return fmt.Errorf("replace %s: %w", path, err)
	}
	if err := fsys.Rename(temp, path); err != nil {
		_ = fsys.Remove(temp) // As above.
		return fmt.Errorf("replace %s: %w", path, err)
	}
	// Without this the rename may be lost, and Replace would have reported as safe what is not
	// there after power loss.
	if err := fsys.SyncDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("replace %s: sync directory: %w", path, err)
	}
	return nil
}

// writeSynced creates a file, and has its content on disk when it returns nil. The name is not yet
// safe.
func writeSynced(fsys FS, name string, data []byte, perm fs.FileMode) error {
	file, err := fsys.Create(name, perm)
	if err != nil {
		return err
	}
	if _, err = file.Write(data); err == nil {
		err = file.Sync()
	}
	if closeErr := file.Close(); err == nil {
		// NFS and quota systems tell of a full disk as late as at close(2).
		err = closeErr
	}
	return err
}

// MkdirAll makes a directory and its missing parents, each synced into its own parent so that power
// loss cannot take it away. That holds also for the deepest one that is there already: whoever made
// it may have died before its sync.
func MkdirAll(fsys FS, path string, perm fs.FileMode) error {
	parent := filepath.Dir(path)
	info, err := fsys.Stat(path)
	if err == nil {
		if !info.IsDir() {
			return &fs.PathError{Op: "mkdir", Path: path, Err: errors.New("is not a directory")}
		}
		if err := fsys.SyncDir(parent); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
		return nil // A parent that may not even be opened is not one in which we made something.
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if parent != path {
		if err := MkdirAll(fsys, parent, perm); err != nil {
			return err
		}
	}
	// Another process may have made it since Stat; then both sync it, which harms nothing.
	if err := fsys.Mkdir(path, perm); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return fsys.SyncDir(parent)
}
