package diagnose

import (
	"cmp"
	"math"
	"slices"

	"github.com/linerate/linerate/internal/diagnose/cards"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/diagnose/flows"
	"github.com/linerate/linerate/internal/diagnose/processors"
	"github.com/linerate/linerate/internal/diagnose/tables"
)

// certainty is the order in which findings of equal severity are told: first what is a fact of the
// hardware, then what makes traffic fail outright, then where packets were counted dead, then what
// the kernel says held the flow, then what follows from rates and round trips, then processors, and
// at last what costs latency alone.
var certainty = []evidence.Code{
	evidence.HalfDuplex, evidence.LinkNegotiatedLow, evidence.CRCErrors, evidence.BusLimited,

	evidence.MTUBlackHole, evidence.MTUMismatch, evidence.ConntrackFull, evidence.NeighbourTableFull,
	evidence.ListenOverflow, evidence.PortExhaustion,

	evidence.RXRingOverrun, evidence.SoftnetBacklogDrops, evidence.QdiscDrops, evidence.TXQueueDrops,
	evidence.PauseFrames, evidence.UDPSocketOverflow,
	evidence.TCPMemoryPressure,

	evidence.WindowScalingOff, evidence.RouteWindowClamped, evidence.ReceiveWindowLimited, evidence.SendBufferLimited,
	evidence.ApplicationLimited,

	evidence.Policer, evidence.Reordering, evidence.TimeoutsIncast, evidence.PathLoss,
	evidence.CongestionControlMismatch, evidence.Bufferbloat,

	evidence.CPUSteal, evidence.RSSImbalance, evidence.FirewallCost, evidence.NUMAMisplaced, evidence.CPUPowerState,
	evidence.InterruptStorm,
	evidence.OffloadsOff, evidence.MTUSmall, evidence.SoftirqCPUSaturated, evidence.CPUSaturated,
	evidence.NAPIBudgetExhausted, evidence.EmulatedNIC,

	evidence.InterruptModerationLatency, evidence.DelayedACKStall, evidence.SlowStartAfterIdle,
}

// Rules are all that there are, in the order of certainty. The slice belongs to the caller.
func Rules() []evidence.Rule {
	all := slices.Concat(flows.Rules(), cards.Rules(), processors.Rules(), tables.Rules())
	slices.SortStableFunc(all, func(a, b evidence.Rule) int {
		return cmp.Compare(slices.Index(certainty, a.Code), slices.Index(certainty, b.Code))
	})
	return all
}

// Verdict is what a case comes to.
type Verdict struct {
	Findings []evidence.Finding // most important first; never empty
	Wanted   []evidence.Probe   // runs that rules ask for before they answer
	// what could not be seen, the largest gap first; the findings' confidence is lowered by it
	// already
	Blind []Blind
}

// Judge says what limits the case, most important first. It never gives an empty answer: "nothing
// found" and "too noisy to say" are findings.
func Judge(c evidence.Case) []evidence.Finding { return Examine(c).Findings }

// Examine judges a case and tells which further runs would sharpen the verdict.
//
// With several loaded runs the slowest direction is judged first, and a code found at one place in
// several of them counts once.
func Examine(c evidence.Case) Verdict {
	loaded := evidence.FlowsOf(&c)
	found, held := ask(&c, loaded)
	if len(loaded) == 0 {
		for _, x := range judgeSettings(c) {
			found = add(found, &x)
		}
	}
	found = mute(found)
	for _, f := range loaded {
		// Where a fault was found, a flat rate is no proof of a full path; a link whose speed is a
		// fact needs no inference.
		if x := linkRateReached(f); x != nil && (!held[f] || f.AtLinkRate()) {
			found = add(found, x)
		}
	}
	for _, f := range loaded {
		found = add(found, measurementUnreliable(f))
	}
	if !slices.ContainsFunc(found, func(x evidence.Finding) bool { return x.Code != evidence.MeasurementUnreliable }) {
		if len(loaded) > 0 {
			found = append(found, healthy(loaded[0]))
		} else {
			found = append(found, quiet(&c))
		}
	}
	blind := dim(&c, loaded, found)
	return Verdict{Findings: arrange(found), Wanted: c.Wanted(), Blind: blind}
}

