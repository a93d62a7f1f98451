package storage

import (
	"context"
	"fmt"
	"time"
)

// Storage that does not answer holds its thread in the kernel, where not even kill -9 ends it. So a
// goroutine waits for storage, and the session waits for the goroutine.
const (
	// patience is how long storage may show no sign of work: no operation ends, and no byte moves at
	// the device. A remote disk on another path comes back within that (scsi: 30 s).
	patience = 40 * time.Second
	// grace is how long storage may show no sign of work after the user has asked for the end.
	grace = 10 * time.Second
	// glance is the time between two looks.
	glance = 500 * time.Millisecond
)

// await runs f in a goroutine and returns its error. It returns an [ErrSilent] when the beat stands
// still for the patience, or for the grace after the end of the context; then f is still running.
//
// It counts looks instead of time. A process that was stopped, or that got no CPU, has not looked:
// storage may have worked meanwhile, while f did not run.
func await(ctx context.Context, wait time.Duration, beat func() uint64, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	tick := time.NewTicker(glance)
	defer tick.Stop()
	var last uint64
	var stood, asked time.Duration // since the beat, and since the end of the context; asked 0: not ended
	ended := ctx.Done()
	for {
		select {
		case err := <-done:
			return err
		case <-ended:
			ended = nil
			continue
		case <-tick.C:
		}
		stood += glance
		if ended == nil {
			asked += glance
		}
		if now := beat(); now != last {
			last, stood = now, 0
		}
		switch {
		case min(stood, asked) >= grace:
			return fmt.Errorf("%w after the end of the test", silent(grace))
		case stood >= wait:
			return silent(wait)
		}
	}
}

// silent is the sentence of [ErrSilent].
func silent(d time.Duration) error { return fmt.Errorf("%w for %v", ErrSilent, d) }

// moved is what the device that the session's target lies on has done: its count changes with each
// operation that ends there.
func (s *Session) moved() uint64 {
	if !s.found.Load() {
		return 0
	}
	for _, device := range s.devices() {
		if d, ok := s.counters().disk(device); ok {
			return d.ReadBytes + d.WriteBytes + d.Flushes
		}
	}
	return 0
}
