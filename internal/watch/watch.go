package watch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/linerate/linerate/internal/host"
)

const (
	defaultDuration = 3 * time.Second
	defaultSockets  = 32
)

// Reading is what a host had counted at one moment. Make one with [Read].
type Reading struct {
	Counters   *host.Counters
	Interrupts []host.CardInterrupts
	Warnings   []string // what could not be read, one sentence each; those of Counters are among them
}

// Read takes one reading. Its parts are read one after the other, counters first. The error is for a host that tells no counters at all; whatever else cannot be
// read is a warning.
func Read(root host.Root, o Options) (*Reading, error) {
	counters, err := root.Counters()
	if err != nil {
		return nil, err
	}
	r := &Reading{Counters: counters, Warnings: counters.Warnings}
	if r.Interrupts, err = root.CardInterrupts(); err != nil {
		r.Warnings = append(r.Warnings, err.Error())
	}
	return r, nil
}

// Host watches the running system for the duration of o, in the network namespace of the calling thread, which has to be locked to its goroutine if it is not
// that of the process. The errors are those of [Read], that of ctx when it ends first, and errors.ErrUnsupported for an archive, which is one moment.
func Host(ctx context.Context, root host.Root, o Options) (*Span, error) {
	if root.Dir != "" || root.FS != nil {
		return nil, fmt.Errorf("watch host: %w: an archive is one moment", errors.ErrUnsupported)
	}
	if o.Duration <= 0 {
		o.Duration = defaultDuration
	}
	before, err := Read(root, o)
	if err != nil {
		return nil, err
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	// Nothing is looked at in between: what costs nothing cannot disturb, and a peak between two readings is in their difference.
	case <-time.After(min(o.Duration, MaxDuration)):
	}
	after, err := Read(root, o)
	if err != nil {
		return nil, err
	}
	return Sub(before, after), nil
}
