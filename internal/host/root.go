package host

import (
	"io/fs"

	"github.com/linerate/linerate/internal/kernel/hostfs"
	"github.com/linerate/linerate/internal/kernel/nl"
)

// Root selects where a host is read from. The zero value is the running system, seen from the
// network namespace of the calling thread.
type Root struct {
	Dir string // an archived tree with proc, sys and linerate below it (format: package comment); if empty, FS counts
	FS  fs.FS  // such a tree in any file system, with its links if it is an fs.ReadLinkFS; nil as well: live
}

// live reports whether the Root is the running system.
func (r Root) live() bool { return r.Dir == "" && r.FS == nil }

// source is one opened Root: its files, and netlink for the running system. One goroutine uses it.
type source struct {
	*hostfs.Tree

	client    *nl.Client // dialled at first use, on the running system only
	clientErr error

	archived map[string]ethtoolFacts // decoded from an archive
}

func (r Root) open() (*source, error) {
	switch {
	case r.Dir != "":
		t, err := hostfs.OpenDir(r.Dir)
		return &source{Tree: t}, err
	case r.FS != nil:
		t, err := hostfs.Of(r.FS)
		return &source{Tree: t}, err
	}
	return &source{Tree: hostfs.Running()}, nil
}

// close ends the use of the root and of the netlink socket, if one was opened.
func (src *source) close() {
	src.Close()
	if src.client != nil {
		_ = src.client.Close() // It has only read.
	}
}
