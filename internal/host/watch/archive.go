package watch

import (
	"fmt"
	"slices"
	"time"

	"github.com/linerate/linerate/internal/host"
)

// Reading is what one archive of a host has counted until it was taken: one of the two moments of a
// [Span].
type Reading struct {
	counters   *host.Counters
	interrupts interrupts
	warnings   []string
}

// ReadArchive takes the reading of an archive. It fails for an archive without any counters; other
// missing parts are warnings of the span.
func ReadArchive(root host.Root) (*Reading, error) {
	c, err := root.Counters()
	if err != nil {
		return nil, fmt.Errorf("read archive: %w", err)
	}
	r := &Reading{counters: c, interrupts: interrupts{at: c.Time}, warnings: slices.Clone(c.Warnings)}
	if r.interrupts.cards, err = root.CardInterrupts(); err != nil {
		r.warnings = append(r.warnings, err.Error())
	}
	return r, nil
}

// Since returns what happened between two archives. The caller ensures that they are of one boot of
// one host.
func (r *Reading) Since(before *Reading) *Span {
	s := span(before.counters, r.counters, before.interrupts, r.interrupts)
	s.Warnings = slices.Clone(r.warnings)
	return s
}

// SinceBoot returns everything counted since the host started. Its rates are means over that time:
// for a host that was busy for one hour of a year they say nothing about that hour. The share of
// one counter in another is reliable. A zero boot means not known, and gives no rates.
func (r *Reading) SinceBoot(boot time.Time) *Span {
	if boot.IsZero() {
		boot = r.counters.Time
	}
	// A reading at the moment of the start: every counter began at zero.
	begin := interrupts{at: boot}
	for _, card := range r.interrupts.cards {
		zero := host.CardInterrupts{Interface: card.Interface}
		for _, i := range card.Interrupts {
			zero.Interrupts = append(zero.Interrupts, host.Interrupt{Number: i.Number, Name: i.Name})
		}
		begin.cards = append(begin.cards, zero)
	}
	s := span(&host.Counters{Time: boot}, r.counters, begin, r.interrupts)
	s.Warnings = slices.Clone(r.warnings)
	return s
}
