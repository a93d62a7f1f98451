package host

import (
	"io/fs"

	"github.com/linerate/linerate/internal/kernel/hostfs"
	"github.com/linerate/linerate/internal/kernel/nl"
)

// Root says where a host is read from. The zero value is the running system, seen from the network
// namespace of the calling thread.
type Root struct {
	Dir string // an archived tree with proc, sys and linerate below it (format: package comment); empty: FS says
	FS  fs.FS  // such a tree in any file system, with its links if it is an fs.ReadLinkFS; nil as well: live
}

// live tells that the running system is meant.
func (r Root) live() bool { return r.Dir == "" && r.FS == nil }

// source is one opened Root: its files, and netlink where it is the running system. It belongs to
// one goroutine.
type source struct {
	*hostfs.Tree

	client    *nl.Client // dialled at first use, on the running system only
	clientErr error

	archived map[string]toldEthtool // of an archive, once it has been decoded
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

// close ends the use of the root and of the netlink socket that was opened on the way.
func (src *source) close() {
	src.Close()
	if src.client != nil {
		_ = src.client.Close() // Nothing was written.
	}
}
