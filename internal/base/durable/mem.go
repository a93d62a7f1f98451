package durable

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Mem is a file system in memory that tracks what a power loss would preserve. It is safe for
// concurrent use.
type Mem struct {
	mu    sync.Mutex
	root  *memNode
	locks map[string]bool
}

// NewMem returns a memory file system with an empty, synced root directory.
func NewMem() *Mem {
	return &Mem{root: newMemDir(0o755), locks: map[string]bool{}}
}

// memNode is a file or a directory in two states: as programs see it now, and as it is certainly on
// the disk.
type memNode struct {
	mode     fs.FileMode
	modified time.Time

	data   []byte // file: content
	synced []byte // file: content at the last Sync
	safe   int    // file: leading bytes of data that are the same bytes on the disk

	children       map[string]*memNode // directory: nil for a file
	syncedChildren map[string]*memNode // directory: at the last SyncDir
}

func newMemDir(perm fs.FileMode) *memNode {
	return &memNode{mode: fs.ModeDir | perm, children: map[string]*memNode{}, syncedChildren: map[string]*memNode{}}
}

func (n *memNode) isDir() bool { return n.children != nil }

// elements splits a path into names; the root has none. It does not handle a volume name (Windows).
func elements(name string) []string {
	name = filepath.ToSlash(filepath.Clean(name[len(filepath.VolumeName(name)):]))
	return strings.FieldsFunc(name, func(r rune) bool { return r == '/' })
}

// find returns the node of a path.
func (m *Mem) find(op, name string) (*memNode, error) {
	node := m.root
	for _, element := range elements(name) {
		if element == "." {
			continue
		}
		if !node.isDir() {
			return nil, &fs.PathError{Op: op, Path: name, Err: syscall.ENOTDIR}
		}
		next, ok := node.children[element]
		if !ok {
			return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
		}
		node = next
	}
	return node, nil
}

// parent returns the directory of a path and the last name of the path.
func (m *Mem) parent(op, name string) (*memNode, string, error) {
	dir, err := m.find(op, filepath.Dir(name))
	if err != nil {
		return nil, "", &fs.PathError{Op: op, Path: name, Err: errors.Unwrap(err)}
	}
	if !dir.isDir() {
		return nil, "", &fs.PathError{Op: op, Path: name, Err: syscall.ENOTDIR}
	}
	if len(elements(name)) == 0 {
		return nil, "", &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	return dir, filepath.Base(name), nil
}

// Create implements FS.
func (m *Mem) Create(name string, perm fs.FileMode) (File, error) {
	return m.open(name, perm, true)
}

// OpenAppend implements FS.
func (m *Mem) OpenAppend(name string, perm fs.FileMode) (File, error) {
	return m.open(name, perm, false)
}

func (m *Mem) open(name string, perm fs.FileMode, empty bool) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, base, err := m.parent("open", name)
	if err != nil {
		return nil, err
	}
	node, ok := dir.children[base]
	if !ok {
		node = &memNode{mode: perm.Perm(), modified: time.Now()}
		dir.children[base] = node
	}
	if node.isDir() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.EISDIR}
	}
	if empty {
		// The synced content remains: until the next Sync, a power loss may restore it.
		node.data, node.safe = nil, 0
	}
	return &memFile{fsys: m, node: node, name: name}, nil
}

// ReadFile implements FS.
func (m *Mem) ReadFile(name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	node, err := m.find("open", name)
	if err != nil {
		return nil, err
	}
	if node.isDir() {
		return nil, &fs.PathError{Op: "read", Path: name, Err: syscall.EISDIR}
	}
	return slices.Clone(node.data), nil
}

// Rename implements FS.
func (m *Mem) Rename(from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	source, sourceName, err := m.parent("rename", from)
	if err != nil {
		return err
	}
	target, targetName, err := m.parent("rename", to)
	if err != nil {
		return err
	}
	node, ok := source.children[sourceName]
	if !ok {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: fs.ErrNotExist}
	}
	if old, ok := target.children[targetName]; ok && old.isDir() {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: fs.ErrExist}
	}
	// The two directories may be synced separately, so after a power loss the file may have both
	// names, one, or none. CrashClone draws for each.
	delete(source.children, sourceName)
	target.children[targetName] = node
	return nil
}

// Remove implements FS.
func (m *Mem) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, base, err := m.parent("remove", name)
	if err != nil {
		return err
	}
	node, ok := dir.children[base]
	if !ok {
		return &fs.PathError{Op: "remove", Path: name, Err: fs.ErrNotExist}
	}
	if node.isDir() && len(node.children) > 0 {
		return &fs.PathError{Op: "remove", Path: name, Err: syscall.ENOTEMPTY}
	}
	delete(dir.children, base)
	return nil
}

