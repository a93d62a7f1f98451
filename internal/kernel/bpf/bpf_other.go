//go:build !linux

package bpf

import (
	"fmt"
	"runtime"
)

// Watcher counts nothing on this system.
type Watcher struct{}

// Watch returns ErrNotSupported: only Linux has BPF and its tracepoints.
func Watch() (*Watcher, error) {
	return nil, fmt.Errorf("count softirqs of %s: %w", runtime.GOOS, ErrNotSupported)
}

// Locks reports false.
func (*Watcher) Locks() bool { return false }

// Read returns ErrNotSupported.
func (*Watcher) Read() (*Counts, error) {
	return nil, fmt.Errorf("count softirqs of %s: %w", runtime.GOOS, ErrNotSupported)
}

// Close does nothing.
func (*Watcher) Close() {}

// Names has none on this system.
type Names struct{}

// AskNames returns ErrNotSupported: only Linux has BPF.
func AskNames() (*Names, error) {
	return nil, fmt.Errorf("ask for functions of %s: %w", runtime.GOOS, ErrNotSupported)
}

// Function returns ErrNotSupported.
func (*Names) Function(uint64) (Function, bool, error) {
	return Function{}, false, fmt.Errorf("ask for functions of %s: %w", runtime.GOOS, ErrNotSupported)
}

// Close does nothing.
func (*Names) Close() {}
