package loop

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/base/stats"
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

// round is one valid repetition.
type round struct {
	figure float64
	result *traffic.Result
}

// Confident repeats a test until the 95 % interval of its figure is within ±2.5 %, for 3 to 30
// rounds. It returns the median round, with the interval around the mean of all.
//
// The figure is throughput, transactions per second, median round trip, path MTU or round trips per
// minute under load, depending on the test. Spreads are relative, so means and intervals are those
// of its logarithm. Rounds with stolen CPU time or a link change do not count, and the warnings of
// the result give the reason. If too many are discarded, or no rounds are left, Confidence.Reached
// of the result is false. progress, which may be nil, is called after every round with an interval.
// An error of any round ends the test.
func Confident(ctx context.Context, run func(ctx context.Context) (*traffic.Result, error),
	progress func(round int, c traffic.Confidence)) (*traffic.Result, error) {
	var rounds []round
	var reasons []string
	var last *traffic.Result
	var c traffic.Confidence
	// The rounds follow each other directly: the interval must include any drift between them.
	for len(rounds) < mostRounds && len(reasons) < mostDisturbed {
		r, err := run(ctx)
		if err != nil {
			return nil, fmt.Errorf("round %d: %w", len(rounds)+len(reasons)+1, err)
		}
		last = r
		figure := headline(r)
		if reason := cmp.Or(disturbed(r), unusable(figure)); reason != "" {
			reasons = append(reasons, fmt.Sprintf("round %d does not count: %s", len(rounds)+len(reasons)+1, reason))
			continue
		}
		rounds = append(rounds, round{figure, r})
		if len(rounds) < fewestRounds {
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
	out := last
	if len(rounds) > 0 {
		out = middle(rounds)
	}
	whole := *out // the caller's own results stay unchanged
	whole.Warnings = slices.Concat(out.Warnings, reasons)
	if len(rounds) < fewestRounds {
		whole.Warnings = append(whole.Warnings,
			fmt.Sprintf("only %d rounds were undisturbed, too few for a confidence interval",
				len(rounds)))
		return &whole, nil
	}
	whole.Confidence = &c
	return &whole, nil
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
