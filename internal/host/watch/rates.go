package watch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/linerate/linerate/internal/host"
)

// Interrupts watches the interrupts of cards for an interval and adds their rates to s, a snapshot
// of the running system: for each interrupt over all CPUs and on each, as in sar -I and mpstat -I.
// It is separate from a snapshot because a rate takes time. It returns errors.ErrUnsupported for an
// archive, which is one moment, and the error of ctx if that ends first; s is then unchanged.
func Interrupts(ctx context.Context, root host.Root, s *host.Snapshot, interval time.Duration) error {
	if root.Dir != "" || root.FS != nil {
		return fmt.Errorf("interrupt rates: %w: an archive is one moment", errors.ErrUnsupported)
	}
	read := func() (interrupts, error) {
		cards, err := root.CardInterrupts()
		// The time is taken after the read: on a large host the kernel takes long to print the
		// file, at both readings.
		return interrupts{at: time.Now(), cards: cards}, err
	}
	before, err := read()
	if err != nil {
		return fmt.Errorf("interrupt rates: %w", err)
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	// A clock and no ticker: rates divide by the time that passed, so a late wake-up does no harm.
	case <-time.After(interval):
	}
	after, err := read()
	if err != nil {
		return fmt.Errorf("interrupt rates: %w", err)
	}
	interruptRates(s, before, after)
	return nil
}

// interruptRates adds the differences of two readings to s.
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
				continue // the driver changed its vectors between the readings
			}
			// The totals become those of the later reading, so that a CPU which served the
			// interrupt for the first time is included.
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
