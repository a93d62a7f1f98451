package persist

import (
	"bytes"
	"cmp"
	"io"
	"io/fs"
	"path"
	"slices"
	"time"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/change/journal"
)

// overlay is a host's files together with the planned ones.
type overlay struct {
	fs.FS
	files map[string]journal.File
}

// root is the host as it will be.
func (p *Planner) root() fs.FS {
	planned := overlay{p.host.Root, map[string]journal.File{}}
	for name, f := range p.files {
		planned.files[name] = f
	}
	return planned
}

func (o overlay) Open(name string) (fs.File, error) {
	if f, ok := o.files[name]; ok {
		return &planned{f, bytes.NewReader([]byte(f.Content))}, nil
	}
	return o.FS.Open(name)
}

func (o overlay) ReadLink(name string) (string, error) { return fs.ReadLink(o.FS, name) }

func (o overlay) Lstat(name string) (fs.FileInfo, error) { return fs.Lstat(o.FS, name) }

func (o overlay) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(o.FS, name)
	for file, f := range o.files {
		if path.Dir(file) != name {
			continue
		}
		err = nil
		entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return e.Name() == path.Base(file) })
		entries = append(entries, fs.FileInfoToDirEntry(&planned{File: f}))
	}
	sorting.Func(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries, err
}

// planned is a file that is not there yet.
type planned struct {
	journal.File
	io.Reader
}

func (f *planned) Stat() (fs.FileInfo, error) { return f, nil }
func (f *planned) Close() error               { return nil }
func (f *planned) Name() string               { return path.Base(f.Path) }
func (f *planned) Size() int64                { return int64(len(f.Content)) }
func (f *planned) Mode() fs.FileMode          { return f.File.Mode }
func (f *planned) ModTime() time.Time         { return time.Time{} }
func (f *planned) IsDir() bool                { return false }
func (f *planned) Sys() any                   { return nil }
