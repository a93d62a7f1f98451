package sosreport

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
)

// packings are the first bytes of packed tar files, and how to unpack them. sos uses xz by default,
// for which the standard library has no reader.
var packings = []struct {
	name, magic string
	unpack      func(io.Reader) (io.Reader, error) // nil: not supported
	hint        string
}{
	{name: "gzip", magic: "\x1f\x8b", unpack: func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }},
	{name: "bzip2", magic: "BZh", unpack: func(r io.Reader) (io.Reader, error) { return bzip2.NewReader(r), nil }},
	{name: "xz", magic: "\xfd7zXZ\x00", hint: "unpack it and name the directory: tar -xJf FILE"},
	{name: "zstd", magic: "\x28\xb5\x2f\xfd", hint: "unpack it and name the directory: tar --zstd -xf FILE"},
}

// packedError reports an unsupported packing, with advice.
type packedError struct{ packing, hint string }

func (e packedError) Error() string {
	return "it is packed with " + e.packing + ", which is not supported"
}

func (packedError) Unwrap() error { return ErrFormat }

// Hint returns the advice for the user.
func (e packedError) Hint() string { return e.hint }

// Looks reports whether a file that begins like this can be a report: a tar file, packed or not.
// The first 512 bytes decide; fewer are enough for packed files.
func Looks(begin []byte) bool {
	for _, p := range packings {
		if bytes.HasPrefix(begin, []byte(p.magic)) {
			return true
		}
	}
	// ustar, in the same place for POSIX and GNU (tar(5)).
	return len(begin) >= 262 && string(begin[257:262]) == "ustar"
}

// Read reads a report from its tar file. It unpacks nothing to a disk and skips unwanted files.
func Read(ctx context.Context, in io.Reader) (*Report, error) {
	// By content and not by name: users rename what they send, and standard input has no name.
	b := bufio.NewReaderSize(in, 64<<10)
	begin, _ := b.Peek(512) // A shorter file is no tar file, which is reported below.
	stream := io.Reader(b)
	for _, p := range packings {
		if !bytes.HasPrefix(begin, []byte(p.magic)) {
			continue
		}
		if p.unpack == nil {
			return nil, packedError{p.name, p.hint}
		}
		var err error
		if stream, err = p.unpack(b); err != nil {
			return nil, fmt.Errorf("unpack %s: %w: %w", p.name, err, ErrFormat)
		}
	}
	c := newCollector()
	top, err := c.readTar(ctx, tar.NewReader(&bounded{in: stream, left: maxStream}))
	if err != nil {
		return nil, err
	}
	return c.report(ctx, top)
}

// errEndless stops archives that unpack to more than any report has: a few kilobytes can unpack to
// petabytes of zeros.
var errEndless = fmt.Errorf("it unpacks to more than %d GiB: %w", maxStream>>30, ErrFormat)

// bounded ends a stream with an error.
type bounded struct {
	in   io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errEndless
	}
	n, err := b.in.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// readTar takes the wanted files of a tar file and returns the name of the report's own directory.
func (c *collector) readTar(ctx context.Context, t *tar.Reader) (top string, err error) {
	for {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return top, nil
		}
		if err != nil {
			return "", tarError(err)
		}
		name := path.Clean(h.Name)
		if !fs.ValidPath(name) || name == "." || len(name) > maxName || strings.ContainsAny(name, "\x00\\") {
			continue // A genuine archive has no such names, and none of them is wanted.
		}
		// Everything is below one directory with the report's name, unless the report was packed
		// again from inside.
		if first, rest, below := strings.Cut(name, "/"); !known(first) {
			if top != "" && first != top {
				return "", fmt.Errorf("it contains several directories, %s and %s among them; "+
					"a report has one: %w", top,
					first, ErrFormat)
			}
			if top = first; !below {
				continue
			}
			name = rest
		}
		// Unwanted files are skipped; a compressed stream must be unpacked all the same.
		if !wanted(name) {
			continue
		}
		switch h.Typeflag {
		case tar.TypeReg:
			err = c.file(name, h.Size, t)
		case tar.TypeSymlink:
			err = c.link(name, h.Linkname)
		case tar.TypeLink:
			// The same file under another name: it came before, or is not wanted.
			first, rest, _ := strings.Cut(path.Clean(h.Linkname), "/")
			to := path.Clean(h.Linkname)
			if first == top {
				to = rest
			}
			if e, ok := c.entries[to]; ok && e.Target == "" && !c.full() {
				e.Name = name
				c.entries[name] = e
			}
		}
		if err != nil {
			return "", tarError(err)
		}
	}
}

// known reports whether a directory can be at the top of a report.
func known(first string) bool {
	switch first {
	case "proc", "sys", "etc", "run", "sos_commands", "sos_strings", "sos_logs", "sos_reports", "var", "boot", "usr",
		"lib", "environment", "version.txt":
		return true
	}
	return topLevel(first)
}

// tarError makes one sentence from the errors of archive/tar and the unpackers about damaged files.
func tarError(err error) error {
	if errors.Is(err, ErrFormat) {
		return err
	}
	return fmt.Errorf("read tar: %w: %w", err, ErrFormat)
}
