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

// Watch is a host after its first reading. One goroutine uses it.
type Watch struct {
	options    Options
	counters   *host.Counters
	interrupts interrupts
	sockets    *marks // nil: not requested, or not reported by the kernel
	warnings   []string
}

// interrupts is a reading of the interrupts of cards.
type interrupts struct {
	at    time.Time
	cards []host.CardInterrupts
}

// Begin takes the first reading, in the network namespace of the calling thread. If that is not the
// process's namespace, the caller keeps its thread locked until [Watch.End]. Begin fails for a host
// without any counters, and with errors.ErrUnsupported for an archive, which is one moment; other
// unreadable parts are warnings of the span.
func Begin(root host.Root, o Options) (*Watch, error) {
	if root.Dir != "" || root.FS != nil {
		return nil, fmt.Errorf("watch host: %w: an archive is one moment", errors.ErrUnsupported)
	}
	w := &Watch{options: o}
	// The counters come last here and first in End, so that they exclude the work of the other
	// readings.
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

// End takes another reading and returns the span since [Begin]. It may be called again, for a
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

// readInterrupts leaves out what cannot be read, with a warning. It takes the time after the read:
// on a large host the kernel takes long to print the file, at both readings.
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

// Host watches the running system for the duration of o. It returns the errors of [Begin], and that
// of ctx if that ends first.
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
	// Nothing is read during the pause: sleeping disturbs nothing, and the difference of the two
	// readings includes any peak.
	case <-time.After(min(o.Duration, MaxDuration)):
	}
	return w.End()
}
