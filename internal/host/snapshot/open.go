package snapshot

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/capture"
	"github.com/linerate/linerate/internal/host/sosreport"
	"github.com/linerate/linerate/internal/host/sosreport/printed"
)

// Kind is what a host was read from.
type Kind string

// The kinds.
const (
	Capture   Kind = "capture"   // a text file of linerate inspect --capture, scrubbed
	Sosreport Kind = "sosreport" // a report of sos(1)
	Archive   Kind = "archive"   // a copy of /proc and /sys
)

// File is one host as it was sent.
type File struct {
	Kind Kind
	Name string // as it was opened; "-" is standard input

	root     host.Root
	snapshot func(context.Context) (*host.Snapshot, error)
	missing  []string // what the file itself lacks
	sockets  []printed.Socket
}

// Open reads a file or directory. The error is capture.ErrFormat or sosreport.ErrFormat for an
// unknown format; an error with a method Hint has advice for the user.
func Open(ctx context.Context, name string) (*File, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	if info.IsDir() {
		return openDir(ctx, name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	defer f.Close()
	return Read(ctx, name, f)
}

// Read reads a stream; name is for errors.
func Read(ctx context.Context, name string, in io.Reader) (*File, error) {
	b := bufio.NewReaderSize(in, 4096)
	begin, err := b.Peek(512)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read snapshot %s: %w", name, err)
	}
	if sosreport.Looks(begin) {
		r, err := sosreport.Read(ctx, b)
		if err != nil {
			return nil, fmt.Errorf("read sosreport %s: %w", name, err)
		}
		return fromReport(name, r), nil
	}
	// A file of no known format gets the error of a capture, which describes one.
	c, err := capture.Read(b)
	if err != nil {
		return nil, fmt.Errorf("read capture %s: %w", name, err)
	}
	return &File{Kind: Capture, Name: name, root: c.Root(), snapshot: c.Snapshot}, nil
}

// openDir reads an unpacked report, or a copy of /proc and /sys.
func openDir(ctx context.Context, name string) (*File, error) {
	r, err := sosreport.Open(ctx, name)
	if err == nil {
		return fromReport(name, r), nil
	}
	for _, sub := range []string{"proc", "sys"} {
		if info, statErr := os.Stat(filepath.Join(name, sub)); statErr == nil && info.IsDir() &&
			errors.Is(err, sosreport.ErrFormat) {
			root := host.Root{Dir: name}
			return &File{Kind: Archive, Name: name, root: root, snapshot: root.Snapshot}, nil
		}
	}
	return nil, err
}

func fromReport(name string, r *sosreport.Report) *File {
	root := r.Root()
	return &File{Kind: Sosreport, Name: name, root: root, snapshot: root.Snapshot, missing: r.Warnings,
		sockets: r.Sockets()}
}

// Root returns the host to read.
func (f *File) Root() host.Root { return f.root }

// Snapshot returns the host. Its warnings include those of the file.
func (f *File) Snapshot(ctx context.Context) (*host.Snapshot, error) {
	s, err := f.snapshot(ctx)
	if err != nil {
		return nil, fmt.Errorf("read snapshot %s: %w", f.Name, err)
	}
	for _, sentence := range f.missing {
		if !slices.Contains(s.Warnings, sentence) {
			s.Warnings = append(s.Warnings, sentence)
		}
	}
	return s, nil
}
