package host

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/nl"
)

// Root says where a host is read from. The zero value is the running system, seen from the network namespace of the calling thread.
type Root struct {
	Dir string // an archived tree with proc, sys and linerate below it (format: package comment); empty: live
}

// source is one opened Root. Its paths are slash-separated and relative ("proc/stat"). It belongs to one goroutine.
type source struct {
	archive *os.Root // nil: the running system
	// scratch is the last file read; parsers copy what they keep. One buffer for some hundred small files is what makes a reading cheap enough to
	// stand around a measurement.
	scratch []byte

	client    *nl.Client // dialled at first use, on the running system only
	clientErr error

	recorder *recorder // copies what is read; nil but for Save
}

func (r Root) open() (*source, error) {
	if r.Dir == "" {
		return &source{}, nil
	}
	// os.Root refuses to leave its directory, links in the middle of a name included: an archive that somebody sent must not make us
	// read this host's files.
	dir, err := os.OpenRoot(r.Dir)
	if err != nil {
		return nil, fmt.Errorf("open archive: %w", err)
	}
	// One of the two is enough: people send what they have. Neither is a typing error in the path, and says so at once.
	for _, sub := range []string{"proc", "sys"} {
		if _, err := dir.Stat(sub); err == nil {
			return &source{archive: dir}, nil
		}
	}
	_ = dir.Close() // Opened for reading only: there is nothing that closing could lose.
	return nil, fmt.Errorf("open archive %s: neither proc nor sys in it: %w", r.Dir, fs.ErrNotExist)
}

// close ends the use of the root and of the netlink socket that was opened on the way.
func (src *source) close() {
	if src.archive != nil {
		_ = src.archive.Close() // Opened for reading only.
	}
	if src.client != nil {
		_ = src.client.Close() // Nothing was written.
	}
}

// live tells the running system from an archive: only the former may be asked questions, and only its silence is worth a warning.
func (src *source) live() bool { return src.archive == nil }

// read gives a whole file. The bytes are good until the next read. The size that stat tells is never used: the pseudo
// file systems lie about it.
func (src *source) read(name string) ([]byte, error) {
	if src.live() {
		b, err := readWhole("/"+name, src.scratch[:0])
		if cap(b) > 0 {
			src.scratch = b
		}
		if err != nil {
			return nil, &fs.PathError{Op: "read", Path: "/" + name, Err: err}
		}
		src.recorded(name, b)
		return b, nil
	}
	f, err := src.archive.Open(name)
	if err != nil {
		return nil, archiveError(name, err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		return nil, archiveError(name, err)
	}
	src.recorded(name, b)
	return b, nil
}

// archiveError gives errors of an archive the same shape as live ones: the path as it was on the host. Warnings end up in documents that are
// compared, and the place where somebody unpacked an archive has no business in them.
func archiveError(name string, err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return &fs.PathError{Op: "read", Path: "/" + name, Err: err}
}

// text gives a one-value file without its final newline.
func (src *source) text(name string) (string, error) {
	b, err := src.read(name)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(b)), nil
}

// optional is text where any error means not known. sysfs answers an error where there is nothing to say (EINVAL for the speed of a link that
// is down, EOPNOTSUPP for an attribute that the driver lacks), so most of its files are read with this.
func (src *source) optional(name string) string {
	t, err := src.text(name)
	if err != nil {
		return ""
	}
	return t
}

// number gives a one-value file as a decimal or 0x… number; the latter is how /sys/class/net prints flags and type.
func (src *source) number(name string) (int64, bool) {
	n, err := strconv.ParseInt(src.optional(name), 0, 64)
	return n, err == nil
}

// list gives the names in a directory, sorted. The order of sysfs is that of a hash and differs between two equal hosts.
func (src *source) list(name string) ([]string, error) {
	var entries []fs.DirEntry
	var err error
	if src.live() {
		entries, err = os.ReadDir("/" + name)
	} else {
		entries, err = fs.ReadDir(src.archive.FS(), name)
	}
	if err != nil {
		return nil, archiveError(name, err)
	}
	src.recordedList(name, entries)
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// link gives the target of a symbolic link, as written in it.
func (src *source) link(name string) (string, bool) {
	var target string
	var err error
	if src.live() {
		target, err = os.Readlink("/" + name)
	} else {
		target, err = src.archive.Readlink(name)
	}
	// Windows turns the slashes of a link round when it stores it; an archive is read there too.
	target = strings.ReplaceAll(target, `\`, "/")
	if err == nil && src.recorder != nil && strings.HasPrefix(name, "sys/") {
		src.recorder.symlink(name, target)
	}
	return target, err == nil
}

// exists tells whether something has that name.
func (src *source) exists(name string) bool {
	if src.live() && src.recorder == nil {
		return accessible("/" + name)
	}
	info, err := src.stat(name)
	if err == nil {
		src.recordedExists(name, info)
	}
	return err == nil
}

// stat follows links, as open(2) would.
func (src *source) stat(name string) (fs.FileInfo, error) {
	if src.live() {
		return os.Stat("/" + name)
	}
	return src.archive.Stat(name)
}

// maxLinks is how many symbolic links resolve follows, as the kernel does (MAXSYMLINKS).
const maxLinks = 40

// resolve gives the real path of name: in sysfs that is the path of the device through the tree of buses. It is false where something on
// the way is missing or leads out of the root.
//
// It walks by itself because neither os.Root nor filepath.EvalSymlinks does this: the first gives no path back, the second would follow an
// absolute link of an archive into this host. An absolute target starts again at the root of the tree, as it did on the host.
func (src *source) resolve(name string) (string, bool) {
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
		target, ok := src.link(next)
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
	info, err := src.stat(real)
	if real == "" || err != nil {
		return "", false
	}
	if src.recorder != nil && info.IsDir() {
		src.recorder.directory(real)
	}
	return real, true
}

// parent is path.Dir without its "." for the top: names here begin below the root, and the root itself is the empty name.
func parent(name string) string {
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		return name[:i]
	}
	return ""
}

// net reads a file of the network namespace of the calling thread: /proc/thread-self is since Linux 3.17; /proc/self, the
// namespace of the process's first thread, is the same in every process that does not move single threads. An archive may have only proc/net.
func (src *source) net(name string) ([]byte, error) {
	b, err := src.read("proc/thread-self/net/" + name)
	if !errors.Is(err, fs.ErrNotExist) {
		return b, err
	}
	for _, dir := range []string{"proc/self/net/", "proc/net/"} {
		if b, err2 := src.read(dir + name); err2 == nil {
			return b, nil
		}
	}
	return nil, err
}
