package hostfs

import (
	"bytes"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// Entry is one thing of a copy: a file with Content, a symbolic link with Target, or a directory
// that is there for its name alone.
type Entry struct {
	Name      string // slash-separated, below the copy's root: proc/stat
	Content   []byte // of a file
	Target    string // of a symbolic link, as written in it; empty for others
	Directory bool
}

// Recorder holds what was read of a host. It keeps it in memory: what a host says of itself must
// not be on a disk before its names and addresses are replaced.
type Recorder struct{ entries map[string]Entry }

// Entries gives what was recorded, sorted by name.
func (r *Recorder) Entries() []Entry {
	return slices.SortedFunc(maps.Values(r.entries), func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
}

// File adds a file. The content is copied: readers use their buffer again.
func (r *Recorder) File(name string, content []byte) {
	r.entries[name] = Entry{Name: name, Content: bytes.Clone(content)}
}

// Record makes t keep what is read through it from now on, until [Tree.Stop].
func (t *Tree) Record() *Recorder {
	t.recorder = &Recorder{entries: make(map[string]Entry)}
	return t.recorder
}

// Stop ends a recording.
func (t *Tree) Stop() { t.recorder = nil }

// Aside reads a file that a copy must not hold whole, like Read but unrecorded. What of it may be
// kept is for [Tree.Keep].
func (t *Tree) Aside(name string) ([]byte, error) {
	rec := t.recorder
	t.recorder = nil
	b, err := t.Read(name)
	t.recorder = rec
	return b, err
}

// Keep records a file as if it had been read with that content; nothing without a recording.
func (t *Tree) Keep(name string, content []byte) {
	if t.recorder != nil {
		t.recorder.File(name, content)
	}
}

// recorded copies one file. /sys reaches most of its files by links; the copy has the file where it
// is and the links to it. The process's own directory is written as proc/net, where every reader
// looks last.
func (t *Tree) recorded(name string, content []byte) {
	if t.recorder == nil {
		return
	}
	// The environment of the first process is where containers are given their passwords. One of
	// its variables is looked at.
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

// recordedExists copies the fact that something is there. Of a file outside /proc and /sys nothing
// but its being there was asked.
func (t *Tree) recordedExists(name string, info fs.FileInfo) {
	switch {
	case t.recorder == nil:
	case strings.HasPrefix(name, "sys/"):
		t.Resolve(name)
	case !strings.HasPrefix(name, "proc/") && info.Mode().IsRegular():
		t.recorder.File(name, nil)
	}
}

// recordedList copies the names in a directory: links as links, directories and files of /sys as
// empty ones. What is in files comes when they are read; of some nothing but their name is
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

// recordedDirectory copies a directory for its name, which is in its parent's list.
func (t *Tree) recordedDirectory(name string) {
	if t.recorder != nil {
		t.recorder.entries[name] = Entry{Name: name, Directory: true}
	}
}

// recordedLink copies one symbolic link.
func (t *Tree) recordedLink(name, target string) {
	if t.recorder != nil {
		t.recorder.entries[name] = Entry{Name: name, Target: target}
	}
}
