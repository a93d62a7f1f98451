package hostfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Tree is the files of one host, open for reading. It is not safe for concurrent use.
type Tree struct {
	archive fs.FS     // nil: the running system
	closer  io.Closer // of a directory; nil for other trees
	// scratch is the last file read; parsers copy the parts they keep. One buffer for some hundred
	// small files makes a reading cheap enough to surround a measurement.
	scratch  []byte
	recorder *Recorder // nil: no recording
}

// Running returns the system that this program runs on. Files of /proc depend on the calling
// thread: its network namespace, its own directory.
func Running() *Tree { return &Tree{} }

// OpenDir returns the copy below a directory, which contains proc, sys or both. The error is
// fs.ErrNotExist if it contains neither.
func OpenDir(dir string) (*Tree, error) {
	// os.Root refuses to leave its directory, even by links in the middle of a name: an archive
	// from another host must not make this program read files of its own host.
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open archive: %w", err)
	}
	t, err := Of(root.FS())
	if err != nil {
		_ = root.Close() // Opened for reading only: closing loses no data.
		return nil, fmt.Errorf("open archive %s: %w", dir, errors.Unwrap(err))
	}
	t.closer = root
	return t, nil
}

// Of returns the copy in a file system, which has links if it is an [fs.ReadLinkFS]. The error is
// fs.ErrNotExist if it contains neither proc nor sys.
func Of(fsys fs.FS) (*Tree, error) {
	// One of the two is enough: users send what they have. If both are missing, the path is
	// probably mistyped.
	for _, sub := range []string{"proc", "sys"} {
		if _, err := fs.Stat(fsys, sub); err == nil {
			return &Tree{archive: fsys}, nil
		}
	}
	return nil, fmt.Errorf("open archive: %w", fmt.Errorf("neither proc nor sys in it: %w", fs.ErrNotExist))
}

// Close closes a directory. Other trees have nothing to close.
func (t *Tree) Close() {
	if t.closer != nil {
		_ = t.closer.Close() // Opened for reading only.
	}
}

// Live reports whether the tree is the running system and not a copy. Only a running system can be
// queried further, and only there does a missing file deserve a warning.
func (t *Tree) Live() bool { return t.archive == nil }

// Read returns a whole file. The bytes are valid until the next Read. It never uses the size that
// stat reports, which is wrong in the pseudo file systems. Errors are fs.PathErrors with the path
// as it is on the host.
func (t *Tree) Read(name string) ([]byte, error) {
	var b []byte
	var err error
	if t.Live() {
		b, err = readWhole("/"+name, t.scratch[:0])
		if cap(b) > 0 {
			t.scratch = b
		}
	} else {
		b, err = fs.ReadFile(t.archive, name)
	}
	if err != nil {
		return nil, onHost(name, err)
	}
	t.recorded(name, b)
	return b, nil
}

// onHost converts errors of a copy to the form of live ones, with the path as it was on the host.
// Warnings end up in documents that are compared, and must not contain the place where an archive
// was unpacked.
func onHost(name string, err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return &fs.PathError{Op: "read", Path: "/" + name, Err: err}
}

// Text returns the content of a one-value file without its final newline.
func (t *Tree) Text(name string) (string, error) {
	b, err := t.Read(name)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(b)), nil
}

// Optional is Text that returns an empty text for any error. sysfs returns an error if a value does
// not exist (EINVAL for the speed of a link that is down, EOPNOTSUPP for an attribute that the
// driver lacks), so most of its files are read with this.
func (t *Tree) Optional(name string) string {
	text, err := t.Text(name)
	if err != nil {
		return ""
	}
	return text
}

// Number returns the content of a one-value file as a decimal or 0x… number; /sys/class/net prints
// flags and type in the latter form.
func (t *Tree) Number(name string) (int64, bool) {
	n, err := strconv.ParseInt(t.Optional(name), 0, 64)
	return n, err == nil
}

