package sosreport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/sosreport/printed"
	"github.com/linerate/linerate/internal/kernel/hostfs"
)

// The bounds of one report. A report of a large server has some 40,000 files and a gigabyte, of
// which perhaps 5,000 files and ten megabytes are read; the bounds stop reports that were made
// large on purpose.
const (
	maxFile    = 16 << 20  // bytes of one file; /proc/interrupts of 512 CPUs and 2,000 interrupts has 11 MB
	maxBytes   = 256 << 20 // of all files together
	maxEntries = 200_000
	maxStream  = 64 << 30 // bytes of an unpacked tar that are skipped in search of the files
	maxName    = 1024
)

// ErrFormat reports that a file or directory is no report, or an unusable one.
var ErrFormat = errors.New("not a usable sosreport")

// Report is the content of one sosreport about a host's network side. It is immutable.
type Report struct {
	// Name is that of the report's own directory, which contains the host and the date; empty if
	// the report was opened by that directory.
	Name string
	// Warnings name what the report lacks and what was left out of it, one sentence each.
	Warnings []string

	entries []hostfs.Entry
}

// Root returns the report as a host to read, in memory. Package host gives its usual warnings about
// an archive; Warnings come in addition.
func (r *Report) Root() host.Root { return host.Root{FS: hostfs.NewMemory(r.entries)} }

// Sockets returns the TCP and UDP sockets that ss showed; nil: it did not run, which sos avoids
// where it would load a module.
func (r *Report) Sockets() []printed.Socket {
	return printed.ParseSockets(newSource(r.entries).output("ss -peaonmi", "ss -peaonmiZ", "ss -peaonm"))
}

// Open reads a report. name is its directory, a directory that holds nothing else, or a tar file.
// The error is ErrFormat for anything else.
func Open(ctx context.Context, name string) (*Report, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("read sosreport: %w", err)
	}
	if info.IsDir() {
		return openDir(ctx, name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read sosreport: %w", err)
	}
	defer f.Close()
	r, err := Read(ctx, f)
	if err != nil {
		return nil, fmt.Errorf("read sosreport %s: %w", name, err)
	}
	return r, nil
}

// openDir reads an unpacked report.
func openDir(ctx context.Context, name string) (*Report, error) {
	// os.Root follows no link out of its directory, at any place of a name.
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, fmt.Errorf("read sosreport: %w", err)
	}
	defer root.Close() // It is read-only, and everything is in memory when this returns.
	fsys := root.FS()
	top, err := topOf(fsys)
	if err != nil {
		return nil, fmt.Errorf("read sosreport %s: %w", name, err)
	}
	if top != "." {
		if fsys, err = fs.Sub(fsys, top); err != nil {
			return nil, fmt.Errorf("read sosreport %s: %w", name, err)
		}
	}
	c := newCollector()
	if err := c.walk(ctx, fsys); err != nil {
		return nil, fmt.Errorf("read sosreport %s: %w", name, err)
	}
	return c.report(ctx, strings.TrimPrefix(top, "."))
}

// holdsReport recognises a report's own directory by what every version of sos creates in it.
func holdsReport(fsys fs.FS, dir string) bool {
	info, err := fs.Stat(fsys, path.Join(dir, "sos_commands"))
	return err == nil && info.IsDir()
}

