package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// page is a file of the user's choice, beside standard output, that is not written yet.
type page struct {
	flag string // that names it
	file *os.File
	made bool // no other file had the name
}

// newPage opens a file before the work begins, so that a path that cannot be written is reported at
// once. An earlier file of that name stays until the new one is written. Without a name there is no
// page.
func newPage(flag, name string) (*page, error) {
	if name == "" {
		return nil, nil
	}
	_, missing := os.Lstat(name)
	// Without O_NONBLOCK, a named pipe without a reader would hold the command up here.
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|syscall.O_NONBLOCK, 0o666)
	if err != nil {
		return nil, statusError{exitFailed, fmt.Sprintf("--%s %s: %v", flag, name, errors.Unwrap(err)),
			"name a file in a directory that you may write to"}
	}
	return &page{flag, f, missing != nil}, nil
}

// write fills the page, and removes one that could not be completed. A device or a link of that
// name is not ours to remove.
func (p *page) write(render func(io.Writer) error) error {
	name := p.file.Name()
	info, err := os.Lstat(name)
	remove := err == nil && info.Mode().IsRegular()
	err = p.file.Truncate(0)
	if errors.Is(err, syscall.EINVAL) {
		err = nil // /dev/stdout, a pipe
	}
	if err == nil {
		err = render(p.file)
	}
	if closeErr := p.file.Close(); err == nil {
		err = closeErr
	}
	p.file = nil
	if err != nil {
		if remove {
			_ = os.Remove(name) // the first error is the one to report
		}
		return fmt.Errorf("--%s %s: %w", p.flag, name, err)
	}
	return nil
}

// discard removes a page that was never filled.
func (p *page) discard() {
	if p == nil || p.file == nil {
		return
	}
	_ = p.file.Close() // nothing was written
	if p.made {
		_ = os.Remove(p.file.Name())
	}
}
