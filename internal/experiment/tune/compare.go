package tune

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/base/unit"
)

// decision is the result of a comparison.
type decision int

const (
	undecided decision = iota
	better             // the lower end beats the bar and no guard-rail is worse
	worse              // the upper end is below no change, or a guard-rail is proven worse than its bound
	unproven           // neither, after the last look or because more pairs were futile
)

// question is one comparison: does b beat a? A nil arm is the original, without settings on top.
type question struct {
	phase  Phase
	trial  int
	about  placed
	a, b   arm
	within time.Duration // since the start; 0: no bound; trials compute their own
	bar    bar
}

// bar is what b must reach, in logarithms of the ratio, and the looks at which the comparison
// decides.
type bar struct {
	plan     *stats.Boundary
	low      float64 // the lower end must lie above
	estimate float64 // the estimate must reach
	futile   float64 // a true effect below this is not worth more pairs
}

// bar returns the bar of a phase. of is how many tests share the risk; 0 and 1 mean no sharing.
//
// A trial asks whether there is a useful gain. Confirmation and ablation test what has passed that
// once, with independent data: the gain must be above nothing beyond doubt, and its estimate still
// useful. A change must pass both tests, so that a useless one stays with the product of the two
// risks, 1 in 1600 at 95 %. A soak asks only whether the gain still exists.
func (s *session) bar(phase Phase, of int) bar {
	b := bar{plan: s.plan, estimate: s.useful(), futile: s.promise}
	switch phase {
	case PhaseTrial:
		b.low, b.estimate = s.threshold, s.threshold
	case PhaseAblation:
		b.plan = s.shared(of)
	case PhaseConfirmation:
		b.futile = s.useful()
	case PhaseSoak:
		b.estimate, b.futile = 0, 0
	}
	return b
}

// useful returns the logarithm of the smallest useful gain.
func (s *session) useful() float64 { return math.Log1p(s.cfg.MinUsefulEffect) }

// answer is the result of a comparison with its evidence.
type answer struct {
	effect   Effect
	decision decision
	reason   string
	guards   []GuardRun
	unseen   string  // which limit cannot be judged, as a clause
	vetoed   bool    // worse only because of a guard-rail: the objective gained
	loss     float64 // the largest share that a disturbance can have cost a segment; 0: all were clean
	profiles []ArmProfile
}

// pairs collects the observations of both arms.
//
// Guards hold only pairs in which both arms reported the guard-rail: a difference needs both, and
// an occasionally missing guard (no ping answered) must not shift the pairing.
type pairs struct {
	a, b   []float64
	loss   [2][]float64 // of a and b: the share that disturbances can have cost at most
	guards map[string][2][]float64

	profiles armProfiles
}

func (p *pairs) add(a, b Observation) {
	p.a = append(p.a, a.Objective)
	p.b = append(p.b, b.Objective)
	p.loss[0], p.loss[1] = append(p.loss[0], a.LossRatio), append(p.loss[1], b.LossRatio)
	p.profiles.add(0, a.Profiles)
	p.profiles.add(1, b.Profiles)
	if p.guards == nil {
		p.guards = map[string][2][]float64{}
	}
	for name, v := range finite(a.Guards) {
		if w, ok := finite(b.Guards)[name]; ok {
			both := p.guards[name]
			p.guards[name] = [2][]float64{append(both[0], v), append(both[1], w)}
		}
	}
}

// whole returns the objectives of an arm, 0 or 1, as they would be if disturbances had cost it all
// that they can have cost.
func (p *pairs) whole(arm int) []float64 {
	measured := [2][]float64{p.a, p.b}[arm]
	out := make([]float64, len(measured))
	for i, v := range measured {
		out[i] = v / (1 - p.loss[arm][i])
	}
	return out
}

// compare measures pairs of a and b until a planned look decides. Beside an error it returns the
// partial answer.
//
// Looking after every pair and stopping at the first good moment would keep a useless knob in more
// than a fifth of all tries (simulated for looks after each of 5 to 30 pairs at 5 %). So it decides
// at the planned looks only, by the boundary that accounts for all of them.
func (s *session) compare(ctx context.Context, q question) (answer, error) {
	s.resigned = false
	var got pairs
	var out answer
	for n := 1; ; n++ {
		next := q.bar.nextLook(n)
		if q.phase == PhaseTrial {
			// the first pairs show how long a change takes, and so the confirmation
			q.within = s.trialsEnd(len(q.b))
		}
		err := s.pair(ctx, q, n-1, next.Pairs, &got)
		if err != nil {
			return out, err
		}
		out = s.weigh(q.bar, got)
		s.emit(Event{
			Kind: EventEstimate, Phase: q.phase, Pair: n, Pairs: next.Pairs, Effect: out.effect,
			Knob: q.about.setting.Knob, Side: q.about.side, From: q.about.from, To: q.about.setting.Value,
			Text: fmt.Sprintf("pair %d of %d: %s", n, next.Pairs, out.effect),
		})
		if out.decision != undecided {
			out.profiles = got.profiles.compared()
			return out, nil
		}
	}
}

