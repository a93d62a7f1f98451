package tune

import (
	"fmt"
	"math"
	"slices"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/change/knob"
)

// Rules are the rules for judging a stored run again. Zero fields are those of the run itself.
type Rules struct {
	Confidence      float64 // of every interval, two-sided, 0…1
	MinUsefulEffect float64 // smallest useful relative gain; at least LeastUsefulEffect
}

// Reanalysis is a stored run judged again from its raw segments.
type Reanalysis struct {
	Confidence      float64      `json:"confidence_ratio"`
	MinUsefulEffect float64      `json:"min_useful_effect_ratio"`  // as requested; the noise may require more
	OwnRules        bool         `json:"own_rules"`                // judged by the rules of the run itself
	RulesUnknown    bool         `json:"rules_unknown,omitempty"`  // not recorded; the present defaults apply
	Pilot           *Pilot       `json:"pilot,omitempty"`          // absent: unfinished, so nothing can be judged
	Comparisons     []Comparison `json:"comparisons"`              // in their original order
	Disagreements   int          `json:"disagreements_total"`      // comparisons with another decision now
	Changed         int          `json:"changed_effects_total"`    // stored effects not reproduced; 0 by the own rules
	Segments        int          `json:"segments_total"`           // valid ones
	Discarded       int          `json:"discarded_segments_total"` // invalid ones
}

// Comparison is one comparison of two arms, judged again.
type Comparison struct {
	Phase   Phase      `json:"phase"`
	Trial   int        `json:"trial"` // as in Segment
	Knob    knob.ID    `json:"knob,omitempty"`
	Side    Side       `json:"side,omitempty"`
	To      knob.Value `json:"to,omitempty"`
	Joint   bool       `json:"together,omitempty"` // the first of several changes that were tried as one
	Stored  *Effect    `json:"stored,omitempty"`   // as stored; absent: the run stored none
	Again   Effect     `json:"again"`
	Decided Verdict    `json:"decided,omitempty"` // decision of the run; absent: none
	Judged  Verdict    `json:"judged"`            // now
	Reason  string     `json:"reason"`            // of the present judgement
	Guards  []GuardRun `json:"guards,omitempty"`
	Level   knob.Value `json:"level,omitempty"` // the level that the search would choose now, if different
	Differs bool       `json:"differs"`         // decision differs
}

// maxLooks bounds the plan in a file: each look costs time, and no plan of this program has more
// than a handful.
const maxLooks = 20

// maxSharing bounds the number of tests that share a risk according to a file.
const maxSharing = 100

// Reanalyse judges a stored run again, from its segments alone, with the functions that judged it
// live. By the run's own rules it reproduces every effect to the last bit. By other rules it shows
// what each comparison would have decided with the same pairs: one that the new rules decide
// earlier ends there, and one that needs more pairs than were measured is not proven. The set of
// comparisons is fixed: a change that the new rules would keep has no later trials built on it.
//
// It fails if the rules cannot decide anything, or if the segments are not those of a linerate
// experiment.
func Reanalyse(o *Outcome, rules Rules) (*Reanalysis, error) {
	s, out, err := newJudge(o, rules)
	if err != nil {
		return nil, fmt.Errorf("judge again: %w", err)
	}
	groups, err := comparisonsOf(o.Segments, s.plan.MaxPairs())
	if err != nil {
		return nil, fmt.Errorf("judge again: %w", err)
	}
	for _, g := range o.Segments {
		if g.Discard == "" {
			out.Segments++
		} else {
			out.Discarded++
		}
	}
	for _, g := range groups {
		if g.phase == PhasePilot {
			out.Pilot = s.pilotAgain(o, g, out.Pilot)
		}
	}
	if out.Pilot == nil {
		return out, nil
	}
	for _, g := range groups {
		if g.phase == PhasePilot || g.phase == PhaseLevels || len(g.both) == 0 {
			continue
		}
		c := s.compareAgain(o, g)
		if c.Differs {
			out.Disagreements++
		}
		if c.Stored != nil && *c.Stored != c.Again {
			out.Changed++
		}
		out.Comparisons = append(out.Comparisons, c)
	}
	return out, nil
}

