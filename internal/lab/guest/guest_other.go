//go:build !linux

package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
)

// Guest has no function outside of Linux.
type Guest struct{ Release string }

// Init does nothing.
func Init() {}

// InitContainer does nothing.
func InitContainer() {}

// Inside returns false.
func Inside() bool { return false }

// Boot returns errors.ErrUnsupported.
func Boot(context.Context, Options) (*Guest, error) {
	return nil, fmt.Errorf("boot guest on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

// Contain returns errors.ErrUnsupported.
func Contain(context.Context, Options) (*Guest, error) {
	return nil, fmt.Errorf("contain guest on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

// Run returns errors.ErrUnsupported.
func (*Guest) Run(context.Context, Command, io.Writer, io.Writer) (int, error) {
	return -1, errors.ErrUnsupported
}

// ReadFile returns errors.ErrUnsupported.
func (*Guest) ReadFile(context.Context, string) ([]byte, error) { return nil, errors.ErrUnsupported }

// Console returns an empty text.
func (*Guest) Console() string { return "" }

// Wait returns errors.ErrUnsupported.
func (*Guest) Wait(context.Context) error { return errors.ErrUnsupported }

// Disk has no function outside of Linux.
type Disk struct{}

// NewDisk returns errors.ErrUnsupported.
func NewDisk(context.Context, System) (*Disk, error) {
	return nil, fmt.Errorf("make disk on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

// Name returns an empty text.
func (*Disk) Name() string { return "" }

// Close does nothing.
func (*Disk) Close() error { return nil }

// Close does nothing.
func (*Guest) Close() error { return nil }

// Unplug is for Linux.
func (*Guest) Unplug(context.Context, int) error { return errors.ErrUnsupported }
