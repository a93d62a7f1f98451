package hostfs

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// Memory is a copy of a host in memory, as an [fs.ReadLinkFS]. It is immutable and safe for
// concurrent use.
//
// A capture is a few thousand files of one line. Writing them to a disk, reading them once and
// removing them takes a second, most of it the file system's own bookkeeping. In memory it takes a
// few milliseconds and leaves nothing behind when the program is killed.
type Memory struct{ nodes map[string]*node }

// node is one path of a Memory.
type node struct {
	entry    Entry
	children []string // of a directory: full paths, sorted
}

func (n *node) directory() bool { return n.entry.Directory }

// NewMemory returns a copy made of entries, whose contents it keeps without cloning. Directories
// above an entry exist implicitly. Of two entries with one name the later counts. It omits an entry
// below a file or a link, which no file system allows.
func NewMemory(entries []Entry) *Memory {
	m := &Memory{nodes: make(map[string]*node, 2*len(entries))}
	m.nodes["."] = &node{entry: Entry{Name: ".", Directory: true}}
	for _, e := range entries {
		if !fs.ValidPath(e.Name) || e.Name == "." || !m.makeParents(e.Name) {
			continue
		}
		if n, ok := m.nodes[e.Name]; ok {
			// A directory that has children remains a directory.
			if len(n.children) == 0 {
				n.entry = e
			}
			continue
		}
		m.add(e)
	}
	for _, n := range m.nodes {
		slices.Sort(n.children)
	}
	return m
}

// add puts a new path into its parent's list.
func (m *Memory) add(e Entry) {
	m.nodes[e.Name] = &node{entry: e}
	up := m.nodes[path.Dir(e.Name)]
	up.children = append(up.children, e.Name)
}

// makeParents creates the directories above name, from the top. It returns false if one of them is
// a file or a link.
func (m *Memory) makeParents(name string) bool {
	up := path.Dir(name)
	if n, ok := m.nodes[up]; ok {
		return n.directory()
	}
	if !m.makeParents(up) {
		return false
	}
	m.add(Entry{Name: up, Directory: true})
	return true
}

// errEscapes has the text of os.Root's error, so that a copy in memory and one in a directory
// produce the same document.
var errEscapes = errors.New("path escapes from parent")

// errNotDirectory and errDirectory replace the kernel's ENOTDIR and EISDIR, for which package fs
// has no errors.
var (
	errNotDirectory = errors.New("not a directory")
	errDirectory    = errors.New("is a directory")
)

// find returns the node of a name. It always follows links on the way, but the last element only if
// follow is set. Like os.Root it refuses absolute targets and those that lead above the top.
func (m *Memory) find(op, name string, follow bool) (*node, error) {
	fail := func(err error) (*node, error) { return nil, &fs.PathError{Op: op, Path: name, Err: err} }
	if !fs.ValidPath(name) {
		return fail(fs.ErrInvalid)
	}
	// Nearly all names contain no link.
	if n, ok := m.nodes[name]; ok && (n.entry.Target == "" || !follow) {
		return n, nil
	}
	at := m.nodes["."]
	rest := strings.Split(name, "/")
	for links := 0; len(rest) > 0; {
		head := rest[0]
		rest = rest[1:]
		switch head {
		case "", ".":
			continue
		case "..":
			if at.entry.Name == "." {
				return fail(errEscapes)
			}
			at = m.nodes[path.Dir(at.entry.Name)]
			continue
		}
		if !at.directory() {
			return fail(errNotDirectory)
		}
		next, ok := m.nodes[path.Join(at.entry.Name, head)]
		switch {
		case !ok:
			return fail(fs.ErrNotExist)
		case next.entry.Target == "" || len(rest) == 0 && !follow:
			at = next
			continue
		case path.IsAbs(next.entry.Target):
			return fail(errEscapes)
		}
		if links++; links > maxLinks {
			return fail(errors.New("too many levels of symbolic links"))
		}
		rest = append(strings.Split(next.entry.Target, "/"), rest...)
	}
	return at, nil
}

// Open opens a file or a directory, through links.
func (m *Memory) Open(name string) (fs.File, error) {
	n, err := m.find("open", name, true)
	if err != nil {
		return nil, err
	}
	if n.directory() {
		return &openDirectory{info: infoOf(name, n), entries: m.entries(n)}, nil
	}
	return &openFile{Reader: bytes.NewReader(n.entry.Content), info: infoOf(name, n)}, nil
}

// ReadFile returns a copy of a file's content.
func (m *Memory) ReadFile(name string) ([]byte, error) {
	n, err := m.find("read", name, true)
	if err != nil {
		return nil, err
	}
	if n.directory() {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errDirectory}
	}
	return bytes.Clone(n.entry.Content), nil // Callers may modify the result.
}

// ReadDir returns the entries of a directory, sorted by name.
func (m *Memory) ReadDir(name string) ([]fs.DirEntry, error) {
	n, err := m.find("readdir", name, true)
	if err != nil {
		return nil, err
	}
	if !n.directory() {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: errNotDirectory}
	}
	return m.entries(n), nil
}

// Stat describes a file, and follows links.
func (m *Memory) Stat(name string) (fs.FileInfo, error) {
	n, err := m.find("stat", name, true)
	if err != nil {
		return nil, err
	}
	return infoOf(name, n), nil
}

// Lstat describes a file without following a link at the end.
func (m *Memory) Lstat(name string) (fs.FileInfo, error) {
	n, err := m.find("lstat", name, false)
	if err != nil {
		return nil, err
	}
	return infoOf(name, n), nil
}

// ReadLink returns the target of a link, as written in it.
func (m *Memory) ReadLink(name string) (string, error) {
	n, err := m.find("readlink", name, false)
	if err != nil {
		return "", err
	}
	if n.entry.Target == "" {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: fs.ErrInvalid}
	}
	return n.entry.Target, nil
}

func (m *Memory) entries(n *node) []fs.DirEntry {
	out := make([]fs.DirEntry, len(n.children))
	for i, name := range n.children {
		out[i] = fs.FileInfoToDirEntry(infoOf(name, m.nodes[name]))
	}
	return out
}

// info describes a node under the name that was requested.
type info struct {
	name string
	node *node
}

func infoOf(name string, n *node) info { return info{path.Base(name), n} }

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return int64(len(i.node.entry.Content)) }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.node.directory() }
func (i info) Sys() any           { return nil }

// Mode returns a mode without write permission.
func (i info) Mode() fs.FileMode {
	switch {
	case i.node.directory():
		return fs.ModeDir | 0o555
	case i.node.entry.Target != "":
		return fs.ModeSymlink | 0o777
	}
	return 0o444
}

// openFile is an open file. bytes.Reader implements Read, ReadAt and Seek.
type openFile struct {
	*bytes.Reader
	info info
}

func (f *openFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *openFile) Close() error               { return nil }

// openDirectory is an open directory with its unread entries.
type openDirectory struct {
	info    info
	entries []fs.DirEntry
}

func (d *openDirectory) Stat() (fs.FileInfo, error) { return d.info, nil }
func (d *openDirectory) Close() error               { return nil }

func (d *openDirectory) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.info.name, Err: errDirectory}
}

// ReadDir returns the next n entries, or all remaining ones if n is not positive.
func (d *openDirectory) ReadDir(n int) ([]fs.DirEntry, error) {
	if n > 0 && len(d.entries) == 0 {
		return nil, io.EOF
	}
	if n <= 0 || n > len(d.entries) {
		n = len(d.entries)
	}
	out := d.entries[:n:n]
	d.entries = d.entries[n:]
	return out, nil
}
