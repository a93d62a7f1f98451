package watch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/linerate/linerate/internal/host"
)

// Interrupts watches the interrupts of cards for an interval and puts their rates into s, a
// snapshot of the running system: of each interrupt over all CPUs and on each, as sar -I and mpstat
// -I have them. It is apart from a snapshot because a rate takes time. The error is
// errors.ErrUnsupported for an archive, which is one moment, and that of ctx when it ends first; s
// is then as it was.
func Interrupts(ctx context.Context, root host.Root, s *host.Snapshot, interval time.Duration) error {
	if root.Dir != "" || root.FS != nil {
		return fmt.Errorf("interrupt rates: %w: an archive is one moment", errors.ErrUnsupported)
	}
	read := func() (interrupts, error) {
		cards, err := root.CardInterrupts()
		// Behind the read: on a large host the kernel takes a while over the file, at both readings
		// alike.
		return interrupts{at: time.Now(), cards: cards}, err
	}
	before, err := read()
	if err != nil {
		return fmt.Errorf("interrupt rates: %w", err)
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	// A clock and no ticker: what is divided by is the time that passed, so a late wake-up costs
	// nothing.
	case <-time.After(interval):
	}
	after, err := read()
	if err != nil {
		return fmt.Errorf("interrupt rates: %w", err)
	}
	interruptRates(s, before, after)
	return nil
}

// interruptRates puts what came between two readings into s.
func interruptRates(s *host.Snapshot, before, after interrupts) {
	seconds := after.at.Sub(before.at).Seconds()
	if !(seconds > 0) {
		return
	}
	was, now := before.byNumber(), after.byNumber()
	for i := range s.Interfaces {
		card := &s.Interfaces[i]
		for j := range card.Interrupts {
			irq := &card.Interrupts[j]
			old, known := was[line{card.Name, irq.Number}]
			late, still := now[line{card.Name, irq.Number}]
			if !known || !still {
				continue // a driver that changes its vectors while one looks
			}
			// The totals become those of the later reading, so that a CPU which served it for the
			// first time just now is there as well.
			irq.Counts = nil
			var sum uint64
			for _, c := range late.Counts {
				n := counted(old.Counts, c)
				sum += n
				irq.Counts = append(irq.Counts,
					host.CPUCount{CPU: c.CPU, Total: c.Total, PerSec: perSecond(n, seconds)})
			}
			irq.PerSec = perSecond(sum, seconds)
		}
	}
}
