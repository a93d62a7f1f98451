package tune

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/base/unit"
)

// promisedPower is how often a gain of the promised size is found.
const promisedPower = 0.9

// pilotAllowance makes up for what a pilot of few pairs does not know: the allowance is 1 +
// pilotAllowance/pairs.
//
// The spread of six pairs is off by a third either way, and an outlier in ten segments may not have
// come yet. With 5 the promise is kept in nine of ten experiments under every noise that the
// simulations know.
const pilotAllowance = 5

// noisyPromise is how many times the least useful effect the promise of a first pilot may be before
// the pilot goes on.
const noisyPromise = 5

// resolve derives from the pilot what this bench can tell apart.
//
// The standard error is that of a mean over as many pairs as the last look has. The threshold is
// never below it: on a noisy bench a lower end of just over 1 % would be within what the noise of a
// pair does to the estimate.
func (s *session) resolve(p *Pilot, ratios []float64) {
	s.pairNoise = stats.RobustStdDev(ratios)
	// The centre of a comparison of nothing with itself is known.
	s.spread = stats.SpreadAround(ratios, 0)
	standardError := s.pairNoise / math.Sqrt(float64(s.plan.MaxPairs()))
	s.threshold, s.promise = s.promises(s.plan, ratios)
	p.PairNoise = s.pairNoise
	p.NoiseFloor = math.Expm1(standardError)
	p.MinUsefulEffect = math.Expm1(s.threshold)
	p.ResolvableEffect = math.Expm1(s.promise)
}

// wildShare is by how much the gain must exceed the wildest pair of the pilot when a single wild
// pair loses a comparison.
const wildShare = 1.6

// promises gives what a lower end must beat under a plan, and the gain that is then found nine
// times in ten; both are logarithms.
func (s *session) promises(plan *stats.Boundary, pilot []float64) (threshold, promise float64) {
	pairs := float64(plan.MaxPairs())
	threshold = max(s.useful(), s.pairNoise/math.Sqrt(pairs))
	allowance := 1 + pilotAllowance/float64(len(pilot))
	promise = allowance * plan.Detectable(promisedPower) * s.spread
	// The ends of few pairs are the extreme ones. Ten pairs bear one that is wild, sixteen bear a
	// few.
	if plan.Looks[len(plan.Looks)-1].Rank < fewRanks {
		wildest := 0.0
		for _, v := range pilot {
			wildest = max(wildest, math.Abs(v))
		}
		promise = max(promise, wildShare*wildest)
	}
	return threshold, threshold + promise
}

// fewRanks is the rank of a last look below which one wild pair can decide it.
const fewRanks = 4

// noisy tells whether a pilot of so many pairs should go on: the noise is what limits, and a longer
// pilot knows it better.
func (s *session) noisy(pairs int) bool {
	if pairs != s.cfg.PilotPairs || math.Expm1(s.promise) <= noisyPromise*s.cfg.MinUsefulEffect {
		return false
	}
	// Not at the cost of the only comparison that there is time for.
	return s.cfg.Budget <= 0 ||
		s.left()-time.Duration(2*s.cfg.PilotPairs)*s.segmentTime() > s.timeFor(s.plan.Looks[0].Pairs)
}

// left is what is left of the budget.
func (s *session) left() time.Duration { return s.cfg.Budget - s.cfg.Now().Sub(s.started) }

// timeFor is what one trial and its confirmation take when both go to this number of pairs.
func (s *session) timeFor(pairs int) time.Duration {
	return 2 * s.pairsTime(pairs, 1)
}

