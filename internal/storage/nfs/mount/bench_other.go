//go:build !linux

package mount

import (
	"context"
	"errors"
	"fmt"
)

// Bench measures mounts of one export; here it does not exist.
type Bench struct{}

// OpenBench returns errors.ErrUnsupported.
func OpenBench(Plan, Ends) (*Bench, error) {
	return nil, fmt.Errorf("make private mounts: %w", errors.ErrUnsupported)
}

// Prepare is for Linux.
func (*Bench) Prepare(context.Context) (Facts, error) { return Facts{}, errors.ErrUnsupported }

// Try is for Linux.
func (*Bench) Try(context.Context, Spec) (Effective, error) {
	return Effective{}, errors.ErrUnsupported
}

// Measure is for Linux.
func (*Bench) Measure(context.Context, Spec) (Sample, error) { return Sample{}, errors.ErrUnsupported }

// Close does nothing.
func (*Bench) Close(context.Context) error { return nil }
