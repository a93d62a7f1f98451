package durable

import (
	"io"
	"io/fs"
	"sync"
	"syscall"
)

// Op is one operation that a Faulty file system is about to perform.
type Op struct {
	N    int    // counted from 0 over the life of the wrapper
	Kind OpKind // the kind of operation
	Path string // of the file, or the old name of a rename
}

// OpKind names a kind of operation.
type OpKind string

// The kinds. Closing and releasing do not count: they never fail here.
const (
	OpCreate   OpKind = "create"
	OpAppend   OpKind = "open-append"
	OpReadFile OpKind = "read-file"
	OpRename   OpKind = "rename"
	OpRemove   OpKind = "remove"
	OpReadDir  OpKind = "read-dir"
	OpStat     OpKind = "stat"
	OpMkdir    OpKind = "mkdir"
	OpSyncDir  OpKind = "sync-dir"
	OpLock     OpKind = "lock"
	OpWrite    OpKind = "write"
	OpSync     OpKind = "sync"
	OpTruncate OpKind = "truncate"
)

// Grows reports whether the operation needs disk space, so that a full disk refuses it.
func (k OpKind) Grows() bool {
	return k == OpCreate || k == OpAppend || k == OpMkdir || k == OpWrite
}

// Faulty is a file system in which a hook decides which operations fail. A failed write has written
// the first half of its data. A failed sync has saved nothing.
type Faulty struct {
	fsys FS
	hook func(Op) error

	mu sync.Mutex
	n  int
}

// NewFaulty wraps fsys. The hook receives every operation before it runs. If the hook returns an
// error, that is the result; otherwise the operation runs. The hook may also only observe, or clone
// a Mem at that moment. Calls of the hook do not overlap.
func NewFaulty(fsys FS, hook func(Op) error) *Faulty {
	return &Faulty{fsys: fsys, hook: hook}
}

// FailAt returns a hook that makes only operation n fail, with err.
func FailAt(n int, err error) func(Op) error {
	return func(op Op) error {
		if op.N == n {
			return err
		}
		return nil
	}
}

// FullFrom returns a hook that behaves like a disk that is full from operation n on: operations
// that need space fail with ENOSPC.
func FullFrom(n int) func(Op) error {
	return func(op Op) error {
		if op.N >= n && op.Kind.Grows() {
			return syscall.ENOSPC
		}
		return nil
	}
}

// before counts an operation and calls the hook.
func (f *Faulty) before(kind OpKind, path string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	op := Op{N: f.n, Kind: kind, Path: path}
	f.n++
	// Wrapped as package os would, so that errors.Is on ENOSPC or EIO works for simulated and real
	// failures.
	if err := f.hook(op); err != nil {
		return &fs.PathError{Op: string(kind), Path: path, Err: err}
	}
	return nil
}

// Operations returns the number of operations so far.
func (f *Faulty) Operations() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.n
}

// Create implements FS.
func (f *Faulty) Create(name string, perm fs.FileMode) (File, error) {
	if err := f.before(OpCreate, name); err != nil {
		return nil, err
	}
	return f.wrap(name)(f.fsys.Create(name, perm))
}

// OpenAppend implements FS.
func (f *Faulty) OpenAppend(name string, perm fs.FileMode) (File, error) {
	if err := f.before(OpAppend, name); err != nil {
		return nil, err
	}
	return f.wrap(name)(f.fsys.OpenAppend(name, perm))
}

func (f *Faulty) wrap(name string) func(File, error) (File, error) {
	return func(file File, err error) (File, error) {
		if err != nil {
			return nil, err
		}
		return &faultyFile{fsys: f, name: name, file: file}, nil
	}
}

// ReadFile implements FS.
func (f *Faulty) ReadFile(name string) ([]byte, error) {
	if err := f.before(OpReadFile, name); err != nil {
		return nil, err
	}
	return f.fsys.ReadFile(name)
}

// Rename implements FS.
func (f *Faulty) Rename(from, to string) error {
	if err := f.before(OpRename, from); err != nil {
		return err
	}
	return f.fsys.Rename(from, to)
}

// Remove implements FS.
func (f *Faulty) Remove(name string) error {
	if err := f.before(OpRemove, name); err != nil {
		return err
	}
	return f.fsys.Remove(name)
}

// ReadDir implements FS.
func (f *Faulty) ReadDir(name string) ([]string, error) {
	if err := f.before(OpReadDir, name); err != nil {
		return nil, err
	}
	return f.fsys.ReadDir(name)
}

// Stat implements FS.
func (f *Faulty) Stat(name string) (fs.FileInfo, error) {
	if err := f.before(OpStat, name); err != nil {
		return nil, err
	}
	return f.fsys.Stat(name)
}

// Mkdir implements FS.
func (f *Faulty) Mkdir(name string, perm fs.FileMode) error {
	if err := f.before(OpMkdir, name); err != nil {
		return err
	}
	return f.fsys.Mkdir(name, perm)
}

// SyncDir implements FS.
func (f *Faulty) SyncDir(name string) error {
	if err := f.before(OpSyncDir, name); err != nil {
		return err
	}
	return f.fsys.SyncDir(name)
}

// Lock implements FS.
func (f *Faulty) Lock(name string) (io.Closer, error) {
	if err := f.before(OpLock, name); err != nil {
		return nil, err
	}
	return f.fsys.Lock(name)
}

// faultyFile is an open file of a Faulty.
type faultyFile struct {
	fsys *Faulty
	name string
	file File
}

func (f *faultyFile) Write(data []byte) (int, error) {
	if err := f.fsys.before(OpWrite, f.name); err != nil {
		// Half of the data, because that is the hard case: a torn frame that later opens must find
		// and truncate.
		n, writeErr := f.file.Write(data[:len(data)/2])
		if writeErr != nil {
			return n, writeErr
		}
		return n, err
	}
	return f.file.Write(data)
}

func (f *faultyFile) Sync() error {
	if err := f.fsys.before(OpSync, f.name); err != nil {
		return err
	}
	return f.file.Sync()
}

func (f *faultyFile) Truncate(size int64) error {
	if err := f.fsys.before(OpTruncate, f.name); err != nil {
		return err
	}
	return f.file.Truncate(size)
}

func (f *faultyFile) Close() error { return f.file.Close() }