// topOf returns the directory of the report: the given one, or the only one in it, as tar leaves
// it.
func topOf(fsys fs.FS) (string, error) {
	if holdsReport(fsys, ".") {
		return ".", nil
	}
	names, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return "", err
	}
	var found []string
	for _, e := range names {
		if e.IsDir() && holdsReport(fsys, e.Name()) {
			found = append(found, e.Name())
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("it does not contain sos_commands: %w", ErrFormat)
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("it contains several reports; name one of them (%s): %w",
		strings.Join(found, ", "), ErrFormat)
}

// collector gathers the wanted files of a report, within bounds.
type collector struct {
	entries map[string]hostfs.Entry
	bytes   int64
	said    sentences
}

func newCollector() *collector { return &collector{entries: make(map[string]hostfs.Entry)} }

// sentences are what a report lacks, each once.
type sentences struct {
	list []string
	has  map[string]bool
}

// mostSentences bounds them: a report may have any number of broken files and names.
const mostSentences = 500

func (s *sentences) add(sentence string) {
	switch {
	case s.has[sentence] || len(s.list) > mostSentences:
		return
	case len(s.list) == mostSentences:
		sentence = "more was left out than is listed here"
	}
	if s.has == nil {
		s.has = make(map[string]bool)
	}
	s.has[sentence] = true
	s.list = append(s.list, sentence)
}

// say records a sentence for the reader of the report, once.
func (c *collector) say(format string, args ...any) { c.said.add(fmt.Sprintf(format, args...)) }

// errTooMuch ends the reading of a report larger than any genuine one.
var errTooMuch = fmt.Errorf("more than %d files or %d MiB of wanted files: %w", maxEntries,
	maxBytes>>20, ErrFormat)

// full reports whether the bounds are reached.
func (c *collector) full() bool { return len(c.entries) >= maxEntries || c.bytes >= maxBytes }

// file takes one file. size is what its header or directory entry claims; at most maxFile is read
// in any case.
func (c *collector) file(name string, size int64, in io.Reader) error {
	if c.full() {
		return errTooMuch
	}
	// Without its content, which need not be read.
	if namesOnly(name) {
		c.entries[name] = hostfs.Entry{Name: name}
		return nil
	}
	if size > maxFile {
		c.say("%s: left out: it has %d MiB, and no file that is read here has more than %d", name, size>>20,
			maxFile>>20)
		return nil
	}
	// One byte more than the limit distinguishes a file of that size from one that grew.
	b, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	if err != nil {
		return err
	}
	if len(b) > maxFile {
		c.say("%s: left out: it has more than %d MiB", name, maxFile>>20)
		return nil
	}
	c.bytes += int64(len(b))
	c.entries[name] = hostfs.Entry{Name: name, Content: b}
	return nil
}

// link takes a symbolic link. Its target is not checked here: hostfs.Memory follows none out of
// itself.
func (c *collector) link(name, target string) error {
	if c.full() {
		return errTooMuch
	}
	if target != "" && len(target) <= maxName {
		c.entries[name] = hostfs.Entry{Name: name, Target: target}
	}
	return nil
}

// walk takes the wanted files of a directory. Links are taken as links, not followed; devices,
// sockets and pipes are never opened.
func (c *collector) walk(ctx context.Context, fsys fs.FS) error {
	return fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			// A file that sos copied without read permission counts as not copied.
			c.say("%s: not readable: %v", name, errors.Unwrap(err))
			if d != nil && d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		switch {
		case d.IsDir():
			// Most of a report is logs: a directory that is not listed costs nothing.
			if name != "." && !mayHold(name) {
				return fs.SkipDir
			}
			return nil
		case len(name) > maxName || !wanted(name):
			return nil
		case d.Type()&fs.ModeSymlink != 0:
			target, err := fs.ReadLink(fsys, name)
			if err != nil {
				return nil // Removed since it was listed.
			}
			return c.link(name, strings.ReplaceAll(target, `\`, "/"))
		// Opening a pipe would wait for a writer forever.
		case !d.Type().IsRegular():
			return nil
		}
		f, err := fsys.Open(name)
		if err != nil {
			c.say("%s: not readable: %v", name, errors.Unwrap(err))
			return nil
		}
		defer f.Close()
		var size int64
		if info, err := f.Stat(); err == nil {
			size = info.Size()
		}
		return c.file(name, size, f)
	})
}

// report ends the collection: it makes the archive from the collected files.
func (c *collector) report(ctx context.Context, name string) (*Report, error) {
	entries := make([]hostfs.Entry, 0, len(c.entries))
	for _, e := range c.entries {
		entries = append(entries, e)
	}
	// Sorted, so that the choice between two contradictory entries does not depend on the order of
	// a map.
	sorting.Func(entries, func(a, b hostfs.Entry) int { return strings.Compare(a.Name, b.Name) })
	c.completeness(entries)
	s := newSource(entries)
	if !s.any("proc") && !s.any("sos_commands") {
		return nil, fmt.Errorf("it has neither proc nor sos_commands in it: %w", ErrFormat)
	}
	made, err := s.archive(ctx)
	if err != nil {
		return nil, fmt.Errorf("read sosreport %s: %w", name, err)
	}
	warnings := slices.Concat(c.said.list, s.said.list)
	if !s.any("proc") && !s.any("sys") && !slices.ContainsFunc(made, func(e hostfs.Entry) bool {
		return strings.HasPrefix(e.Name, "proc/") || strings.HasPrefix(e.Name, "sys/")
	}) {
		return nil, fmt.Errorf("nothing in it describes a host: %s: %w",
			strings.Join(warnings[:min(len(warnings), 2)], "; "), ErrFormat)
	}
	// Where a copy of the archive has them too, so that a capture made from a report shows what the
	// report lacked.
	if b, err := json.Marshal(warnings); err == nil && len(warnings) > 0 {
		made = append(made, hostfs.Entry{Name: host.WarningsFile, Content: append(b, '\n')})
	}
	// The later of two entries with one name counts: derived entries replace no copy of a file, but
	// links that sysfs needs.
	return &Report{Name: name, Warnings: warnings, entries: slices.Concat(entries, made)}, nil
}