// ask puts the case to every rule, and tells which flows something was found to hold.
//
// A full link explains everything else that a flow may show, so rules on a flow are not asked about
// one; rules on hosts are, as what they find need not be of our flow.
func ask(c *evidence.Case, loaded []*evidence.Flow) (found []evidence.Finding, held map[*evidence.Flow]bool) {
	spans := evidence.SpansOf(c)
	held = make(map[*evidence.Flow]bool)
	take := func(x *evidence.Finding, of ...*evidence.Flow) {
		found = add(found, x)
		for _, f := range of {
			held[f] = held[f] || x != nil && severe(*x) <= severe(evidence.Finding{Severity: evidence.Warning})
		}
	}
	for _, r := range Rules() {
		switch {
		case r.Flow != nil:
			for _, f := range loaded {
				if !f.AtLinkRate() {
					take(r.Flow(f), f)
				}
			}
		case r.Span != nil:
			for _, s := range spans {
				take(r.Span(s), loaded...)
			}
		case r.Case != nil:
			take(r.Case(c), loaded...)
		}
	}
	return found, held
}

// add takes a finding in, once for each code and place: the severest of several, and the first of
// equals.
func add(all []evidence.Finding, x *evidence.Finding) []evidence.Finding {
	if x == nil {
		return all
	}
	i := slices.IndexFunc(all, func(y evidence.Finding) bool { return y.Code == x.Code && y.Where == x.Where })
	switch {
	case i < 0:
		return append(all, *x)
	case severe(*x) < severe(all[i]):
		all[i] = *x
	}
	return all
}

// severe is 0 for the severest.
func severe(f evidence.Finding) int {
	return slices.Index([]evidence.Severity{evidence.Critical, evidence.Warning, evidence.Notice, evidence.Info},
		f.Severity)
}

// arrange sorts by severity and keeps the order of certainty among equals, and makes every list
// present. A full link comes before what is merely wrong, noise that was merely noticed after every
// verdict, also after healthy.
//
// It is also where what the far host has said is made safe for JSON: confidence is cut to 0…1, and
// numbers that JSON cannot hold are dropped, here and not in the rules.
func arrange(all []evidence.Finding) []evidence.Finding {
	rank := func(f evidence.Finding) float64 {
		switch {
		case f.Severity == evidence.Info && f.Code == evidence.MeasurementUnreliable:
			return 4
		case f.Code == evidence.LinkRateReached:
			return 1.5 // it says what limits; a notice does not
		}
		return float64(severe(f))
	}
	slices.SortStableFunc(all, func(a, b evidence.Finding) int { return cmp.Compare(rank(a), rank(b)) })
	for i := range all {
		f := &all[i]
		if math.IsNaN(f.Confidence) {
			f.Confidence = 0
		}
		f.Confidence = min(max(f.Confidence, 0), 1)
		// A far host may report anything; a number that is none is no evidence.
		f.Evidence = slices.DeleteFunc(f.Evidence, func(e evidence.Evidence) bool {
			x, ok := e.Value.(float64)
			return ok && (math.IsNaN(x) || math.IsInf(x, 0))
		})
		if f.Evidence == nil {
			f.Evidence = []evidence.Evidence{}
		}
		if f.Rejected == nil {
			f.Rejected = []string{}
		}
		if f.Remedy.Knobs == nil {
			f.Remedy.Knobs = []string{}
		}
		for _, c := range f.Remedy.Settings {
			if name := string(c.Knob); !slices.Contains(f.Remedy.Knobs, name) {
				f.Remedy.Knobs = append(f.Remedy.Knobs, name)
			}
		}
	}
	return all
}
