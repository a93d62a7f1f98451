package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Entry is one thing of an archive in memory: a file with Content, a symbolic link with Target, or a directory that is there for its name alone.
type Entry struct {
	Name      string // slash-separated, below the archive's directory: proc/stat
	Content   []byte // of a file
	Target    string // of a symbolic link, as written in it; empty for others
	Directory bool
}

// WarningsFile is where an archive keeps what the host did not answer when it was made: the files that could not be read are not there to be refused
// again. A list of sentences as JSON; [Root.Snapshot] of an archive does not look at it.
const WarningsFile = "linerate/warnings.json"

// Save writes everything that a Snapshot and a reading of the Counters look at into dir as an archive that Root{Dir: dir} reads. dir is made if
// need be and should be empty. What could not be read is not in it. The copy holds host name, addresses and hardware
// addresses of the host; it holds no keys, no contents of connections and no serial numbers.
func (r Root) Save(ctx context.Context, dir string) error {
	return r.record(ctx, &recorder{dir: dir})
}

// Copy gives the same archive in memory, sorted by name. It is for whoever must not leave the host's own names and addresses on a disk before they
// are replaced.
func (r Root) Copy(ctx context.Context) ([]Entry, error) {
	rec := &recorder{entries: make(map[string]Entry)}
	if err := r.record(ctx, rec); err != nil {
		return nil, err
	}
	return slices.SortedFunc(maps.Values(rec.entries), func(a, b Entry) int { return strings.Compare(a.Name, b.Name) }), nil
}

func (r Root) record(ctx context.Context, rec *recorder) error {
	if r.Dir == "" && !liveSupported {
		return fmt.Errorf("save archive: %w", errors.ErrUnsupported)
	}
	src, err := r.open()
	if err != nil {
		return err
	}
	defer src.close()
	// Whatever is read from here on is copied: the archive holds exactly what the readers look at, and a reader that learns to look at one more file
	// has it in the next archive without anybody thinking of it.
	src.recorder = rec
	s, err := src.snapshot(ctx)
	if err != nil {
		return fmt.Errorf("save archive: %w", err)
	}
	// A copy of /proc/sys alone is worth a Snapshot though it has no counters: there is then nothing more to copy.
	if _, err := src.counters(); err != nil && src.live() {
		return fmt.Errorf("save archive: %w", err)
	}
	if err := rec.saveTold(ctx, src, s); err != nil {
		return fmt.Errorf("save archive: %w", err)
	}
	return rec.err
}

// recorder copies what a source reads, into a directory or into memory. It keeps the first error and does nothing after it, so that reading need
// not care whether it is recorded.
type recorder struct {
	dir     string
	entries map[string]Entry // nil: into dir
	err     error
}

// saveTold writes the linerate directory.
func (rec *recorder) saveTold(ctx context.Context, src *source, s *Snapshot) error {
	src.recorder = nil // What follows is written by name, not copied.
	t := src.tell()
	all := make(map[string]toldEthtool, len(t.links))
	for _, l := range t.links {
		if err := ctx.Err(); err != nil {
			return err
		}
		e := src.ethtool(t, l.Name)
		e.Statistics, _ = src.driverStatistics(l.Name) // Most drivers have none.
		all[l.Name] = e
	}
	qdiscs, qdiscErr := src.qdiscs()
	warnings := s.Warnings
	if !src.live() {
		warnings = nil
		_ = src.decode(path.Base(WarningsFile), &warnings) // An archive that was copied by hand has none.
	}
	var warningsErr error
	if len(warnings) == 0 {
		warningsErr = errNotTold
	}
	parts := []struct {
		name string
		body any
		err  error
	}{
		{"host.json", hostFile{Time: s.Time.UTC().Truncate(time.Second), Arch: s.Arch}, nil},
		{"links.json", t.links, t.linksErr},
		{"addresses.json", t.addresses, t.addressesErr},
		{"routes.json", t.routes, t.routesErr},
		{"ethtool.json", all, t.linksErr},
		{"qdiscs.json", qdiscs, qdiscErr},
		{path.Base(WarningsFile), warnings, warningsErr},
	}
	for _, p := range parts {
		if p.err != nil {
			continue // What was not told stays absent, as it is here.
		}
		b, err := json.MarshalIndent(p.body, "", "\t")
		if err != nil {
			return err
		}
		rec.file("linerate/"+p.name, append(b, '\n'))
	}
	return nil
}