// fit shortens the plan to what is left of the budget, and reports false when that holds no trial
// with a confirmation at all. It says what can be resolved in the time given and what it takes to
// resolve more, before anything is touched.
func (s *session) fit(p *Pilot, ratios []float64) (bool, error) {
	if s.cfg.Budget <= 0 || s.left() >= s.timeFor(s.plan.MaxPairs()) {
		return true, nil
	}
	whole := s.plan
	p.Unhurried = &Resolution{Effect: p.ResolvableEffect, Seconds: s.runTime(whole.MaxPairs()).Seconds()}
	looks := s.cfg.Looks
	for len(looks) > 1 && (s.left() < s.timeFor(looks[len(looks)-1])) {
		looks = looks[:len(looks)-1]
	}
	short := s.cfg
	short.Looks = looks
	plan, err := short.plan()
	if err != nil {
		// The first look alone cannot prove anything at this confidence: the plan stays as it is.
		looks, plan = s.cfg.Looks, whole
	}
	s.plan = plan
	if s.out.Design != nil {
		s.out.Design.Looks = slices.Clone(looks)
	}
	s.resolve(p, ratios)
	if need := s.runTime(looks[0]); s.left() < s.timeFor(looks[0]) {
		s.out.Partial, s.out.BudgetTooSmall = true, true
		ask := unit.RoundBudget(s.runTime(whole.MaxPairs()))
		s.out.BudgetNeeded = ask.Seconds()
		s.out.Reason = fmt.Sprintf(
			"the budget of %s is too small for one trial and its confirmation: this path can resolve gains from %s on in %s; ask for %s to resolve %s",
			s.asked(), unit.FormatPercent(p.ResolvableEffect), unit.FormatBudget(need), unit.FormatBudget(ask),
			unit.FormatPercent(p.Unhurried.Effect))
		return false, nil
	}
	s.warn("the budget shortens the comparisons: this path can resolve gains from %s on in %s; ask for %s to resolve %s",
		unit.FormatPercent(p.ResolvableEffect), s.asked(), unit.FormatBudget(s.runTime(whole.MaxPairs())),
		unit.FormatPercent(p.Unhurried.Effect))
	return true, nil
}

// asked is the budget as it was given.
func (s *session) asked() string {
	return unit.FormatSeconds(cmp.Or(s.cfg.Asked, s.cfg.Budget).Seconds())
}

// runTime is how long a run takes that tries one candidate with comparisons of this length, with
// what was spent before it.
func (s *session) runTime(pairs int) time.Duration {
	return s.cfg.Spent + s.cfg.Now().Sub(s.started) + s.timeFor(pairs)
}

// outOfTime is the reason of a run that its budget ended before anything was confirmed.
func (s *session) outOfTime() string {
	if s.out.Pilot != nil {
		return "the time budget ran out before a confirmation"
	}
	s.out.BudgetTooSmall = true
	// The pilot, and the shortest trial with its confirmation.
	need := unit.RoundBudget(s.cfg.Spent + time.Duration(2*s.cfg.PilotPairs)*s.segmentTime() +
		s.timeFor(s.plan.Looks[0].Pairs))
	s.out.BudgetNeeded = need.Seconds()
	return fmt.Sprintf("the budget of %s is too small to measure the noise of this path: a segment takes %s; ask for %s at least",
		s.asked(), unit.FormatSeconds(s.segmentTime().Seconds()), unit.FormatBudget(need))
}

// weighDiscards says so when disturbance has eaten more than a third of the measurements.
func (s *session) weighDiscards() {
	all := len(s.out.Segments)
	if 3*s.out.Discarded <= all {
		return
	}
	causes := map[string]int{}
	most := ""
	for _, g := range s.out.Segments {
		if g.Discard == "" {
			continue
		}
		causes[g.Discard]++
		if most == "" || causes[g.Discard] > causes[most] {
			most = g.Discard
		}
	}
	s.warn("%d of %d segments were discarded, most often: %s; a quieter hour would resolve more in the same time",
		s.out.Discarded, all, most)
}

// familyRisk is the share of experiments in which any useless change at all may stay.
const familyRisk = 0.05

// shared is the plan of a test that shares its risk with others: each of the members of a set that
// was only ever proven as a whole. It is Holm's first step for all of them. The first look moves to
// where something can be proven at that risk.
//
// A change that had a trial of its own needs no share. It stays only if the trial and the later
// test are both wrong, and with m trials the chance of that is at most m times the product of the
// two risks: 2.5 % for forty trials.
func (s *session) shared(of int) *stats.Boundary {
	risk := (1 - s.cfg.Confidence) / 2
	if of < 2 || familyRisk/float64(of) >= risk {
		return s.plan
	}
	plan, err := s.plan.Stricter(1 - 2*familyRisk/float64(of))
	if err != nil {
		return s.plan // a confidence that is no number below one: not reached
	}
	return plan
}

// reusable tells whether a trial may stand for the fresh test of the change it kept: with so few
// trials chance alone keeps a useless one in less than the share allowed.
func (s *session) reusable() bool {
	return float64(s.measured)*(1-s.cfg.Confidence)/2 <= familyRisk*(1+1e-9)
}
