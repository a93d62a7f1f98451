package scratch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/linerate/linerate/internal/base/durable"
)

// Directory is a temporary directory of this run.
type Directory struct {
	Path string
	lock io.Closer
}

const (
	// prefix begins the names of all directories; the kind and a number follow.
	prefix = "linerate-"
	// lockName is the file that a run holds as long as it lives. No other file of this project has
	// the name: a directory with the lock of a journal may be a user's own.
	lockName = "run.lock"
)

// New makes a directory below the system's directory for temporary files; see [In].
func New(kind string) (*Directory, error) { return In(os.TempDir(), kind) }

// In makes a directory below parent. The kind becomes part of its name. It removes those of runs
// that were killed before they could.
func In(parent, kind string) (*Directory, error) {
	removeDead(parent, kind)
	for {
		dir, err := os.MkdirTemp(parent, prefix+kind+"-")
		if err != nil {
			return nil, fmt.Errorf("make temporary directory: %w", err)
		}
		name := filepath.Join(dir, lockName)
		lock, err := durable.OS().Lock(name)
		if err == nil {
			// Another run may have taken it for one that was left, until it was locked.
			if _, err := os.Lstat(name); err == nil {
				return &Directory{dir, lock}, nil
			}
			_ = lock.Close() // nothing was written
			continue
		}
		if errors.Is(err, durable.ErrLocked) || errors.Is(err, os.ErrNotExist) {
			continue
		}
		_ = os.RemoveAll(dir) // the first error explains
		return nil, fmt.Errorf("make temporary directory: %w", err)
	}
}

// Close removes the directory. Further calls do nothing.
func (d *Directory) Close() error {
	if d.lock == nil {
		return nil
	}
	lock := d.lock
	d.lock = nil
	return remove(d.Path, lock)
}

// remove removes a directory and its lock, which is held. Killed at any moment, it leaves what the
// next run removes.
func remove(dir string, lock io.Closer) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if e.Name() != lockName {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	if err != nil {
		return errors.Join(err, lock.Close()) // the lock keeps the rest for the next run
	}
	if runtime.GOOS == "windows" { // which removes no open file
		return errors.Join(lock.Close(), os.RemoveAll(dir))
	}
	name := filepath.Join(dir, lockName)
	err = os.Remove(name)
	if err == nil {
		if err = os.Remove(dir); err != nil { // a program of the run still writes
			err = errors.Join(err, os.WriteFile(name, nil, 0o600))
		}
	}
	return errors.Join(err, lock.Close())
}

// removeDead removes the directories of dead runs. What cannot be removed stays for the next run.
func removeDead(parent, kind string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return // making a directory there fails too
	}
	for _, e := range entries {
		if ours(e.Name()) {
			// Other programs may have just made a directory with a similar name.
			removeIfDead(filepath.Join(parent, e.Name()), strings.HasPrefix(e.Name(), prefix+kind+"-"))
		}
	}
}

// ours reports whether a name is one that [In] gives.
func ours(name string) bool {
	rest, found := strings.CutPrefix(name, prefix)
	dash := strings.LastIndexByte(rest, '-')
	return found && dash > 0 && dash < len(rest)-1 && strings.Trim(rest[dash+1:], "0123456789") == ""
}

// removeIfDead removes a directory with a lock that no run holds, and an empty one if asked to.
func removeIfDead(dir string, empty bool) {
	// A link names what another user chose, and a lock in another user's directory can be a pipe
	// without a writer.
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return
	}
	if uid, _, known := durable.Owner(info); !known || uid != os.Geteuid() {
		return
	}
	quiet, ok := durable.OS().(durable.QuietLocker)
	if !ok {
		return
	}
	lock, err := quiet.LockQuietly(filepath.Join(dir, lockName))
	switch {
	case errors.Is(err, os.ErrNotExist):
		if empty {
			_ = os.Remove(dir) // fails unless it is empty
		}
	case err == nil && named(dir):
		_ = lock.Close() // nothing was written
	case err == nil:
		_ = remove(dir, lock)
	}
}

// named reports whether a process has a directory in its command line, or may have.
func named(dir string) bool {
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range lines {
		line, err := os.ReadFile(name)
		if err == nil && strings.Contains(string(line), dir) { // an error is a process that has ended
			return true
		}
	}
	return err != nil || len(lines) == 0
}
