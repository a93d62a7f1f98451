package watch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/linerate/linerate/internal/host"
)

const (
	defaultDuration = 3 * time.Second
	defaultSockets  = 32
)

// Watch is a host of which a first reading has been taken. It belongs to one goroutine.
type Watch struct {
	options    Options
	counters   *host.Counters
	interrupts interrupts
	sockets    *marks // nil: not asked for, or not told
	warnings   []string
}

// interrupts is a reading of the interrupts of cards.
type interrupts struct {
	at    time.Time
	cards []host.CardInterrupts
}

// Begin takes the first reading, in the network namespace of the calling thread, which has to be
// locked to its goroutine until [Watch.End] if it is not that of the process. The error is for a
// host that tells no counters at all, and errors.ErrUnsupported for an archive, which is one
// moment; whatever else cannot be read is a warning of the span.
func Begin(root host.Root, o Options) (*Watch, error) {
	if root.Dir != "" || root.FS != nil {
		return nil, fmt.Errorf("watch host: %w: an archive is one moment", errors.ErrUnsupported)
	}
	w := &Watch{options: o}
	// The counters come last here and first in End, so that the work of reading the others is
	// outside of what they count.
	if o.Sockets >= 0 {
		var err error
		w.sockets, err = markSockets()
		w.warn(err)
	}
	w.interrupts = w.readInterrupts()
	var err error
	if w.counters, err = root.Counters(); err != nil {
		return nil, fmt.Errorf("watch host: %w", err)
	}
	w.warnings = append(w.warnings, w.counters.Warnings...)
	return w, nil
}

// End takes another reading and gives what happened since [Begin]. It may be called again, for a
// longer span from the same beginning.
func (w *Watch) End() (*Span, error) {
	after, err := host.Root{}.Counters()
	if err != nil {
		return nil, fmt.Errorf("watch host: %w", err)
	}
	s := span(w.counters, after, w.interrupts, w.readInterrupts())
	if w.sockets != nil {
		n := w.options.Sockets
		if n == 0 {
			n = defaultSockets
		}
		s.Sockets, err = w.sockets.since(n)
		w.warn(err)
		if s.Sockets != nil {
			s.Sockets.Destinations, err = destinations(after.Values)
			w.warn(err)
		}
	}
	for _, sentence := range slices.Concat(w.warnings, after.Warnings) {
		if !slices.Contains(s.Warnings, sentence) {
			s.Warnings = append(s.Warnings, sentence)
		}
	}
	return s, nil
}

// readInterrupts leaves out what cannot be told, with a warning. The time is taken behind it: on a
// large host the kernel takes a while over the file, at both readings alike.
func (w *Watch) readInterrupts() interrupts {
	cards, err := host.Root{}.CardInterrupts()
	w.warn(err)
	return interrupts{at: time.Now(), cards: cards}
}

func (w *Watch) warn(err error) {
	if err != nil {
		w.warnings = append(w.warnings, err.Error())
	}
}

// Host watches the running system for the duration of o. The errors are those of [Begin], and that
// of ctx when it ends first.
func Host(ctx context.Context, root host.Root, o Options) (*Span, error) {
	if o.Duration <= 0 {
		o.Duration = defaultDuration
	}
	w, err := Begin(root, o)
	if err != nil {
		return nil, err
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	// Nothing is looked at in between: what costs nothing cannot disturb, and a peak between two
	// readings is in their difference.
	case <-time.After(min(o.Duration, MaxDuration)):
	}
	return w.End()
}
