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

// pilotAllowance compensates for what a pilot of few pairs cannot know: the allowance is 1 +
// pilotAllowance/pairs.
//
// The spread of six pairs is off by a third either way, and an outlier in ten segments may not have
// occurred yet. With 5, nine of ten experiments keep the promise under every simulated noise.
const pilotAllowance = 5

// noisyPromise is how many times the least useful effect the promise of a first pilot may be before
// the pilot continues.
const noisyPromise = 5

// resolve derives from the pilot what differences this bench can resolve.
//
// The standard error is that of a mean over the pairs of the last look. The threshold is never
// below it: on a noisy bench a lower end of just over 1 % would be within the effect of the noise
// on the estimate.
func (s *session) resolve(p *Pilot, ratios []float64) {
	s.pairNoise = stats.RobustStdDev(ratios)
	// The true centre of a comparison without a change is known.
	s.spread = stats.SpreadAround(ratios, 0)
	standardError := s.pairNoise / math.Sqrt(float64(s.plan.MaxPairs()))
	s.threshold, s.promise = s.promises(s.plan, ratios)
	p.PairNoise = s.pairNoise
	p.NoiseFloor = math.Expm1(standardError)
	p.MinUsefulEffect = math.Expm1(s.threshold)
	p.ResolvableEffect = math.Expm1(s.promise + s.held)
}

// wildShare is how many times the wildest pair of the pilot the gain must be, if a single wild pair
// loses a comparison.
const wildShare = 1.6

// promises returns what a lower end must beat under a plan, and the gain that it then finds nine
// times in ten; both are logarithms.
func (s *session) promises(plan *stats.Boundary, pilot []float64) (threshold, promise float64) {
	pairs := float64(plan.MaxPairs())
	threshold = max(s.useful(), s.pairNoise/math.Sqrt(pairs))
	allowance := 1 + pilotAllowance/float64(len(pilot))
	promise = allowance * plan.Detectable(promisedPower) * s.spread
	// With few pairs the ends are the extreme ones. Ten pairs tolerate one outlier, sixteen
	// tolerate a few.
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

// noisy reports whether a pilot of the given number of pairs should continue: the noise is the
// limit, and a longer pilot estimates it better.
func (s *session) noisy(pairs int) bool {
	if pairs != s.cfg.PilotPairs || math.Expm1(s.promise) <= noisyPromise*s.cfg.MinUsefulEffect {
		return false
	}
	// Do not give up the only comparison that fits into the time.
	return s.cfg.Budget <= 0 ||
		s.left()-time.Duration(2*s.cfg.PilotPairs)*s.segmentTime() > s.timeFor(s.plan.Looks[0].Pairs)
}

// left returns the rest of the budget.
func (s *session) left() time.Duration { return s.cfg.Budget - s.cfg.Now().Sub(s.started) }

// timeFor returns how long one trial and its confirmation take if both go to this number of pairs.
func (s *session) timeFor(pairs int) time.Duration {
	return 2 * s.pairsTime(pairs, 1)
}

// fit shortens the plan to the rest of the budget, and returns false if that holds no trial with a
// confirmation. Before any change it reports what the given time can resolve and what more
// resolution would take.
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
		// The first look alone cannot prove anything at this confidence: keep the plan.
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
			"the budget of %s is too small for one trial and its confirmation: "+
				"this path can resolve gains of %s or more in %s; ask for %s to resolve %s",
			s.asked(), unit.FormatPercent(p.ResolvableEffect), unit.FormatBudget(need), unit.FormatBudget(ask),
			unit.FormatPercent(p.Unhurried.Effect))
		return false, nil
	}
	s.warn("the budget shortens the comparisons: this path can resolve gains of %s or more in %s; "+
		"ask for %s to resolve %s",
		unit.FormatPercent(p.ResolvableEffect), s.asked(), unit.FormatBudget(s.runTime(whole.MaxPairs())),
		unit.FormatPercent(p.Unhurried.Effect))
	return true, nil
}

// asked returns the budget as the user gave it.
func (s *session) asked() string {
	return unit.FormatSeconds(cmp.Or(s.cfg.Asked, s.cfg.Budget).Seconds())
}

// runTime returns how long a run takes that tries one candidate with comparisons of this length,
// including what was spent before.
func (s *session) runTime(pairs int) time.Duration {
	return s.cfg.Spent + s.cfg.Now().Sub(s.started) + s.timeFor(pairs)
}

// outOfTime returns the reason of a run whose budget ended before a confirmation.
func (s *session) outOfTime() string {
	if s.out.Pilot != nil {
		return "the time budget ran out before a confirmation"
	}
	s.out.BudgetTooSmall = true
	// The pilot, and the shortest trial with its confirmation.
	need := unit.RoundBudget(s.cfg.Spent + time.Duration(2*s.cfg.PilotPairs)*s.segmentTime() +
		s.timeFor(s.plan.Looks[0].Pairs))
	s.out.BudgetNeeded = need.Seconds()
	return fmt.Sprintf("the budget of %s is too small to measure the noise of this path: a segment takes %s; "+
		"ask for %s or more",
		s.asked(), unit.FormatSeconds(s.segmentTime().Seconds()), unit.FormatBudget(need))
}

// weighDiscards warns if disturbance cost more than a third of the measurements, or if measurements
// count that it can have lowered.
func (s *session) weighDiscards() {
	all, doubtful, most := len(s.out.Segments), 0, 0.0
	for _, g := range s.out.Segments {
		if g.LossRatio > 0 {
			doubtful, most = doubtful+1, max(most, g.LossRatio)
		}
	}
	if doubtful > 0 {
		s.warn("%s of %d count although disturbances can have cost up to %s: none was clean in %d tries; "+
			"only gains above that are proven", unit.Counted(doubtful, "segment"), all, unit.FormatPercent(most),
			s.cfg.MaxRepeats+1)
	}
	if 3*s.out.Discarded <= all {
		return
	}
	causes := map[string]int{}
	cause := ""
	for _, g := range s.out.Segments {
		if g.Discard == "" {
			continue
		}
		causes[g.Discard]++
		if cause == "" || causes[g.Discard] > causes[cause] {
			cause = g.Discard
		}
	}
	s.warn("%d of %d segments were discarded, most often: %s; a quieter hour would resolve more in the same time",
		s.out.Discarded, all, cause)
}

// familyRisk is the share of experiments in which any useless change at all may stay.
const familyRisk = 0.05

// shared returns the plan of a test that shares its risk with others: each member of a set that was
// proven only as a whole. It is Holm's first step for all of them. The first look moves to where
// that risk allows a proof.
//
// A change with a trial of its own needs no sharing. It stays falsely only if both the trial and
// the later test are wrong, and with m trials the chance of that is at most m times the product of
// the two risks: 2.5 % for forty trials.
func (s *session) shared(of int) *stats.Boundary {
	risk := (1 - s.cfg.Confidence) / 2
	if of < 2 || familyRisk/float64(of) >= risk {
		return s.plan
	}
	plan, err := s.plan.Stricter(1 - 2*familyRisk/float64(of))
	if err != nil {
		return s.plan // unreachable: the confidence is below one
	}
	return plan
}

// reusable reports whether a trial may replace the fresh test of the change it kept: with so few
// trials chance alone keeps a useless one less often than allowed.
func (s *session) reusable() bool {
	return float64(s.measured)*(1-s.cfg.Confidence)/2 <= familyRisk*(1+1e-9)
}
