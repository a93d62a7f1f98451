package tune

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/linerate/linerate/internal/stats"
)

// decision is what a comparison came to.
type decision int

const (
	undecided decision = iota
	better             // the lower end beats the threshold and no guard-rail is worse
	worse              // the upper end is below no change, or a guard-rail is proven worse than its bound
	unproven           // neither, after the last look or when going on was futile
)

// question is one comparison to make: does b beat a?
//
// A nil arm is the original: no setting on top of it.
type question struct {
	phase  Phase
	trial  int
	about  placed
	a, b   arm
	within time.Duration // since the start; 0: no bound
}

// answer is a comparison made.
type answer struct {
	effect   Effect
	decision decision
	reason   string
	guards   []GuardRun
}

// pairs collects the observations of both arms.
//
// Guards hold only pairs in which both arms reported the guard-rail: a difference needs both, and a guard that is
// sometimes missing (no ping came back) must not shift the pairing.
type pairs struct {
	a, b   []float64
	guards map[string][2][]float64
}

func (p *pairs) add(a, b Observation) {
	p.a = append(p.a, a.Objective)
	p.b = append(p.b, b.Objective)
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

// compare measures pairs of a and b until a planned look decides. Errors leave the partial answer.
//
// Looking after every pair and stopping at the first good moment would keep a useless knob in more than a fifth of
// all tries (simulated for looks after each of 5 to 30 pairs at 5 %), so that decisions are taken at the planned
// looks only, by the boundary that pays for all of them.
func (s *session) compare(ctx context.Context, q question) (answer, error) {
	var got pairs
	var out answer
	for n := 1; ; n++ {
		next := s.nextLook(n)
		err := s.pair(ctx, q, n-1, next.Pairs, &got)
		if err != nil {
			return out, err
		}
		out = s.weigh(got)
		s.emit(Event{
			Kind: EventEstimate, Phase: q.phase, Pair: n, Pairs: next.Pairs, Effect: out.effect,
			Knob: q.about.setting.Knob, Side: q.about.side, From: q.about.from, To: q.about.setting.Value,
			Text: fmt.Sprintf("pair %d of %d: %s", n, next.Pairs, out.effect),
		})
		if out.decision != undecided {
			return out, nil
		}
	}
}

// weigh tells what the pairs so far say: an effect at any number of them, guard-rails and a decision at a planned look only. It asks
// neither a clock nor a host, so that a stored run is judged again by the code that judged it live.
func (s *session) weigh(got pairs) answer {
	ratios := stats.PairedLogRatio(got.a, got.b)
	n := len(ratios)
	next := s.nextLook(n)
	if n != next.Pairs {
		// For the eye only: an interval of this moment, which nothing is decided on.
		return answer{effect: effectOf(n, stats.SignedRank(ratios, s.cfg.Confidence))}
	}
	interval := s.plan.Interval(ratios)
	out := answer{effect: effectOf(n, interval), guards: s.judgeGuards(got, next)}
	out.decision, out.reason = s.decide(ratios, interval, out.effect, out.guards)
	return out
}

// pair measures both arms, in an order that a coin decides.
//
// Both arms are measured directly after each other: what drifts slowly, as the load of a neighbour does, is the same
// in both and falls out of the ratio. That is also why a pair whose second half cannot be measured is dropped as a
// whole.
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

// nextLook is the first planned look at n pairs or later.
//
// There always is one, because a comparison ends at the last look at the latest.
func (s *session) nextLook(n int) stats.Look {
	i, _ := s.plan.LookAt(n)
	return s.plan.Looks[i]
}

// decide applies the rules at a look.
//
// The order of the cases is the order of strength. Worse is tested against no change at all and not against the
// threshold: a change need not be proven to do great harm to be taken back. Guard-rails are asked only for what would
// be kept, as everything else is taken back anyway. Intervals are of logarithms, so 0 is no change.
func (s *session) decide(ratios []float64, interval stats.Interval, effect Effect, guards []GuardRun) (decision, string) {
	need := math.Exp(s.threshold) - 1
	switch last := len(ratios) == s.plan.MaxPairs(); {
	case interval.High < 0:
		return worse, fmt.Sprintf("worse: %s", effect)
	case interval.Low > s.threshold:
		if reason := veto(guards); reason != "" {
			return worse, fmt.Sprintf("gains %s, but %s", effect, reason)
		}
		if name := unseen(guards); name != "" {
			return unproven, fmt.Sprintf("gains %s, but %s was not measured and its limit cannot be held", effect, name)
		}
		return better, fmt.Sprintf("gains %s, more than the %.1f %% needed", effect, 100*need)
	case last:
		return unproven, fmt.Sprintf("not proven: %s after %d pairs, %.1f %% needed", effect, len(ratios), 100*need)
	case s.futile(ratios, interval.Estimate):
		return unproven, fmt.Sprintf("not proven: %s after %d pairs and no prospect of the %.1f %% needed", effect, len(ratios), 100*need)
	}
	return undecided, ""
}

// futile tells whether going on has no prospect: even if the truth lay one standard error above the estimate, the lower end after the last
// look would not beat the threshold. Stopping for futility can only lower the rate of false keeps, so the boundary does not pay for it.
//
// The spread is the robust one: a single outlier would widen it and end a comparison in which there still is
// something to prove. A useless knob on a quiet bench ends at the first look by this rule, which is what makes trying
// five of them affordable.
func (s *session) futile(ratios []float64, estimate float64) bool {
	spread := stats.RobustStdDev(ratios)
	now, last := math.Sqrt(float64(len(ratios))), math.Sqrt(float64(s.plan.MaxPairs()))
	return estimate+spread/now-s.quantile*spread/last <= s.threshold
}
