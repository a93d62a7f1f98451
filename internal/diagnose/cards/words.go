package cards

import (
	"fmt"
	"strconv"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
)

// lossFinding begins a finding about packets that a NIC lost at one place, out of those and the
// passed ones. Title and confidence are the caller's; listed are the tallies to show.
func (c card) lossFinding(code evidence.Code, severity evidence.Severity, t tally, passed float64, what string,
	listed ...tally) *evidence.Finding {
	return &evidence.Finding{Code: code, Severity: severity, Where: where(c.s), LostPerSec: c.s.PerSecond(t.n),
		Evidence: append(c.evidence(listed), c.lossEvidence(t.n, passed, what, t.counter)...),
		Rejected: append(notProcessor(c.s), notMeasured(c.s)...)}
}

// lossEvidence returns the figures that judge losses at one place: how many, out of how many, and
// what the flow lost.
func (c card) lossEvidence(lost, passed float64, what, counter string) []evidence.Evidence {
	s := c.s
	all := []evidence.Evidence{
		{Name: what, Value: lost / max(lost+passed, 1), Unit: "ratio", Source: c.source(counter)},
	}
	if perGB := s.PerGigabyte(lost); perGB > 0 {
		all = append(all, evidence.Evidence{Name: what + " for each gigabyte", Value: perGB, Unit: "packets",
			Source: c.source(counter)})
	}
	if again, ratio, known := repaired(s); known {
		source := "tcpi_total_retrans, less tcpi_dsack_dups (sender)"
		if s.Run.UDP != nil {
			source = "datagrams counted by both ends"
		}
		all = append(all, evidence.Evidence{Name: "packets that the flow lost", Value: again, Unit: "packets",
			Source: source},
			evidence.Evidence{Name: "share of the flow that was lost", Value: ratio, Unit: "ratio", Source: source})
	}
	return all
}

// notProcessor rejects a saturated CPU with its number; empty if it is saturated or unknown.
func notProcessor(s *evidence.Span) []string {
	if c := busiest(s); c.Known && c.Busy() < evidence.FullProcessor {
		return []string{fmt.Sprintf("Not the CPUs: the busiest one (CPU %d) was busy for %s of the time.", c.CPU,
			evidence.Percent(c.Busy()))}
	}
	return nil
}

// notMeasured says what counters since boot cannot show.
func notMeasured(s *evidence.Span) []string {
	if s.SinceBoot {
		return []string{"Not measured: whether it still happens. The counters cover all the time " + s.When() +
			"; `linerate diagnose` without a target watches the host for some seconds."}
	}
	return nil
}

// doublings returns at most five levels from a value up to a limit, each twice the one before, and
// the limit itself as the last.
func doublings(now, limit uint32) []knob.Value {
	var levels []knob.Value
	if now == 0 {
		return nil
	}
	for n := uint64(now) * 2; n < uint64(limit) && len(levels) < 4; n *= 2 {
		levels = append(levels, knob.Value(strconv.FormatUint(n, 10)))
	}
	if limit > now {
		levels = append(levels, knob.Value(strconv.FormatUint(uint64(limit), 10)))
	}
	return levels
}

// ethtool returns the name of a knob of this NIC.
func (c card) ethtool(name string) knob.ID { return knob.ID("ethtool:" + c.Name + "/" + name) }
