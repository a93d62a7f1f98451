package durable

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// OS returns the file system of the operating system.
func OS() FS { return osFS{} }

type osFS struct{}

func (osFS) Create(name string, perm fs.FileMode) (File, error) {
	return openFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, perm)
}

func (osFS) OpenAppend(name string, perm fs.FileMode) (File, error) {
	return openFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, perm)
}

// openFile keeps a nil *os.File from becoming a File that is not nil.
func openFile(name string, flag int, perm fs.FileMode) (File, error) {
	file, err := open(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return file, nil
}

// errSymlink replaces ELOOP, whose text is misleading here.
var errSymlink = errors.New("is a symbolic link, which is not followed here")

// errNoFile reports a pipe or a device in the place of a file: it would keep its reader waiting, or
// never end.
var errNoFile = errors.New("is not a file")

// open follows no symbolic link at the end of a name: this package reads and writes files of its
// own, and a user who could put a link there would have it write elsewhere.
func open(name string, flag int, perm fs.FileMode) (*os.File, error) {
	file, err := os.OpenFile(name, flag|noFollow, perm)
	if err != nil && isLink(err) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errSymlink}
	}
	return file, err
}

func (osFS) ReadFile(name string) ([]byte, error) {
	file, err := open(name, os.O_RDONLY|noWait, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close() // Opened for reading.
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket|fs.ModeDevice) != 0 {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errNoFile}
	}
	return io.ReadAll(file)
}

func (osFS) Rename(from, to string) error              { return renameOS(from, to) }
func (osFS) Remove(name string) error                  { return os.Remove(name) }
func (osFS) Stat(name string) (fs.FileInfo, error)     { return os.Stat(name) }
func (osFS) Mkdir(name string, perm fs.FileMode) error { return os.Mkdir(name, perm) }
func (osFS) SyncDir(name string) error                 { return syncDirOS(name) }

// Trusted implements Truster.
func (osFS) Trusted(name string) error { return trusted(name) }

func (osFS) ReadDir(name string) ([]string, error) {
	entries, err := os.ReadDir(name) // Sorted by name already.
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, entry := range entries {
		names[i] = entry.Name()
	}
	return names, nil
}

// pidWidth pads the process id, so that writing it over an older one needs no new block: a lock can
// be taken on a full disk.
const pidWidth = 20

// lockPerm are the permissions of a lock file, see Lock.
const lockPerm = 0o600

func (osFS) Lock(name string) (io.Closer, error) {
	// Only the owner may open it. flock(2) requires only an open descriptor, even for reading, so
	// any user who may open a lock file may hold the lock. Otherwise a user without any privilege
	// could keep a guard from the journal, and a trial in force.
	file, err := open(name, os.O_RDWR|os.O_CREATE, lockPerm)
	if errors.Is(err, syscall.EROFS) {
		file, err = open(name, os.O_RDONLY, 0) // flock(2) needs no permission to write
	}
	if err != nil {
		return nil, err
	}
	if err := hold(file); err != nil {
		return nil, err
	}
	// Best effort: older versions of linerate created the file open to every user, and another
	// user's file cannot be changed.
	_ = file.Chmod(lockPerm)
	// Best effort: the pid is for people. The kernel holds the lock itself, even on a full disk.
	_, _ = file.WriteAt(fmt.Appendf(nil, "%-*d\n", pidWidth-1, os.Getpid()), 0)
	return file, nil // Closing the file releases the lock.
}

// LockQuietly implements [QuietLocker]. Opening a file that exists, and flock(2), write nothing.
func (osFS) LockQuietly(name string) (io.Closer, error) {
	file, err := open(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	if err := hold(file); err != nil {
		return nil, err
	}
	return file, nil
}

// hold locks an open lock file, and closes it if that fails.
func hold(file *os.File) error {
	err := lockFile(file)
	if err == nil {
		return nil
	}
	pid := readPID(file)
	_ = file.Close() // Nothing was written through it.
	if errors.Is(err, ErrLocked) {
		return &LockedError{Path: file.Name(), PID: pid}
	}
	return &fs.PathError{Op: "lock", Path: file.Name(), Err: err}
}

// readPID returns the id in a lock file, or 0 if it has none.
func readPID(file *os.File) int {
	buf := make([]byte, pidWidth)
	n, _ := file.ReadAt(buf, 0) // A short file causes an error, but its bytes are in buf.
	pid, err := strconv.Atoi(strings.TrimSpace(string(buf[:n])))
	if err != nil || pid < 0 {
		return 0
	}
	return pid
}
