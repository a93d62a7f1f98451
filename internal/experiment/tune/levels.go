package tune

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/change/knob"
)

// contender is a level in the search.
type contender struct {
	value   knob.Value
	scores  []float64 // logarithm of the objective, one per round
	refused string
}

// chooseLevel returns the level to put on trial, by sequential halving: every round measures each
// remaining level once, in random order, and drops the lower half. In the end the smallest level as
// good as the best wins, because smaller buffers, rings and delays cost less memory and latency.
// The choice proves nothing: the trial that follows uses fresh pairs only.
//
// A full comparison of every level would cost twelve segments each. Halving costs about two, and
// its mistakes are minor: a level slightly worse than the best goes on trial, and the trial
// measures its worth. The order within a round is random for the same reason as that of a pair.
func (s *session) chooseLevel(ctx context.Context, c Candidate, from knob.Value, levels []knob.Value,
	trial int) (knob.Value, []Level, error) {
	s.resigned = false
	all := make([]*contender, len(levels))
	for i, v := range levels {
		all[i] = &contender{value: v}
	}
	remaining := slices.Clone(all)
	for round := 0; ; round++ {
		for _, i := range s.random.Perm(len(remaining)) {
			if err := s.tryLevel(ctx, c, from, remaining[i], trial, round); err != nil {
				return "", report(all, nil), err
			}
		}
		remaining = slices.DeleteFunc(remaining, func(l *contender) bool { return l.refused != "" })
		if len(remaining) == 0 {
			return "", report(all, nil), nil
		}
		// Two levels get a second round before the choice; after that nothing is left to halve.
		if len(remaining) <= 2 && (round > 0 || len(remaining) == 1) {
			break
		}
		if len(remaining) > 2 {
			remaining = s.bestHalf(remaining)
		}
	}
	winner := s.smallestOfBest(all)
	return winner.value, report(all, winner), nil
}

// tryLevel measures one level once. If the host refuses a level (out of the driver's range, not
// permitted), the search goes on without it: that is not an error of the experiment.
func (s *session) tryLevel(ctx context.Context, c Candidate, from knob.Value, l *contender, trial, round int) error {
	p := placed{side: c.Side, setting: knob.Setting{Knob: c.Knob, Value: l.value}, from: from, why: c.Why}
	if err := s.switchTo(ctx, s.kept.with(p)); err != nil {
		if reason, ok := refusedApply(err); ok {
			l.refused = reason
			return nil
		}
		return err
	}
	o, err := s.measure(ctx, place{phase: PhaseLevels, trial: trial, pair: round, arm: string(l.value), about: p,
		within: s.trialsEnd(len(s.kept) + 1)})
	if err != nil {
		return err
	}
	// A segment without any throughput has no logarithm; the smallest number makes it the worst of
	// all levels and keeps the mean finite.
	l.scores = append(l.scores, math.Log(max(o.Objective, math.SmallestNonzeroFloat64)))
	return nil
}

// bestHalf returns the better half, but at least two: the best, then those as good as it, small
// before large, then the others by their means.
func (s *session) bestHalf(remaining []*contender) []*contender {
	best := slices.MaxFunc(remaining, byMean)
	ranked := slices.Clone(remaining)
	sorting.StableFunc(ranked, func(x, y *contender) int {
		nearX, nearY := s.asGood(x, best), s.asGood(y, best)
		switch {
		case x == best:
			return -1
		case y == best:
			return 1
		case nearX && nearY:
			return 0 // stable: already in order of size
		case nearX:
			return -1
		case nearY:
			return 1
		}
		return byMean(y, x)
	})
	half := ranked[:max(2, (len(ranked)+1)/2)]
	// Back into order of size.
	return slices.DeleteFunc(slices.Clone(remaining), func(l *contender) bool { return !slices.Contains(half, l) })
}

// smallestOfBest returns the smallest level that is as good as the best. It considers every
// measured level, including early dropouts, each compared over its own rounds. Levels are in order
// from small to large.
func (s *session) smallestOfBest(all []*contender) *contender {
	measured := slices.DeleteFunc(slices.Clone(all),
		func(l *contender) bool { return l.refused != "" || len(l.scores) == 0 })
	longest := 0
	for _, l := range measured {
		longest = max(longest, len(l.scores))
	}
	finalists := slices.DeleteFunc(slices.Clone(measured), func(l *contender) bool { return len(l.scores) < longest })
	best := slices.MaxFunc(finalists, byMean)
	for _, l := range measured {
		if s.asGood(l, best) {
			return l
		}
	}
	return best
}

// asGood reports whether a level is inside the interval of the best one, or within the least useful
// effect of it, over the rounds that measured both.
//
// It uses the pilot's noise and not that of the level's own scores, because one to three scores
// have no meaningful spread.
func (s *session) asGood(l, best *contender) bool {
	rounds := min(len(l.scores), len(best.scores))
	gap := stats.Mean(best.scores[:rounds]) - stats.Mean(l.scores[:rounds])
	// The noise of a pair is that of the difference of two segments: √2 times that of one.
	half := s.quantile * s.pairNoise / math.Sqrt2 / math.Sqrt(float64(rounds))
	return gap <= max(math.Log1p(s.cfg.MinUsefulEffect), half)
}

// tooMuch returns, as a clause, that the next larger level was worse than the chosen one; nothing
// if it was not.
func (s *session) tooMuch(levels []Level) string {
	at := slices.IndexFunc(levels, func(l Level) bool { return l.Chosen })
	if at < 0 {
		return ""
	}
	chosen := levels[at]
	for _, l := range levels[at+1:] {
		if l.Refused != "" || l.Segments == 0 || !(l.Mean > 0) || !(chosen.Mean > 0) {
			continue
		}
		rounds := float64(min(l.Segments, chosen.Segments))
		gap := math.Log(chosen.Mean / l.Mean)
		if gap > max(s.useful(), s.quantile*s.pairNoise/math.Sqrt2/math.Sqrt(rounds)) {
			return fmt.Sprintf("; %s was tried and gave %s less", l.Value, unit.FormatPercent(-math.Expm1(-gap)))
		}
		return ""
	}
	return ""
}

// byMean orders by the mean logarithm, which is the geometric mean of the objective: a lucky
// segment weighs less in it than in the arithmetic mean.
func byMean(x, y *contender) int {
	return cmp.Compare(stats.Mean(x.scores), stats.Mean(y.scores))
}

// report lists every level, including refused ones with the reason: what was not tried is part of
// the record.
func report(all []*contender, winner *contender) []Level {
	out := make([]Level, len(all))
	for i, l := range all {
		out[i] = Level{Value: l.value, Segments: len(l.scores), Refused: l.refused, Chosen: l == winner}
		if len(l.scores) > 0 {
			out[i].Mean = known(math.Exp(stats.Mean(l.scores)))
		}
	}
	return out
}

// describeLevels returns one line for the log.
func describeLevels(levels []Level) string {
	tried, chosen := 0, knob.Value("")
	for _, l := range levels {
		if l.Segments > 0 {
			tried++
		}
		if l.Chosen {
			chosen = l.Value
		}
	}
	return fmt.Sprintf("%d levels tried, %s goes on trial", tried, chosen)
}
