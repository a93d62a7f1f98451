package diagnose

import (
	"cmp"
	"math"
	"slices"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/diagnose/cards"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/diagnose/flows"
	"github.com/linerate/linerate/internal/diagnose/processors"
	"github.com/linerate/linerate/internal/diagnose/tables"
)

// Rules returns all rules in the order of certainty. The slice belongs to the caller.
func Rules() []evidence.Rule {
	all := slices.Concat(flows.Rules(), cards.Rules(), processors.Rules(), tables.Rules())
	sorting.StableFunc(all, func(a, b evidence.Rule) int {
		return cmp.Compare(evidence.Order(a.Code), evidence.Order(b.Code))
	})
	return all
}

// Verdict is the result of examining a case.
type Verdict struct {
	Findings []evidence.Finding // most important first; never empty
	Wanted   []evidence.Probe   // runs that rules ask for before they decide
	// the gaps in the case, largest first; they have already lowered the confidence of the findings
	Blind []Blind
}

// Judge returns what limits the case, most important first. The answer is never empty: "nothing
// found" and "too noisy for a verdict" are findings.
func Judge(c evidence.Case) []evidence.Finding { return Examine(c).Findings }

// Examine judges a case and returns which further runs would sharpen the verdict.
//
// If the case has several loaded runs, the slowest direction comes first, and a code found at one
// place in several of them counts once.
func Examine(c evidence.Case) Verdict {
	loaded := evidence.FlowsOf(&c)
	rules := Rules()
	found, held := ask(&c, rules, loaded)
	if len(loaded) == 0 {
		for _, x := range judgeSettings(c) {
			found = add(found, &x)
		}
	}
	found = mute(found, symptomsOf(rules))
	if !named(found) {
		for _, f := range loaded {
			if x := localDrops(f); x != nil {
				found, held[f] = add(found, x), true
			}
		}
	}
	for _, f := range loaded {
		// If a fault was found, a flat rate does not prove a full path. A link of known speed needs
		// no inference.
		if x := linkRateReached(f); x != nil && (!held[f] || f.AtLinkRate()) {
			found = add(found, x)
		}
	}
	for _, f := range loaded {
		// A cause says why nothing arrived.
		if f.RateBitsPerSec <= 0 && !held[f] {
			found = add(found, nothingArrived(f))
			continue
		}
		found = add(found, measurementUnreliable(f))
	}
	if !slices.ContainsFunc(found, func(x evidence.Finding) bool { return x.Code != evidence.MeasurementUnreliable }) {
		if len(loaded) > 0 {
			found = append(found, healthy(loaded[0]))
		} else {
			found = append(found, quiet(&c))
		}
	}
	profiled(&c, found)
	blind := dim(&c, loaded, found)
	return Verdict{Findings: arrange(found), Wanted: c.Wanted(), Blind: blind}
}

// ofDrops are the findings that name a place of drops, however little those matter.
var ofDrops = []evidence.Code{evidence.CRCErrors, evidence.ConntrackFull, evidence.NeighbourTableFull,
	evidence.RXRingOverrun, evidence.SoftnetBacklogDrops, evidence.QdiscDrops, evidence.TXQueueDrops, evidence.Policer,
	evidence.HalfDuplex, evidence.TCPMemoryPressure}

// named reports whether a finding says what slows a flow, or where its packets went. A notice about
// something else does neither.
func named(found []evidence.Finding) bool {
	return slices.ContainsFunc(found, func(x evidence.Finding) bool {
		switch x.Severity {
		case evidence.Critical, evidence.Warning:
			return !x.Aside
		case evidence.Notice:
			return slices.Contains(ofDrops, x.Code)
		}
		return false
	})
}

// ask calls every rule, and returns the findings and the flows that at least one of them limits.
//
// A full link explains everything that a flow may show, so it calls no rule on such a flow. It
// still calls rules on hosts, whose findings may concern other traffic.
func ask(c *evidence.Case, rules []evidence.Rule, loaded []*evidence.Flow) (found []evidence.Finding,
	held map[*evidence.Flow]bool) {
	spans := evidence.SpansOf(c)
	held = make(map[*evidence.Flow]bool)
	take := func(x *evidence.Finding, of ...*evidence.Flow) {
		found = add(found, x)
		for _, f := range of {
			held[f] = held[f] || x != nil && !x.Aside &&
				severe(*x) <= severe(evidence.Finding{Severity: evidence.Warning})
		}
	}
	for _, r := range rules {
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

// add adds a finding unless the list has its code and place already. Of several it keeps the most
// severe one, and the first of equals.
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

// severe ranks severities: 0 is the most severe.
func severe(f evidence.Finding) int {
	return slices.Index([]evidence.Severity{evidence.Critical, evidence.Warning, evidence.Notice, evidence.Info},
		f.Severity)
}

// byLoss puts the findings of drops among equals in the order of their losses. They share the
// places that they had: a limit without drops has no share of the loss, and keeps its place.
func byLoss(equals []evidence.Finding) {
	var at []int
	var drops []evidence.Finding
	for i, f := range equals {
		if f.LostPerSec > 0 {
			at, drops = append(at, i), append(drops, f)
		}
	}
	sorting.StableFunc(drops, func(a, b evidence.Finding) int { return cmp.Compare(b.LostPerSec, a.LostPerSec) })
	for k, i := range at {
		equals[i] = drops[k]
	}
}

// arrange sorts findings by severity, those of drops among equals by what each place dropped, the
// rest by certainty, and replaces nil lists by empty ones. A full link comes before notices,
// because it names the limit. Of two faults equally severe, one that does not explain the run comes
// second. Noise that is only a remark comes last, even after healthy.
//
// It also makes the report of a far host, which may contain anything, safe for JSON: it limits
// confidence to 0…1 and drops numbers that JSON cannot represent, so that no rule has to.
func arrange(all []evidence.Finding) []evidence.Finding {
	rank := func(f evidence.Finding) float64 {
		switch {
		case f.Severity == evidence.Info && f.Code == evidence.MeasurementUnreliable:
			return 4
		case f.Code == evidence.LinkRateReached:
			return 1.5
		case f.Aside:
			return float64(severe(f)) + 0.25
		}
		return float64(severe(f))
	}
	sorting.StableFunc(all, func(a, b evidence.Finding) int { return cmp.Compare(rank(a), rank(b)) })
	for from := 0; from < len(all); {
		to := from + 1
		for to < len(all) && rank(all[to]) == rank(all[from]) {
			to++
		}
		byLoss(all[from:to])
		from = to
	}
	for i := range all {
		f := &all[i]
		if math.IsNaN(f.Confidence) {
			f.Confidence = 0
		}
		f.Confidence = min(max(f.Confidence, 0), 1)
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
