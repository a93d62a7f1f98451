package goal

import (
	"fmt"

	"github.com/linerate/linerate/internal/base/unit"
)

// Path is what was measured of a path before anything is changed. Zero values are not known and
// bound nothing.
type Path struct {
	// IdleRTTSeconds is the least round trip of the idle path, with nothing at either end that a
	// setting could shorten.
	IdleRTTSeconds float64
	// CeilingBitsPerSec is what the path can carry at the very most, and CeilingWhy the clause that
	// says why: "eth0 of the far host is a 1 Gb/s link".
	CeilingBitsPerSec float64
	CeilingWhy        string
	Streams           int // transactions under way at the same time; 0: one
}

// UnreachableError is a bound that this path cannot meet, whatever is tuned.
type UnreachableError struct {
	Bound  Bound
	Reason string // with the number that was measured
}

// Error is one sentence.
func (e *UnreachableError) Error() string {
	return fmt.Sprintf("objective %s: cannot be reached on this path: %s", e.Bound, e.Reason)
}

// Hint is what to do next.
func (e *UnreachableError) Hint() string {
	return "ask for what the path can give, or leave the bound out"
}

// Unreachable gives an *UnreachableError for the first bound that the path cannot meet, or nil.
func (o Objective) Unreachable(p Path) error {
	for _, b := range o.Bounds {
		if reason := p.refuses(terms[b.Term], b); reason != "" {
			return &UnreachableError{b, reason}
		}
	}
	return nil
}

func (p Path) refuses(t term, b Bound) string {
	switch t.guard {
	case GuardP50RTT, GuardP99RTT, GuardLoadedRTT, GuardLatency:
		if p.IdleRTTSeconds > 0 && b.Value < p.IdleRTTSeconds {
			return fmt.Sprintf("its round trip is %s when it is idle", unit.FormatSeconds(p.IdleRTTSeconds))
		}
	case GuardThroughput:
		if p.CeilingBitsPerSec > 0 && b.Value > p.CeilingBitsPerSec {
			return p.CeilingWhy
		}
	case GuardTransactions:
		if most := float64(max(p.Streams, 1)) / p.IdleRTTSeconds; p.IdleRTTSeconds > 0 && b.Value > most {
			return fmt.Sprintf("a round trip of %s allows %s transactions/s", unit.FormatSeconds(p.IdleRTTSeconds),
				unit.FormatCount(most))
		}
	}
	return ""
}
