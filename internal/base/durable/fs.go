package durable

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"syscall"
)

// ErrLocked reports that another process holds a lock; the actual error is a *LockedError.
var ErrLocked = errors.New("locked by another process")

// FS is the part of a file system that this package needs. Names are paths of the operating system.
// Errors are those of package os: errors.Is with fs.ErrNotExist, fs.ErrExist and fs.ErrPermission
// works for all implementations.
type FS interface {
	// Create opens a new or emptied file for writing.
	Create(name string, perm fs.FileMode) (File, error)
	// OpenAppend opens a file, creating it if necessary, for writing at its end.
	OpenAppend(name string, perm fs.FileMode) (File, error)
	// ReadFile returns the whole content.
	ReadFile(name string) ([]byte, error)
	// Rename renames a file and replaces any file with the new name.
	Rename(from, to string) error
	// Remove removes a file or an empty directory.
	Remove(name string) error
	// ReadDir returns the names in a directory, sorted.
	ReadDir(name string) ([]string, error)
	// Stat describes a file.
	Stat(name string) (fs.FileInfo, error)
	// Mkdir creates one directory.
	Mkdir(name string, perm fs.FileMode) error
	// SyncDir makes the names in a directory survive power loss.
	SyncDir(name string) error
	// Lock takes an exclusive lock. Close, or any end of the process, releases it. The file holds
	// the decimal process id of the last holder and remains; only its owner may open it. If another
	// process holds the lock, the error is a *LockedError; Lock does not wait.
	Lock(name string) (io.Closer, error)
}

// QuietLocker is a file system that can also take a lock without writing to its file, which must
// exist: for storage that does not answer. The file then names an earlier holder.
type QuietLocker interface {
	LockQuietly(name string) (io.Closer, error)
}

// File is an open file for writing. A failed Sync is final: the data it should have saved may be
// lost, and a later successful Sync proves nothing.
type File interface {
	io.Writer
	// Sync makes the content survive power loss.
	Sync() error
	// Truncate truncates the file to size bytes.
	Truncate(size int64) error
	io.Closer
}

// LockedError names the holder of a lock.
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

// Replace replaces the content of the file at path atomically: a reader, and the disk after a power
// loss at any moment, has the old content or the new one. It writes path.tmp in the same directory,
// syncs, renames, and syncs the directory. If it returns nil, the new content is safe. If it
// returns an error, the old content remains, unless only the directory sync failed: then a power
// loss may leave either.
func Replace(fsys FS, path string, data []byte, perm fs.FileMode) error {
	temp := path + ".tmp"
	// After a crash between rename and directory sync, a leftover may be the very file that path
	// names: truncating it would be fatal, unlinking it is not.
	if err := fsys.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("replace %s: %w", path, err)
	}
	// Content before name: if the rename were on disk first, a power loss would leave the name with
	// an empty or half-written file. Some file systems choose this order automatically (ext4 with
	// auto_da_alloc); none promises it.
	if err := writeSynced(fsys, temp, data, perm); err != nil {
		// Best effort: a leftover is harmless, since the next Replace of this path begins by
		// removing it.
		_ = fsys.Remove(temp)
		return fmt.Errorf("replace %s: %w", path, err)
	}
	if err := fsys.Rename(temp, path); err != nil {
		_ = fsys.Remove(temp) // As above.
		return fmt.Errorf("replace %s: %w", path, err)
	}
	// Otherwise the rename may be lost, and Replace would have reported content as safe that a
	// power loss removes.
	if err := fsys.SyncDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("replace %s: sync directory: %w", path, err)
	}
	return nil
}

// writeSynced creates a file. When it returns nil, the content is on disk, but the name may not be.
func writeSynced(fsys FS, name string, data []byte, perm fs.FileMode) error {
	file, err := fsys.Create(name, perm)
	if err != nil {
		return err
	}
	if _, err = file.Write(data); err == nil {
		err = file.Sync()
	}
	if closeErr := file.Close(); err == nil {
		// NFS and quota systems may report a full disk only at close(2).
		err = closeErr
	}
	return err
}

// MkdirAll creates a directory and its missing parents, and syncs each in its own parent, so that a
// power loss cannot remove it. It also syncs the deepest existing one: its creator may have ended
// before the sync.
func MkdirAll(fsys FS, path string, perm fs.FileMode) error {
	parent := filepath.Dir(path)
	info, err := fsys.Stat(path)
	if err == nil {
		if !info.IsDir() {
			return &fs.PathError{Op: "mkdir", Path: path, Err: errors.New("is not a directory")}
		}
		if err := fsys.SyncDir(parent); err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS) {
			return err
		}
		return nil // A parent that cannot be opened cannot contain a new directory.
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if parent != path {
		if err := MkdirAll(fsys, parent, perm); err != nil {
			return err
		}
	}
	// Another process may have created it since Stat; then both sync it, which is harmless.
	if err := fsys.Mkdir(path, perm); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return fsys.SyncDir(parent)
}
