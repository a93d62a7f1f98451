//go:build !linux

package perf

import (
	"fmt"
	"runtime"
	"time"
)

// Sampler samples a set of CPUs. This system has none.
type Sampler struct{}

// Open returns ErrNotSupported: only Linux has perf_event_open.
func Open(Options) (*Sampler, error) { return nil, unsupported() }

func unsupported() error { return fmt.Errorf("sample cpus of %s: %w", runtime.GOOS, ErrNotSupported) }

// Enable returns ErrNotSupported.
func (*Sampler) Enable() error { return unsupported() }

// Disable returns ErrNotSupported.
func (*Sampler) Disable() error { return unsupported() }

// Drain returns ErrNotSupported.
func (*Sampler) Drain(Visitor) error { return unsupported() }

// Counts returns ErrNotSupported.
func (*Sampler) Counts() ([]Count, error) { return nil, unsupported() }

// Close does nothing.
func (*Sampler) Close() {}

// Probe answers that this system does not have the event.
func Probe(e Event, _ int) Probed {
	return Probed{Event: e, Answer: NotSupported, Reason: unsupported().Error()}
}

// SampleCost returns ErrNotSupported.
func SampleCost() (time.Duration, error) { return 0, unsupported() }

// Now returns a clock that no sample has.
func Now() uint64 { return uint64(time.Now().UnixNano()) }
