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

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/sosreport/printed"
	"github.com/linerate/linerate/internal/kernel/hostfs"
)

// What is taken of one report. A report of a large server has some 40,000 files and a gigabyte, of
// which perhaps 5,000 files and ten megabytes are looked at; the bounds are for reports that
// somebody made to be large.
const (
	maxFile    = 16 << 20  // bytes of one file; /proc/interrupts of 512 CPUs and 2,000 interrupts has 11 MB
	maxBytes   = 256 << 20 // of all files together
	maxEntries = 200_000
	maxStream  = 64 << 30 // bytes of an unpacked tar that are passed by in search of the files
	maxName    = 1024
)

// ErrFormat is in every error of [Open] that says that something is no report, or one that cannot
// be used.
var ErrFormat = errors.New("not a usable sosreport")

// Report is what one sosreport holds of a host's network side. It is not changed once it is made.
type Report struct {
	// Name is that of the report's own directory, which has the host and the date in it; empty: it
	// was opened by that directory.
	Name string
	// Warnings are what the report lacks and what was left out of it, one sentence each.
	Warnings []string

	entries []hostfs.Entry
}

// Root is the report as a host to read, in memory. Package host says of it what it says of every
// archive; Warnings come in addition.
func (r *Report) Root() host.Root { return host.Root{FS: hostfs.NewMemory(r.entries)} }

// Sockets are those of TCP and UDP that ss showed; nil: it did not run, which sos avoids where it
// would load a module.
func (r *Report) Sockets() []printed.Socket {
	return printed.ParseSockets(newSource(r.entries).output("ss -peaonmi", "ss -peaonmiZ", "ss -peaonm"))
}

// Open reads a report. name is its directory, a directory that holds nothing but it, or a tar file.
// The error is ErrFormat for what is none.
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
	// os.Root follows no link out of its directory, wherever in a name it stands.
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, fmt.Errorf("read sosreport: %w", err)
	}
	defer root.Close() // Opened for reading only: everything is in memory when this returns.
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
	return c.report(strings.TrimPrefix(top, "."))
}

// holdsReport tells a report's own directory by what every version of sos makes in it.
func holdsReport(fsys fs.FS, dir string) bool {
	info, err := fs.Stat(fsys, path.Join(dir, "sos_commands"))
	return err == nil && info.IsDir()
}

// topOf finds the directory of the report: the one that was named, or the only one in it, as tar
// leaves it.
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
		return "", fmt.Errorf("it has no sos_commands in it: %w", ErrFormat)
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("it holds several reports, name one of them (%s): %w", strings.Join(found, ", "), ErrFormat)
}

// collector gathers what is wanted of a report, within bounds.
type collector struct {
	entries map[string]hostfs.Entry
	bytes   int64
	said    []string
}

func newCollector() *collector { return &collector{entries: make(map[string]hostfs.Entry)} }

// say notes a sentence for the reader of the report, once.
func (c *collector) say(format string, args ...any) {
	if sentence := fmt.Sprintf(format, args...); !slices.Contains(c.said, sentence) {
		c.said = append(c.said, sentence)
	}
}

// errTooMuch ends the reading of a report that is beyond any honest one.
var errTooMuch = fmt.Errorf("more than %d files or %d MiB of what is looked at: %w", maxEntries,
	maxBytes>>20, ErrFormat)

// full tells that nothing more is taken.
func (c *collector) full() bool { return len(c.entries) >= maxEntries || c.bytes >= maxBytes }

// file takes one file. size is what its header or directory entry claims; not more than maxFile is
// read whatever that says.
func (c *collector) file(name string, size int64, in io.Reader) error {
	if c.full() {
		return errTooMuch
	}
	// Without its content, which need not even be read.
	if namesOnly(name) {
		c.entries[name] = hostfs.Entry{Name: name}
		return nil
	}
	if size > maxFile {
		c.say("%s: left out: it has %d MiB, and no file that is read here has more than %d", name, size>>20,
			maxFile>>20)
		return nil
	}
	// One byte more than is allowed tells a file of the limit from one that grew.
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

// link takes a symbolic link. Where it leads is not asked here: hostfs.Memory follows none out of
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

// walk takes what is wanted of a directory. Links are taken as links, not followed; devices,
// sockets and pipes are never opened.
func (c *collector) walk(ctx context.Context, fsys fs.FS) error {
	return fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			// What sos could not copy readable for us is as good as not copied.
			c.say("%s: not readable: %v", name, errors.Unwrap(err))
			if d != nil && d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		switch {
		case d.IsDir():
			// Most of a report are logs: what is not listed costs nothing.
			if name != "." && !mayHold(name) {
				return fs.SkipDir
			}
			return nil
		case len(name) > maxName || !wanted(name):
			return nil
		case d.Type()&fs.ModeSymlink != 0:
			target, err := fs.ReadLink(fsys, name)
			if err != nil {
				return nil // Gone since it was listed.
			}
			return c.link(name, strings.ReplaceAll(target, `\`, "/"))
		// Opening a pipe would wait for a writer that never comes.
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

// report ends the collection: from the files that were taken the archive is made.
func (c *collector) report(name string) (*Report, error) {
	entries := make([]hostfs.Entry, 0, len(c.entries))
	for _, e := range c.entries {
		entries = append(entries, e)
	}
	// Sorted, so that which of two contradictory entries wins does not depend on the order of a
	// map.
	slices.SortFunc(entries, func(a, b hostfs.Entry) int { return strings.Compare(a.Name, b.Name) })
	s := newSource(entries)
	if !s.any("proc") && !s.any("sos_commands") {
		return nil, fmt.Errorf("it has neither proc nor sos_commands in it: %w", ErrFormat)
	}
	made := s.archive()
	warnings := slices.Concat(c.said, s.said)
	// Where a copy of the archive has them too: a capture that is made of a report says what the
	// report lacked.
	if b, err := json.Marshal(warnings); err == nil && len(warnings) > 0 {
		made = append(made, hostfs.Entry{Name: host.WarningsFile, Content: append(b, '\n')})
	}
	// Of two entries with one name the later counts: what was made replaces no copy of a file, but
	// links that sysfs must have.
	return &Report{Name: name, Warnings: warnings, entries: slices.Concat(entries, made)}, nil
}