// List returns the names in a directory, sorted. The order of sysfs is that of a hash and differs
// between two equal hosts.
func (t *Tree) List(name string) ([]string, error) {
	var entries []fs.DirEntry
	var err error
	if t.Live() {
		entries, err = os.ReadDir("/" + name)
	} else {
		entries, err = fs.ReadDir(t.archive, name)
	}
	if err != nil {
		return nil, onHost(name, err)
	}
	t.recordedList(name, entries)
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	// Another implementation of fs.FS may have another order, or none.
	slices.Sort(names)
	return names, nil
}

// Link returns the target of a symbolic link, as written in it.
func (t *Tree) Link(name string) (string, bool) {
	var target string
	var err error
	if t.Live() {
		target, err = os.Readlink("/" + name)
	} else {
		target, err = fs.ReadLink(t.archive, name)
	}
	// Windows stores the slashes of a link as backslashes, and archives are read there too.
	target = strings.ReplaceAll(target, `\`, "/")
	if err == nil && strings.HasPrefix(name, "sys/") {
		t.recordedLink(name, target)
	}
	return target, err == nil
}

// Exists reports whether a name exists.
func (t *Tree) Exists(name string) bool {
	if t.Live() && t.recorder == nil {
		return accessible("/" + name)
	}
	info, err := t.stat(name)
	if err == nil {
		t.recordedExists(name, info)
	}
	return err == nil
}

// stat follows links, as open(2) would.
func (t *Tree) stat(name string) (fs.FileInfo, error) {
	if t.Live() {
		return os.Stat("/" + name)
	}
	return fs.Stat(t.archive, name)
}

// maxLinks is the number of symbolic links followed for one name, as in the kernel (MAXSYMLINKS).
const maxLinks = 40

// Resolve returns the real path of name: in sysfs that is the path of the device through the tree
// of buses. It returns false if a part is missing or leads out of the root.
//
// It walks the path itself, because neither fs.Stat nor filepath.EvalSymlinks does this: the first
// returns no path, the second would follow an absolute link of an archive into this host. An
// absolute target starts again at the root of the tree, as it did on the host.
func (t *Tree) Resolve(name string) (string, bool) {
	rest := strings.Split(path.Clean(name), "/")
	real := ""
	for links := 0; len(rest) > 0; {
		head := rest[0]
		rest = rest[1:]
		switch head {
		case "", ".":
			continue
		case "..":
			if real == "" {
				return "", false
			}
			real = parent(real)
			continue
		}
		next := path.Join(real, head)
		target, ok := t.Link(next)
		if !ok {
			real = next
			continue
		}
		if links++; links > maxLinks {
			return "", false
		}
		if strings.HasPrefix(target, "/") {
			real = ""
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	if real == "" {
		return "", false
	}
	info, err := t.stat(real)
	if err != nil {
		return "", false
	}
	if info.IsDir() {
		t.recordedDirectory(real)
	}
	return real, true
}

// parent is path.Dir without its "." for the top: names here begin below the root, and the root
// itself is the empty name.
func parent(name string) string {
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		return name[:i]
	}
	return ""
}

// Net reads a file of the network namespace of the calling thread. /proc/thread-self exists since
// Linux 3.17. /proc/self, the namespace of the process's first thread, is the same in every process
// that does not move single threads. A copy may have only proc/net.
func (t *Tree) Net(name string) ([]byte, error) {
	b, err := t.Read(ownNet[0] + name)
	if !errors.Is(err, fs.ErrNotExist) {
		return b, err
	}
	for _, dir := range []string{ownNet[1], "proc/net/"} {
		if b, err2 := t.Read(dir + name); err2 == nil {
			return b, nil
		}
	}
	return nil, err
}

// ownNet are the directories in which a thread and a process see their own network namespace.
var ownNet = [...]string{"proc/thread-self/net/", "proc/self/net/"}
