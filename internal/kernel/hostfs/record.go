package hostfs

import (
	"bytes"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/base/sorting"
)

// Entry is one entry of a copy: a file with Content, a symbolic link with Target, or a directory of
// which only the name is recorded.
type Entry struct {
	Name      string // slash-separated, below the copy's root: proc/stat
	Content   []byte // of a file
	Target    string // of a symbolic link, as written in it; empty for other entries
	Directory bool
}

// Recorder holds the files read from a host. It keeps them in memory: a host's data must not be on
// a disk before its names and addresses are replaced.
type Recorder struct{ entries map[string]Entry }

// Entries returns the recorded entries, sorted by name.
func (r *Recorder) Entries() []Entry {
	entries := slices.Collect(maps.Values(r.entries))
	sorting.Func(entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return entries
}

// File adds a file. It copies the content, because readers reuse their buffer.
func (r *Recorder) File(name string, content []byte) {
	r.entries[name] = Entry{Name: name, Content: bytes.Clone(content)}
}

// Record makes t record everything read through it from now on, until [Tree.Stop].
func (t *Tree) Record() *Recorder {
	t.recorder = &Recorder{entries: make(map[string]Entry)}
	return t.recorder
}

// Stop ends a recording.
func (t *Tree) Stop() { t.recorder = nil }

// Aside reads a file like Read, but does not record it, because a copy must not contain all of it.
// Use [Tree.Keep] to record the permitted part.
func (t *Tree) Aside(name string) ([]byte, error) {
	rec := t.recorder
	t.recorder = nil
	b, err := t.Read(name)
	t.recorder = rec
	return b, err
}

// Keep records a file as if it had been read with that content. Without a recording it does
// nothing.
func (t *Tree) Keep(name string, content []byte) {
	if t.recorder != nil {
		t.recorder.File(name, content)
	}
}

// recorded records one file. Most files of /sys are reached by links; the copy has the file at its
// real path and the links to it. The process's own directory is recorded as proc/net, where every
// reader looks last.
func (t *Tree) recorded(name string, content []byte) {
	if t.recorder == nil {
		return
	}
	// The environment of the first process often holds passwords of containers. Only one of its
	// variables is used.
	if path.Base(name) == "environ" {
		content = slices.Concat(slices.DeleteFunc(bytes.SplitAfter(bytes.Clone(content), []byte{0}),
			func(variable []byte) bool {
				return !bytes.HasPrefix(variable, []byte("container="))
			})...)
	}
	for _, own := range ownNet {
		if rest, ok := strings.CutPrefix(name, own); ok {
			t.recorder.File("proc/net/"+rest, content)
			return
		}
	}
	if real, ok := t.Resolve(name); ok {
		name = real
	}
	t.recorder.File(name, content)
}

// recordedExists records that a file exists. For a file outside /proc and /sys, only its existence
// was checked.
func (t *Tree) recordedExists(name string, info fs.FileInfo) {
	switch {
	case t.recorder == nil:
	case strings.HasPrefix(name, "sys/"):
		t.Resolve(name)
	case !strings.HasPrefix(name, "proc/") && info.Mode().IsRegular():
		t.recorder.File(name, nil)
	}
}

// recordedList records the names in a directory: links as links, directories and files of /sys as
// empty ones. The content of a file is recorded when it is read; for some only the name matters
// (msi_irqs).
func (t *Tree) recordedList(name string, entries []fs.DirEntry) {
	if t.recorder == nil {
		return
	}
	if real, ok := t.Resolve(name); ok {
		name = real
	}
	for _, e := range entries {
		entry := path.Join(name, e.Name())
		switch {
		case e.Type()&fs.ModeSymlink != 0:
			t.Link(entry)
		case !strings.HasPrefix(name, "sys/"):
		case e.IsDir():
			t.recordedDirectory(entry)
		default:
			// It may have been read before it was listed.
			if _, known := t.recorder.entries[entry]; !known {
				t.recorder.File(entry, nil)
			}
		}
	}
}

// recordedDirectory records a directory, whose name is in its parent's list.
func (t *Tree) recordedDirectory(name string) {
	if t.recorder != nil {
		t.recorder.entries[name] = Entry{Name: name, Directory: true}
	}
}

// recordedLink records one symbolic link.
func (t *Tree) recordedLink(name, target string) {
	if t.recorder != nil {
		t.recorder.entries[name] = Entry{Name: name, Target: target}
	}
}
