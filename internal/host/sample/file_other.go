//go:build !linux

package sample

import "errors"

// file is never opened on these systems: New returns an error first.
type file struct{ name string }

func openFile(string) (*file, error) { return nil, errors.ErrUnsupported }

func (*file) read(buf []byte) ([]byte, error) { return buf[:0], errors.ErrUnsupported }

func (*file) close() {}
