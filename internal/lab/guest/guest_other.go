//go:build !linux

package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
)

// Guest is nothing outside of Linux.
type Guest struct{ Release string }

// Init does nothing.
func Init() {}

// Inside says no.
func Inside() bool { return false }

// Boot says that guests are not supported here.
func Boot(context.Context, Options) (*Guest, error) {
	return nil, fmt.Errorf("boot guest on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

// Run is never called.
func (*Guest) Run(context.Context, Command, io.Writer, io.Writer) (int, error) {
	return -1, errors.ErrUnsupported
}

// ReadFile is never called.
func (*Guest) ReadFile(context.Context, string) ([]byte, error) { return nil, errors.ErrUnsupported }

// Console is empty.
func (*Guest) Console() string { return "" }

// Wait does nothing.
func (*Guest) Wait(context.Context) error { return errors.ErrUnsupported }

// Disk is nothing outside of Linux.
type Disk struct{}

// NewDisk says that guests are not supported here.
func NewDisk(context.Context, System) (*Disk, error) {
	return nil, fmt.Errorf("make disk on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

// Close does nothing.
func (*Disk) Close() error { return nil }

// Close does nothing.
func (*Guest) Close() error { return nil }