// weigh returns what the pairs so far show: an effect at any number of pairs, guard-rails and a
// decision at a planned look only. It uses neither a clock nor a host, so that the same code judges
// a stored run again.
func (s *session) weigh(bar bar, got pairs) answer {
	ratios := stats.PairedLogRatio(got.a, got.b)
	n := len(ratios)
	next := bar.nextLook(n)
	if n != next.Pairs {
		// For display only: no decision rests on an interval between looks.
		return answer{effect: effectOf(n, stats.SignedRank(ratios, s.cfg.Confidence))}
	}
	out := answer{effect: effectOf(n, bar.plan.Interval(ratios))}
	out.guards, out.unseen = s.judgeGuards(bar.plan, got, next)
	// The effect is what was measured. A gain must be one even if disturbances cost only the old
	// settings, and a loss must be one even if they cost only the new ones.
	least := stats.PairedLogRatio(got.whole(0), got.b)
	interval := bar.plan.Interval(least)
	interval.High = bar.plan.Interval(stats.PairedLogRatio(got.a, got.whole(1))).High
	out.loss = max(slices.Max(got.loss[0]), slices.Max(got.loss[1]))
	s.decide(bar, least, interval, &out)
	return out
}

// pair measures both arms, in an order that a coin decides.
//
// It measures the arms directly after each other: slow drift, such as the load of a neighbour, is
// the same in both and cancels in the ratio. For the same reason it drops the whole pair if the
// second half fails.
func (s *session) pair(ctx context.Context, q question, index, planned int, into *pairs) error {
	at := place{phase: q.phase, trial: q.trial, pair: index, pairs: planned, about: q.about, within: q.within}
	arms := []struct {
		name string
		arm  arm
		got  Observation
	}{{name: "A", arm: q.a}, {name: "B", arm: q.b}}
	first := s.random.IntN(2)
	for _, i := range []int{first, 1 - first} {
		if err := s.switchTo(ctx, arms[i].arm); err != nil {
			return err
		}
		at.arm = arms[i].name
		got, err := s.measure(ctx, at)
		if err != nil {
			return err
		}
		arms[i].got = got
	}
	into.add(arms[0].got, arms[1].got)
	return nil
}

// nextLook returns the first planned look at n pairs or later. There always is one, because a
// comparison ends at the last look.
func (b bar) nextLook(n int) stats.Look {
	i, _ := b.plan.LookAt(n)
	return b.plan.Looks[i]
}

// decide applies the rules at a look.
//
// The cases are in order of strength. Worse is tested against no change and not against the
// threshold: a change need not be proven very harmful to be reverted. Guard-rails matter only for
// what would be kept. Intervals are of logarithms, so 0 is no change.
func (s *session) decide(bar bar, ratios []float64, interval stats.Interval, out *answer) {
	effect, needed := out.effect, 100*math.Expm1(max(bar.low, bar.estimate))
	ask, prospect := fmt.Sprintf(", %.1f %% needed", needed), fmt.Sprintf("the %.1f %% needed", needed)
	if needed == 0 {
		ask, prospect = "", "any gain"
	}
	switch last := len(ratios) == bar.plan.MaxPairs(); {
	case interval.High < 0:
		out.decision, out.reason = worse, fmt.Sprintf("worse: %s", effect)
	case interval.Low > bar.low && interval.Estimate >= bar.estimate:
		if reason := veto(out.guards); reason != "" {
			out.decision, out.vetoed, out.reason = worse, true, fmt.Sprintf("gains %s, but %s", effect, reason)
		} else if out.unseen != "" {
			out.decision, out.reason = unproven,
				fmt.Sprintf("gains %s, but %s and its limit cannot be held", effect, out.unseen)
		} else if bar.low > 0 {
			out.decision, out.reason = better, fmt.Sprintf("gains %s, more than the %.1f %% needed", effect, needed)
		} else {
			out.decision, out.reason = better, fmt.Sprintf("gains %s beyond doubt", effect)
		}
	case last:
		out.decision, out.reason = unproven, fmt.Sprintf("not proven: %s after %d pairs%s", effect, len(ratios), ask)
	case s.futile(bar, ratios, interval.Estimate):
		out.decision, out.reason = unproven, fmt.Sprintf("not proven: %s after %d pairs and no prospect of %s", effect,
			len(ratios), prospect)
	}
	switch cost := unit.FormatPercent(out.loss); {
	case out.loss == 0:
	case out.decision == better:
		out.reason += fmt.Sprintf(", even if disturbances cost only the old settings up to %s", cost)
	case out.decision == unproven:
		out.reason += fmt.Sprintf("; disturbances can have cost a segment up to %s, which a gain must exceed", cost)
	}
}

// futileQuantile is how sure a comparison must be, in standard errors (99 %), that no useful gain
// exists.
const futileQuantile = 2.326

// futile reports whether more pairs have no prospect: the gain that the pilot promised to find is
// ruled out. Stopping for futility can only lower the rate of false keeps, so the boundary need not
// account for it; it costs a hundredth of the power.
//
// The spread is the larger one of the pilot and of these pairs: each is sometimes small by chance,
// and too small a spread would end a comparison that can still prove something. On a quiet bench
// this rule ends a useless knob at the first look, which makes many candidates affordable.
func (s *session) futile(bar bar, ratios []float64, estimate float64) bool {
	spread := max(s.spread, stats.SpreadAround(ratios, estimate))
	return estimate+futileQuantile*spread/math.Sqrt(float64(len(ratios))) < bar.futile
}
