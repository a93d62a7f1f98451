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
