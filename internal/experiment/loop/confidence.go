package loop

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/traffic"
)

const (
	// confidentHalfWidth is the half width of a sufficiently narrow interval, relative to its
	// middle.
	confidentHalfWidth = 0.025
	// fewestRounds is the least from which to estimate a spread; mostRounds bounds a test of ten
	// seconds to five minutes.
	fewestRounds, mostRounds = 3, 30
	// mostDisturbed bounds the discarded rounds.
	mostDisturbed = 15
	// resignAfter is after how many rounds, all with stolen CPU time, no quieter one is expected.
	resignAfter = 4
)

// student is the two-sided 98 % quantile of Student's distribution by degrees of freedom, from two
// on.
//
// It is 98 for an interval of 95 % because the rule checks the interval after every round and stops
// at the first narrow one, and some are narrow because the rounds agree by chance. A nominal 95 %
// interval stopped like that covers the truth in as few as 89 % of all cases, worst if the spread
// of a round is about 4 %; 98 % covers it in 95 (simulated for normal and heavy-tailed rounds with
// spreads from 0.3 % to 10 %; a test checks it).
var student = [mostRounds]float64{
	2: 6.965, 4.541, 3.747, 3.365, 3.143, 2.998, 2.896, 2.821, 2.764, 2.718, 2.681, 2.650, 2.624, 2.602, 2.583, 2.567,
	2.552, 2.539, 2.528,
	2.518, 2.508, 2.500, 2.492, 2.485, 2.479, 2.473, 2.467, 2.462,
}

// round is one repetition.
type round struct {
	figure    float64
	result    *traffic.Result
	disturbed string  // why it does not count; empty: it counts
	loss      float64 // the share of the figure that stolen CPU time can have cost at most; 0: unknown
}

// counting returns the rounds that count.
func counting(all []round) []round {
	hopeless := len(all) >= resignAfter &&
		!slices.ContainsFunc(all[:resignAfter], func(r round) bool { return r.loss == 0 })
	return slices.DeleteFunc(slices.Clone(all),
		func(r round) bool { return r.disturbed != "" && !(hopeless && r.loss > 0) })
}

// Confident repeats a test until the 95 % interval of its figure is within ±2.5 %, for 3 to 30
// rounds. It returns the median round, with the interval around the mean of all.
//
// The figure is throughput, transactions per second, median round trip, path MTU or round trips per
// minute under load, depending on the test. Spreads are relative, so means and intervals are those
// of its logarithm. Rounds with stolen CPU time or a link change do not count, and the warnings of
// the result give the reason. Where the first rounds all have stolen time, it belongs to this host:
// such rounds count if the figure is a rate, and a warning says what a quieter host may have more.
// If too many are discarded, or no rounds are left, Confidence.Reached of the result is false.
// progress, which may be nil, is called after every round with an interval. An error of any round
// ends the test.
func Confident(ctx context.Context, run func(ctx context.Context) (*traffic.Result, error),
	progress func(round int, c traffic.Confidence)) (*traffic.Result, error) {
	var all, rounds []round
	var c traffic.Confidence
	// The rounds follow each other directly: the interval must include any drift between them.
	for len(rounds) < mostRounds && len(all)-len(rounds) < mostDisturbed {
		r, err := run(ctx)
		if err != nil {
			return nil, fmt.Errorf("round %d: %w", len(all)+1, err)
		}
		one := round{figure: headline(r), result: r}
		one.disturbed, one.loss = disturbed(r)
		if reason := unusable(one.figure); reason != "" {
			one.disturbed, one.loss = cmp.Or(one.disturbed, reason), 0
		} else if !rated(r.Test) {
			one.loss = 0
		}
		all = append(all, one)
		before := len(rounds)
		if rounds = counting(all); len(rounds) == before || len(rounds) < fewestRounds {
			continue
		}
		c = interval(rounds)
		if progress != nil {
			progress(len(rounds), c)
		}
		if c.Reached {
			break
		}
	}
	out := all[len(all)-1].result
	if len(rounds) > 0 {
		out = middle(rounds)
	}
	whole := *out // the caller's own results stay unchanged
	whole.Warnings = slices.Concat(out.Warnings, notes(all, rounds))
	if len(rounds) < fewestRounds {
		whole.Warnings = append(whole.Warnings,
			fmt.Sprintf("only %d rounds were undisturbed, too few for a confidence interval",
				len(rounds)))
		return &whole, nil
	}
	whole.Confidence = &c
	return &whole, nil
}

