package loop

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/traffic"
)

const (
	// confidentHalfWidth is the half width of an interval, relative to its middle, that is narrow
	// enough.
	confidentHalfWidth = 0.025
	// fewestRounds is the least from which a spread can be guessed at; mostRounds bounds a test of
	// ten seconds to five minutes.
	fewestRounds, mostRounds = 3, 30
	// mostDisturbed bounds the rounds that may be thrown away beside those that count.
	mostDisturbed = 15
)

// student is the two-sided 98 % quantile of Student's distribution by degrees of freedom, from two
// on.
//
// Why 98 for an interval of 95 %: the rule looks at the interval after every round and stops at the
// first that is narrow, and some are narrow because chance made the rounds agree. A nominal 95 %
// stopped like that holds the truth in as few as 89 % of all cases, worst where the spread of a
// round is about 4 %; 98 % holds it in 95 (simulated for normal and heavy-tailed rounds with
// spreads from 0.3 % to 10 %; a test keeps it).
var student = [mostRounds]float64{
	2: 6.965, 4.541, 3.747, 3.365, 3.143, 2.998, 2.896, 2.821, 2.764, 2.718, 2.681, 2.650, 2.624, 2.602, 2.583, 2.567,
	2.552, 2.539, 2.528,
	2.518, 2.508, 2.500, 2.492, 2.485, 2.479, 2.473, 2.467, 2.462,
}

// round is one repetition that counts.
type round struct {
	figure float64
	result *traffic.Result
}

// Confident repeats a test until the 95 % interval of its figure is within ±2.5 %, for 3 rounds at
// least and 30 at most, and gives the round in the middle with the interval around the mean of all.
//
// The figure is throughput, transactions per second, median round trip, path MTU or round trips per
// minute under load, whichever the test is about; spreads are relative, so that means and intervals
// are those of its logarithm. Rounds in which CPU time was stolen or a link changed say nothing of
// the path: they are thrown away, with the reason in the warnings of the result. When too many are,
// or the rounds are over, the result says that its interval is not narrow enough,
// Confidence.Reached. progress, which may be nil, is called after every round that there is an
// interval for. An error of any round ends the whole.
func Confident(ctx context.Context, run func(ctx context.Context) (*traffic.Result, error),
	progress func(round int, c traffic.Confidence)) (*traffic.Result, error) {
	var rounds []round
	var reasons []string
	var last *traffic.Result
	var c traffic.Confidence
	// One round after the other, and nothing between them: what drifts from round to round is part
	// of what the interval has to hold.
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
	whole := *out // the caller's own results stay as they were
	whole.Warnings = slices.Concat(out.Warnings, reasons)
	if len(rounds) < fewestRounds {
		whole.Warnings = append(whole.Warnings,
			fmt.Sprintf("only %d rounds were undisturbed: nothing can be said about how sure the figure is",
				len(rounds)))
		return &whole, nil
	}
	whole.Confidence = &c
	return &whole, nil
}

// headline is the figure that a test is about, in its own unit; zero: it has none.
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
	case traffic.Load:
		if r.Load != nil {
			return r.Load.RoundTripsPerMinute
		}
		return 0
	}
	return r.ThroughputBitsPerSec
}

// unusable tells why a figure has no logarithm.
func unusable(figure float64) string {
	if !(figure > 0) || math.IsInf(figure, 0) {
		return "it has no figure, as nothing came through"
	}
	return ""
}

// interval is the confidence interval of the mean of all rounds, and whether it is narrow enough to
// stop.
func interval(rounds []round) traffic.Confidence {
	// Logarithms, because noise on a host multiplies: a stolen slice costs a share of a round,
	// whatever its rate is. The interval of the figure itself is then not quite symmetric, and
	// never below zero.
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

// middle is the round whose figure is the median, the lower of the two middle ones of an even
// number: a round that was really measured.
func middle(rounds []round) *traffic.Result {
	sorted := slices.SortedStableFunc(slices.Values(rounds),
		func(a, b round) int { return cmp.Compare(a.figure, b.figure) })
	return sorted[(len(sorted)-1)/2].result
}