// ReadDir implements FS.
func (m *Mem) ReadDir(name string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	node, err := m.find("open", name)
	if err != nil {
		return nil, err
	}
	if !node.isDir() {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: syscall.ENOTDIR}
	}
	return slices.Sorted(maps.Keys(node.children)), nil
}

// Stat implements FS.
func (m *Mem) Stat(name string) (fs.FileInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	node, err := m.find("stat", name)
	if err != nil {
		return nil, err
	}
	return memInfo{filepath.Base(name), int64(len(node.data)), node.mode, node.modified}, nil
}

// Mkdir implements FS.
func (m *Mem) Mkdir(name string, perm fs.FileMode) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, base, err := m.parent("mkdir", name)
	if err != nil {
		return err
	}
	if _, ok := dir.children[base]; ok {
		return &fs.PathError{Op: "mkdir", Path: name, Err: fs.ErrExist}
	}
	dir.children[base] = newMemDir(perm.Perm())
	return nil
}

// SyncDir implements FS.
func (m *Mem) SyncDir(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	node, err := m.find("open", name)
	if err != nil {
		return err
	}
	if !node.isDir() {
		return &fs.PathError{Op: "sync", Path: name, Err: syscall.ENOTDIR}
	}
	// The names only, as fsync(2) of a directory does: each file's own sync saves its content.
	node.syncedChildren = maps.Clone(node.children)
	return nil
}

// Lock implements FS. The holder is always this process.
func (m *Mem) Lock(name string) (io.Closer, error) {
	file, err := m.OpenAppend(name, lockPerm)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	key := filepath.Clean(name)
	// By path, not by node as the real lock is by file: nothing here renames or removes a lock
	// file.
	if m.locks[key] {
		return nil, &LockedError{Path: name, PID: os.Getpid()}
	}
	m.locks[key] = true
	return &memLock{fsys: m, key: key, file: file}, nil
}

type memLock struct {
	fsys *Mem
	key  string
	file File
}

func (l *memLock) Close() error {
	if err := l.file.Close(); err != nil {
		return err
	}
	l.fsys.mu.Lock()
	defer l.fsys.mu.Unlock()
	delete(l.fsys.locks, l.key)
	return nil
}

// memFile is an open memory file. Its own fields are not safe for concurrent use, like the offset
// of an os.File.
type memFile struct {
	fsys   *Mem
	node   *memNode
	name   string
	closed bool
}

func (f *memFile) check(op string) error {
	if f.closed {
		return &fs.PathError{Op: op, Path: f.name, Err: fs.ErrClosed}
	}
	return nil
}

// Write appends: this package writes files only at their end.
func (f *memFile) Write(data []byte) (int, error) {
	f.fsys.mu.Lock()
	defer f.fsys.mu.Unlock()
	if err := f.check("write"); err != nil {
		return 0, err
	}
	// The synced content may be a prefix of the same array, which appending does not change:
	// Truncate leaves no capacity after its end.
	f.node.data = append(f.node.data, data...)
	f.node.modified = time.Now()
	return len(data), nil
}

func (f *memFile) Sync() error {
	f.fsys.mu.Lock()
	defer f.fsys.mu.Unlock()
	if err := f.check("sync"); err != nil {
		return err
	}
	f.node.synced, f.node.safe = f.node.data, len(f.node.data)
	return nil
}

func (f *memFile) Truncate(size int64) error {
	f.fsys.mu.Lock()
	defer f.fsys.mu.Unlock()
	if err := f.check("truncate"); err != nil {
		return err
	}
	if size < 0 || size > int64(len(f.node.data)) {
		return &fs.PathError{Op: "truncate", Path: f.name, Err: fs.ErrInvalid}
	}
	// Clipped, so that the next append goes to a new array: the synced content may be the old one,
	// including the truncated part.
	f.node.data, f.node.safe = slices.Clip(f.node.data[:size]), min(f.node.safe, int(size))
	return nil
}

func (f *memFile) Close() error {
	f.fsys.mu.Lock()
	defer f.fsys.mu.Unlock()
	if err := f.check("close"); err != nil {
		return err
	}
	f.closed = true
	return nil
}

// memInfo is a fs.FileInfo.
type memInfo struct {
	name     string
	size     int64
	mode     fs.FileMode
	modified time.Time
}

func (i memInfo) Name() string       { return i.name }
func (i memInfo) Size() int64        { return i.size }
func (i memInfo) Mode() fs.FileMode  { return i.mode }
func (i memInfo) ModTime() time.Time { return i.modified }
func (i memInfo) IsDir() bool        { return i.mode.IsDir() }
func (i memInfo) Sys() any           { return nil }
