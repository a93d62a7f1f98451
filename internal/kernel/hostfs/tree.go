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

// Tree is the files of one host, open for reading. It belongs to one goroutine.
type Tree struct {
	archive fs.FS     // nil: the running system
	closer  io.Closer // of a directory; nil for others
	// scratch is the last file read; parsers copy what they keep. One buffer for some hundred small
	// files is what makes a reading cheap enough to stand around a measurement.
	scratch  []byte
	recorder *Recorder // nil: nothing is recorded
}

// Running is the system that this program runs on. Files of /proc follow the calling thread: its
// network namespace, its own directory.
func Running() *Tree { return &Tree{} }

// OpenDir is the copy below a directory, which holds proc, sys or both. The error is fs.ErrNotExist
// where neither is there.
func OpenDir(dir string) (*Tree, error) {
	// os.Root refuses to leave its directory, links in the middle of a name included: an archive
	// that somebody sent must not make us read this host's files.
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open archive: %w", err)
	}
	t, err := Of(root.FS())
	if err != nil {
		_ = root.Close() // Opened for reading only: there is nothing that closing could lose.
		return nil, fmt.Errorf("open archive %s: %w", dir, errors.Unwrap(err))
	}
	t.closer = root
	return t, nil
}

// Of is the copy in a file system, which has links if it is an [fs.ReadLinkFS]. The error is
// fs.ErrNotExist where it holds neither proc nor sys.
func Of(fsys fs.FS) (*Tree, error) {
	// One of the two is enough: people send what they have. Neither is a typing error in the path,
	// and says so at once.
	for _, sub := range []string{"proc", "sys"} {
		if _, err := fs.Stat(fsys, sub); err == nil {
			return &Tree{archive: fsys}, nil
		}
	}
	return nil, fmt.Errorf("open archive: %w", fmt.Errorf("neither proc nor sys in it: %w", fs.ErrNotExist))
}

// Close ends the use of a directory. Other trees have nothing to close.
func (t *Tree) Close() {
	if t.closer != nil {
		_ = t.closer.Close() // Opened for reading only.
	}
}

// Live tells the running system from a copy: only the former may be asked questions, and only its
// silence is worth a warning.
func (t *Tree) Live() bool { return t.archive == nil }

// Read gives a whole file. The bytes are good until the next Read. The size that stat tells is
// never used: the pseudo file systems lie about it. Errors are fs.PathErrors with the path as it is
// on the host.
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

// onHost gives errors of a copy the same shape as live ones: the path as it was on the host.
// Warnings end up in documents that are compared, and the place where somebody unpacked an archive
// has no business in them.
func onHost(name string, err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return &fs.PathError{Op: "read", Path: "/" + name, Err: err}
}

// Text gives a one-value file without its final newline.
func (t *Tree) Text(name string) (string, error) {
	b, err := t.Read(name)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(b)), nil
}

// Optional is Text where any error means not known. sysfs answers an error where there is nothing
// to say (EINVAL for the speed of a link that is down, EOPNOTSUPP for an attribute that the driver
// lacks), so most of its files are read with this.
func (t *Tree) Optional(name string) string {
	text, err := t.Text(name)
	if err != nil {
		return ""
	}
	return text
}

// Number gives a one-value file as a decimal or 0x… number; the latter is how /sys/class/net prints
// flags and type.
func (t *Tree) Number(name string) (int64, bool) {
	n, err := strconv.ParseInt(t.Optional(name), 0, 64)
	return n, err == nil
}

// List gives the names in a directory, sorted. The order of sysfs is that of a hash and differs
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
	// A file system of somebody's own may have another order, or none.
	slices.Sort(names)
	return names, nil
}

// Link gives the target of a symbolic link, as written in it.
func (t *Tree) Link(name string) (string, bool) {
	var target string
	var err error
	if t.Live() {
		target, err = os.Readlink("/" + name)
	} else {
		target, err = fs.ReadLink(t.archive, name)
	}
	// Windows turns the slashes of a link round when it stores it; an archive is read there too.
	target = strings.ReplaceAll(target, `\`, "/")
	if err == nil && strings.HasPrefix(name, "sys/") {
		t.recordedLink(name, target)
	}
	return target, err == nil
}

// Exists tells whether something has that name.
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

// maxLinks is how many symbolic links are followed for one name, as the kernel does (MAXSYMLINKS).
const maxLinks = 40

// Resolve gives the real path of name: in sysfs that is the path of the device through the tree of
// buses. It is false where something on the way is missing or leads out of the root.
//
// It walks by itself because neither fs.Stat nor filepath.EvalSymlinks does this: the first gives
// no path back, the second would follow an absolute link of an archive into this host. An absolute
// target starts again at the root of the tree, as it did on the host.
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

// Net reads a file of the network namespace of the calling thread: /proc/thread-self is since Linux
// 3.17; /proc/self, the namespace of the process's first thread, is the same in every process that
// does not move single threads. A copy may have only proc/net.
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

// ownNet are the directories by which a thread and a process see their own network namespace.
var ownNet = [...]string{"proc/thread-self/net/", "proc/self/net/"}