// newJudge returns a session without hosts and prober, which can only judge.
func newJudge(o *Outcome, rules Rules) (*session, *Reanalysis, error) {
	design := o.Design
	out := &Reanalysis{RulesUnknown: design == nil, OwnRules: rules == Rules{}, Comparisons: []Comparison{}}
	if design == nil {
		design = designOf(DefaultConfig())
	}
	if len(design.Looks) > maxLooks {
		return nil, nil, fmt.Errorf("the run plans %d looks, more than linerate ever plans", len(design.Looks))
	}
	cfg := design.config()
	if rules.Confidence != 0 {
		cfg.Confidence = rules.Confidence
	}
	if rules.MinUsefulEffect != 0 {
		cfg.MinUsefulEffect = rules.MinUsefulEffect
	}
	// A pilot too short for another confidence has open ends but still shows its noise, which is
	// all that is needed here. Checking a longer one takes longer.
	cfg.PilotPairs = 64
	cfg, err := cfg.complete()
	if err != nil {
		return nil, nil, err
	}
	plan, err := cfg.plan()
	if err != nil {
		return nil, nil, err
	}
	out.Confidence, out.MinUsefulEffect = cfg.Confidence, cfg.MinUsefulEffect
	return &session{cfg: cfg, plan: plan, out: emptyOutcome(), quantile: normalQuantile((1 + cfg.Confidence) / 2)}, out,
		nil
}

// group holds the segments of one comparison.
type group struct {
	phase Phase
	trial int
	both  [][2]Observation // A and B of each pair, in order of completion
}

// first returns what was known after n pairs.
func (g *group) first(n int) pairs {
	var got pairs
	for _, o := range g.both[:n] {
		got.add(o[0], o[1])
	}
	return got
}

// comparisonsOf groups segments by comparison, in order of their beginning. A pair with a missing
// half does not count, just as it did not count live.
func comparisonsOf(segments []Segment, most int) ([]*group, error) {
	type part struct {
		phase Phase
		trial int
	}
	type half struct {
		part
		pair int
	}
	var all []*group
	parts := map[part]*group{}
	halves := map[half]Segment{}
	for _, s := range segments {
		if s.Discard != "" || s.Arm != "A" && s.Arm != "B" || s.Phase == PhaseLevels {
			continue
		}
		p := part{s.Phase, s.Trial}
		g := parts[p]
		if g == nil {
			g = &group{phase: s.Phase, trial: s.Trial}
			parts[p], all = g, append(all, g)
		}
		other, waiting := halves[half{p, s.Pair}]
		switch {
		case !waiting:
			halves[half{p, s.Pair}] = s
			continue
		case other.Arm == s.Arm:
			return nil, fmt.Errorf("%s %d has arm %s of pair %d twice", s.Phase, s.Trial, s.Arm, s.Pair)
		}
		a, b := other, s
		if s.Arm == "A" {
			a, b = s, other
		}
		delete(halves, half{p, s.Pair})
		g.both = append(g.both,
			[2]Observation{a.observation(), b.observation()})
		if s.Phase != PhasePilot && len(g.both) > most {
			return nil, fmt.Errorf("%s %d has more than the %d pairs that were planned", s.Phase, s.Trial, most)
		}
	}
	return all, nil
}

// observation returns what a segment that counts contributes to its pair. A loss that no live run
// can have is none.
func (s Segment) observation() Observation {
	o := Observation{Objective: s.Objective, Guards: s.Guards, LossRatio: s.LossRatio}
	if !o.bounded() {
		o.LossRatio = 0
	}
	return o
}

// pilotAgain evaluates one attempt of the pilot. Only complete attempts count; the last one stays.
func (s *session) pilotAgain(o *Outcome, g *group, before *Pilot) *Pilot {
	n := len(g.both)
	if o.Pilot == nil || n < 2 || n < o.Pilot.Pairs || n > 1000 {
		return before
	}
	p := &Pilot{Attempts: 1}
	if before != nil {
		p.Attempts = before.Attempts + 1
	}
	got := g.first(n)
	s.weighPilot(p, got, stats.PairedLogRatio(got.a, got.b))
	return p
}

// compareAgain replays the pairs of one comparison and stops at the look that decides.
func (s *session) compareAgain(o *Outcome, g *group) Comparison {
	c := Comparison{Phase: g.phase, Trial: g.trial}
	n := len(g.both)
	var got answer
	bar := s.bar(g.phase, sharing(o, g))
	for _, look := range bar.plan.Looks {
		if look.Pairs > n {
			break
		}
		if got = s.weigh(bar, g.first(look.Pairs)); got.decision != undecided {
			break
		}
	}
	if got.decision == undecided {
		got = s.weigh(bar, g.first(n))
		got.reason = fmt.Sprintf("undecided: %s after %d pairs, the next look is at %d", got.effect, n,
			bar.nextLook(min(n+1, bar.plan.MaxPairs())).Pairs)
	}
	c.Again, c.Guards, c.Reason, c.Judged = got.effect, got.guards, got.reason, verdictOf(got.decision)
	s.recall(&c, o)
	return c
}