func (rec *recorder) try(err error) {
	if rec.err == nil && err != nil {
		rec.err = fmt.Errorf("save archive: %w", err)
	}
}

// file writes one file that was read, at its real place.
func (rec *recorder) file(name string, content []byte) {
	if rec.err != nil {
		return
	}
	if rec.entries != nil {
		rec.entries[name] = Entry{Name: name, Content: bytes.Clone(content)} // Readers use their buffer again.
		return
	}
	to := filepath.Join(rec.dir, filepath.FromSlash(name))
	rec.try(os.MkdirAll(filepath.Dir(to), 0o755))
	if rec.err == nil {
		rec.try(os.WriteFile(to, content, 0o644))
	}
}

// listed writes an empty file in place of one that was seen in a directory, unless it was read before.
func (rec *recorder) listed(name string) {
	if rec.entries != nil {
		if _, ok := rec.entries[name]; !ok {
			rec.file(name, nil)
		}
		return
	}
	if _, err := os.Lstat(filepath.Join(rec.dir, filepath.FromSlash(name))); errors.Is(err, fs.ErrNotExist) {
		rec.file(name, nil)
	}
}

// directory makes an empty directory, so that its name is in its parent's list.
func (rec *recorder) directory(name string) {
	if rec.entries != nil {
		rec.entries[name] = Entry{Name: name, Directory: true}
		return
	}
	if rec.err == nil {
		rec.try(os.MkdirAll(filepath.Join(rec.dir, filepath.FromSlash(name)), 0o755))
	}
}

// symlink writes one symbolic link of /sys.
func (rec *recorder) symlink(name, target string) {
	if rec.err != nil {
		return
	}
	if rec.entries != nil {
		rec.entries[name] = Entry{Name: name, Target: target}
		return
	}
	to := filepath.Join(rec.dir, filepath.FromSlash(name))
	rec.try(os.MkdirAll(filepath.Dir(to), 0o755))
	// The same link is met many times: every device has one to its subsystem, and resolve walks them anew for every file.
	if rec.err == nil {
		if err := os.Symlink(target, to); !errors.Is(err, fs.ErrExist) {
			rec.try(err)
		}
	}
}

// recorded copies one file. /sys reaches most of its files by links; the copy has the file where it is and the links to it.
// The process's own directory is written as proc/net, where every reader looks last.
func (src *source) recorded(name string, content []byte) {
	if src.recorder == nil {
		return
	}
	// The environment of the first process is where containers are given their passwords. One of its variables is looked at.
	if path.Base(name) == "environ" {
		content = slices.Concat(slices.DeleteFunc(bytes.SplitAfter(bytes.Clone(content), []byte{0}), func(variable []byte) bool {
			return !bytes.HasPrefix(variable, []byte("container="))
		})...)
	}
	for _, own := range []string{"proc/thread-self/net/", "proc/self/net/"} {
		if rest, ok := strings.CutPrefix(name, own); ok {
			src.recorder.file("proc/net/"+rest, content)
			return
		}
	}
	if real, ok := src.resolve(name); ok {
		name = real
	}
	src.recorder.file(name, content)
}

// recordedExists copies the fact that something is there. Of a file outside /proc and /sys nothing but its being there was asked.
func (src *source) recordedExists(name string, info fs.FileInfo) {
	switch {
	case src.recorder == nil:
	case strings.HasPrefix(name, "sys/"):
		src.resolve(name)
	case !strings.HasPrefix(name, "proc/") && info.Mode().IsRegular():
		src.recorder.file(name, nil)
	}
}

// recordedList copies the names in a directory: links as links, directories and files of /sys as empty ones. What is in files comes when they are read; of
// some nothing but their name is (msi_irqs).
func (src *source) recordedList(name string, entries []fs.DirEntry) {
	if src.recorder == nil {
		return
	}
	if real, ok := src.resolve(name); ok {
		name = real
	}
	for _, e := range entries {
		entry := path.Join(name, e.Name())
		switch {
		case e.Type()&fs.ModeSymlink != 0:
			src.link(entry)
		case !strings.HasPrefix(name, "sys/"):
		case e.IsDir():
			src.recorder.directory(entry)
		default:
			src.recorder.listed(entry)
		}
	}
}
