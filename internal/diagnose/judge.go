package diagnose

import (
	"cmp"
	"math"
	"slices"
)

// rule looks at one flow and says what it found, or nil.
type rule func(*flow) *Finding

// faultRules are asked in this order, which is also the order of certainty: what the kernel states outright first, what follows
// from rates last. Findings of equal severity keep it.
var faultRules = []rule{
	windowScalingOff,
	routeWindowClamped,
	receiveWindowLimited,
	sendBufferLimited,
	pathLoss,
	offloadsOff,
}

// explains says which symptoms a cause accounts for. A symptom found on the same flow as its cause is muted: repairing the cause
// is what helps, and two findings for one fault would only confuse.
//
// Both causes hold the window at a number of their own, and a held window looks like a small buffer at either end.
// The table has one level only: a cause is never itself a symptom of another one.
var explains = map[Code][]Code{
	WindowScalingOff:   {ReceiveWindowLimited, SendBufferLimited},
	RouteWindowClamped: {ReceiveWindowLimited, SendBufferLimited},
}

// Judge says what limits the case, most important first. It never gives an empty answer: "nothing found" and "too noisy to say"
// are findings. With several loaded runs the slowest direction is judged first, and a code found in several counts once.
func Judge(c Case) []Finding {
	flows := flowsOf(c)
	if len(flows) == 0 {
		return judgePassive(c)
	}
	var all []Finding
	for _, f := range flows {
		for _, found := range judgeFlow(f) {
			if !slices.ContainsFunc(all, func(x Finding) bool { return x.Code == found.Code && x.Where == found.Where }) {
				all = append(all, found)
			}
		}
	}
	if !slices.ContainsFunc(all, func(x Finding) bool { return x.Code != MeasurementUnreliable }) {
		all = append(all, healthy(flows[0]))
	}
	return arrange(all)
}

// judgeFlow asks the rules about one flow. A full link explains everything else that may be seen, so then no fault is looked for;
// and where a fault was found, a flat rate is no proof of a full path.
//
// The order is that of tests by price of a mistake: a link whose speed is a fact needs no inference, a path rate
// inferred from flatness is the weakest verdict of all and comes when nothing else has spoken.
func judgeFlow(f *flow) []Finding {
	var found []Finding
	if !f.atLinkRate() {
		for _, r := range faultRules {
			if x := r(f); x != nil {
				found = append(found, *x)
			}
		}
		found = mute(found)
	}
	if len(found) == 0 {
		if x := linkRateReached(f); x != nil {
			found = append(found, *x)
		}
	}
	if x := measurementUnreliable(f); x != nil {
		found = append(found, *x)
	}
	return found
}

// mute takes away what another finding explains, and lists it there.
func mute(found []Finding) []Finding {
	muted := map[Code]bool{}
	for i := range found {
		for _, symptom := range explains[found[i].Code] {
			present := slices.ContainsFunc(found, func(x Finding) bool { return x.Code == symptom })
			if present && !muted[found[i].Code] && !muted[symptom] {
				muted[symptom] = true
				found[i].Causes = append(found[i].Causes, symptom)
			}
		}
	}
	return slices.DeleteFunc(found, func(x Finding) bool { return muted[x.Code] })
}

// arrange sorts by severity and keeps the order of certainty among equals, and makes every list present. Noise that was merely
// noticed comes after every verdict, also after healthy.
//
// It is also where what the far host has said is made safe for JSON: confidence is cut to 0…1, and numbers that JSON
// cannot hold are dropped, here and not in the rules.
func arrange(all []Finding) []Finding {
	rank := func(f Finding) int {
		if f.Severity == Info && f.Code == MeasurementUnreliable {
			return 4
		}
		return slices.Index([]Severity{Critical, Warning, Notice, Info}, f.Severity)
	}
	slices.SortStableFunc(all, func(a, b Finding) int { return cmp.Compare(rank(a), rank(b)) })
	for i := range all {
		f := &all[i]
		if math.IsNaN(f.Confidence) {
			f.Confidence = 0
		}
		f.Confidence = min(max(f.Confidence, 0), 1)
		// A far host may report anything; a number that is none is no evidence.
		f.Evidence = slices.DeleteFunc(f.Evidence, func(e Evidence) bool {
			x, ok := e.Value.(float64)
			return ok && (math.IsNaN(x) || math.IsInf(x, 0))
		})
		if f.Evidence == nil {
			f.Evidence = []Evidence{}
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
