package goal

import (
	"fmt"

	"github.com/linerate/linerate/internal/base/unit"
)

// Path is what was measured of a path before any change. Zero values are unknown and bound nothing.
type Path struct {
	// IdleRTTSeconds is the smallest round trip of the idle path, unless a setting of either end
	// could shorten it.
	IdleRTTSeconds float64
	// CeilingBitsPerSec is the most that the path can carry, and CeilingWhy the reason as a clause:
	// "eth0 of the far host is a 1 Gb/s link".
	CeilingBitsPerSec float64
	CeilingWhy        string
	Streams           int // concurrent transactions; 0: one
}

// UnreachableError reports a bound that no setting can meet on this path.
type UnreachableError struct {
	Bound  Bound
	Reason string // with the measured number
}

// Error returns one sentence.
func (e *UnreachableError) Error() string {
	return fmt.Sprintf("objective %s: cannot be reached on this path: %s", e.Bound, e.Reason)
}

// Hint returns what to do next.
func (e *UnreachableError) Hint() string {
	return "ask for what the path can give, or omit the bound"
}

// Unreachable returns an *UnreachableError for the first bound that the path cannot meet, or nil.
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
			return fmt.Sprintf("its idle round trip is %s", unit.FormatSeconds(p.IdleRTTSeconds))
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