// rated reports whether the figure of a test is a rate. What a stolen moment adds to a latency has
// no bound.
func rated(t traffic.Test) bool {
	return t == traffic.Stream || t == traffic.UDP || t == traffic.RR || t == traffic.CRR
}

// notes says which rounds do not count, and what the others can have lost.
func notes(all, rounds []round) []string {
	var texts []string
	for i, r := range all {
		if r.disturbed != "" && !slices.Contains(rounds, r) {
			texts = append(texts, fmt.Sprintf("round %d does not count: %s", i+1, r.disturbed))
		}
	}
	stolen := slices.DeleteFunc(slices.Clone(rounds), func(r round) bool { return r.loss == 0 })
	if len(stolen) > 0 {
		most := slices.MaxFunc(stolen, func(a, b round) int { return cmp.Compare(a.loss, b.loss) })
		texts = append(texts, fmt.Sprintf("%d of %d rounds count although CPU time was stolen, because the first %d all "+
			"had that: it can have cost up to %s of a figure", len(stolen), len(rounds), resignAfter,
			unit.FormatPercent(most.loss)))
	}
	return texts
}

// headline returns the figure of a test in its own unit; zero if it has none.
func headline(r *traffic.Result) float64 {
	switch r.Test {
	case traffic.RR, traffic.CRR:
		return r.TransactionsPerSec
	case traffic.Ping:
		if r.RTT != nil {
			return r.RTT.P50
		}
		return 0
	case traffic.MTU:
		return float64(r.MTUBytes)
	case traffic.Burst:
		if r.Burst != nil {
			return float64(r.Burst.HeldPackets)
		}
		return 0
	case traffic.Load:
		if r.Load != nil {
			return r.Load.RoundTripsPerMinute
		}
		return 0
	}
	return r.ThroughputBitsPerSec
}

// unusable returns why a figure has no logarithm.
func unusable(figure float64) string {
	if !(figure > 0) || math.IsInf(figure, 0) {
		return "it has no figure, because nothing got through"
	}
	return ""
}

// interval returns the confidence interval of the mean of all rounds, and whether it is narrow
// enough to stop.
func interval(rounds []round) traffic.Confidence {
	// Logarithms, because noise on a host multiplies: a stolen time slice costs a share of a round,
	// whatever its rate. The interval of the figure itself is then slightly asymmetric, and never
	// below zero.
	logs := make([]float64, len(rounds))
	for i, r := range rounds {
		logs[i] = math.Log(r.figure)
	}
	n := len(rounds)
	mean := stats.Mean(logs)
	half := student[n-1] * stats.StdDev(logs) / math.Sqrt(float64(n))
	c := traffic.Confidence{Rounds: n, Mean: math.Exp(mean), Low: math.Exp(mean - half), High: math.Exp(mean + half)}
	c.HalfWidthRatio = (c.High - c.Low) / 2 / c.Mean
	c.Reached = c.HalfWidthRatio <= confidentHalfWidth
	return c
}

// middle returns the round with the median figure, the lower of the two middle ones of an even
// number: a real measured round.
func middle(rounds []round) *traffic.Result {
	sorted := slices.Clone(rounds)
	sorting.StableFunc(sorted, func(a, b round) int { return cmp.Compare(a.figure, b.figure) })
	return sorted[(len(sorted)-1)/2].result
}
