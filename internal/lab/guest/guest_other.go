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

// Close does nothing.
func (*Guest) Close() error { return nil }