// sharing returns how many tests shared the risk of an ablation, according to the run.
func sharing(o *Outcome, g *group) int {
	if g.phase != PhaseAblation || g.trial < 0 || g.trial >= len(o.Ablation) {
		return 0
	}
	return min(o.Ablation[g.trial].Sharing, maxSharing)
}

// verdictOf returns the verdict of a decision.
func verdictOf(d decision) Verdict {
	switch d {
	case better:
		return Kept
	case worse:
		return RevertedWorse
	}
	return RevertedUnproven
}

// keptIf returns the verdict of a test that asks only whether kept changes stay.
func keptIf(stays bool) Verdict {
	if stays {
		return Kept
	}
	return RevertedUnproven
}

// recall finds what the run itself recorded about a comparison, and marks where the judgement
// differs.
func (s *session) recall(c *Comparison, o *Outcome) {
	switch c.Phase {
	case PhaseTrial:
		if c.Trial < 0 || c.Trial >= len(o.Trials) {
			return
		}
		t := o.Trials[c.Trial]
		c.Knob, c.Side, c.To, c.Joint, c.Stored, c.Decided = t.Knob, t.Side, t.To, t.Joint, &t.Effect, t.Verdict
		// The confirmation or the ablation, which have comparisons of their own, may have undone
		// later what a trial kept.
		later := o.RolledBack ||
			slices.ContainsFunc(o.Ablation,
				func(a Ablation) bool { return a.Knob == t.Knob && a.Side == t.Side && !a.Needed })
		c.Differs = c.Judged != c.Decided && !(later && c.Decided == RevertedUnproven && c.Judged == Kept)
		if level := s.levelAgain(o, c.Trial); level != t.To && level != "" {
			c.Level = level
		}
	case PhaseAblation:
		if c.Trial < 0 || c.Trial >= len(o.Ablation) {
			return
		}
		a := o.Ablation[c.Trial]
		c.Knob, c.Side, c.Stored, c.Decided = a.Knob, a.Side, &a.Effect, keptIf(a.Needed)
		c.Differs = (c.Judged == Kept) != a.Needed
	case PhaseConfirmation:
		if o.Final == nil || c.Trial != o.FinalAttempt() {
			return
		}
		c.Stored, c.Decided = o.Final, keptIf(!o.RolledBack || o.Soak != nil) // only a confirmed set soaks
		// A later ablation may still have undone the set.
		later := o.RolledBack && o.Soak == nil &&
			slices.ContainsFunc(o.Segments, func(s Segment) bool { return s.Phase == PhaseAblation })
		c.Differs = (c.Judged == Kept) != (c.Decided == Kept) && !later
	case PhaseSoak:
		if o.Soak == nil {
			return
		}
		c.Stored = &o.Soak.Effect
		if o.Soak.Untested {
			return
		}
		c.Decided = keptIf(o.Soak.Held)
		c.Differs = (c.Judged == Kept) != o.Soak.Held
	}
}

// levelAgain returns the level that the search before a trial would choose by the present rules;
// empty if there was no search.
func (s *session) levelAgain(o *Outcome, trial int) knob.Value {
	stored := o.Trials[trial].Levels
	if !slices.ContainsFunc(stored, func(l Level) bool { return l.Chosen }) {
		return ""
	}
	all := make([]*contender, len(stored))
	for i, l := range stored {
		all[i] = &contender{value: l.Value, refused: l.Refused}
		for _, g := range o.Segments {
			if g.Phase == PhaseLevels && g.Trial == trial && g.Arm == string(l.Value) && g.Discard == "" {
				all[i].scores = append(all[i].scores, math.Log(max(g.Objective, math.SmallestNonzeroFloat64)))
			}
		}
	}
	if !slices.ContainsFunc(all, func(l *contender) bool { return l.refused == "" && len(l.scores) > 0 }) {
		return ""
	}
	return s.smallestOfBest(all).value
}

// FinalAttempt returns the number of the confirmation behind Final, as in Segment.Trial; −1 if
// there was none. It is the last one, which an ablation that drops a change repeats, unless the
// time ran out in it: then the whole set stays and the previous one holds.
func (o *Outcome) FinalAttempt() int {
	attempt := -1
	for _, s := range o.Segments {
		if s.Phase == PhaseConfirmation {
			attempt = max(attempt, s.Trial)
		}
	}
	stays := func(a Ablation) bool {
		return !a.Needed && slices.ContainsFunc(o.Kept,
			func(c Change) bool { return c.Knob == a.Knob && c.Side == a.Side })
	}
	if attempt > 0 && slices.ContainsFunc(o.Ablation, stays) {
		attempt--
	}
	return attempt
}
