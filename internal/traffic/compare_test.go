package traffic

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// noisy returns a stream of n intervals around a mean of 1 Gb/s times level, with a relative spread
// and an autocorrelation at lag one.
func noisy(random *rand.Rand, n int, level, spread, memory float64) Result {
	r := Result{Test: Stream, Direction: Up}
	noise := random.NormFloat64() * spread
	for i := range n {
		noise = memory*noise + random.NormFloat64()*spread*math.Sqrt(1-memory*memory)
		rate := 1e9 * level * (1 + noise)
		r.ThroughputBitsPerSec += rate / float64(n)
		r.Intervals = append(r.Intervals, Interval{StartSeconds: float64(i), EndSeconds: float64(i + 1),
			ThroughputBitsPerSec: rate})
	}
	return r
}

// TestCompareHoldsItsPromise compares pairs of simulated tests. Where nothing differs, few
// differences are found, also in series that remember; a real loss is found.
func TestCompareHoldsItsPromise(t *testing.T) {
	t.Parallel()
	const pairs = 600
	for _, c := range []struct {
		n              int
		spread, memory float64
		change         float64
		most, least    float64 // share of pairs with a proven difference
	}{
		{n: 10, spread: 0.03, most: 0.05},
		{n: 10, spread: 0.03, memory: 0.5, most: 0.06},
		{n: 30, spread: 0.1, memory: 0.5, most: 0.06},
		{n: 60, spread: 0.03, memory: 0.7, most: 0.06},
		{n: 10, spread: 0.03, change: -0.2, most: 1, least: 0.95},
		{n: 30, spread: 0.03, memory: 0.5, change: -0.1, most: 1, least: 0.9},
	} {
		random := rand.New(rand.NewPCG(1, uint64(c.n)))
		proven, right := 0, 0
		for range pairs {
			got := Compare(noisy(random, c.n, 1, c.spread, c.memory), noisy(random, c.n, 1+c.change, c.spread, c.memory))
			if got.Spread != "intervals" || got.Verdict == NotJudged {
				t.Fatalf("%+v", got)
			}
			if got.Verdict != NoDifference {
				proven++
			}
			if got.Low <= 1+c.change && 1+c.change <= got.High {
				right++
			}
		}
		share, covered := float64(proven)/pairs, float64(right)/pairs
		t.Logf("%+v: %.3f proven, %.3f of the intervals cover the truth", c, share, covered)
		if share > c.most || share < c.least || covered < 0.93 {
			t.Errorf("%+v: %.3f of the pairs differ, %.3f of the intervals cover the truth", c, share, covered)
		}
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	fast, slow := noisy(random, 10, 1, 0.01, 0), noisy(random, 10, 0.5, 0.01, 0)
	rounds := func(mean, low, high float64) Result {
		return Result{Test: Stream, ThroughputBitsPerSec: mean,
			Confidence: &Confidence{Rounds: 5, Mean: mean, Low: low, High: high}}
	}
	short := fast
	short.Intervals = short.Intervals[:3]
	warm := fast
	warm.Intervals = append([]Interval{{EndSeconds: 1, ThroughputBitsPerSec: 1, Omitted: true}}, fast.Intervals...)
	still := fast
	last := fast.Intervals[len(fast.Intervals)-1].EndSeconds
	still.Intervals = append(slices.Clone(fast.Intervals),
		Interval{StartSeconds: last, EndSeconds: last + 5, ThroughputBitsPerSec: 1e8})
	load := func(seconds float64) Result { return Result{Test: Load, Load: &LoadResult{AddedSeconds: seconds}} }
	for _, c := range []struct {
		name          string
		before, after Result
		want          Comparative
		spread        string
		worse         bool // than a tolerated 5 %
	}{
		{"half as fast", fast, slow, Worse, "intervals", true},
		{"twice as fast", slow, fast, Better, "intervals", false},
		{"the same", fast, fast, NoDifference, "intervals", false},
		{"the warm-up does not count", warm, fast, NoDifference, "intervals", false},
		{"too few intervals", fast, short, NotJudged, "", false},
		{"an interval in which the host stood still", fast, still, NoDifference, "intervals", false},
		{"rounds", rounds(100, 98, 102), rounds(90, 89, 91), Worse, "rounds", true},
		{"rounds within the tolerance", rounds(100, 99.9, 100.1), rounds(97, 96.9, 97.1), Worse, "rounds", false},
		{"nothing got through", fast, Result{Test: Stream}, NotJudged, "", false},
		{"a smaller packet", Result{Test: MTU, MTUBytes: 9000}, Result{Test: MTU, MTUBytes: 1500}, Worse, "exact", true},
		{"the same packet", Result{Test: MTU, MTUBytes: 1500}, Result{Test: MTU, MTUBytes: 1500}, NoDifference, "exact",
			false},
		{"latency under load", load(0.01), load(0.5), NotJudged, "", false},
	} {
		got := Compare(c.before, c.after)
		if got.Verdict != c.want || got.Spread != c.spread || got.WorseThan(0.05) != c.worse {
			t.Errorf("%s: %+v, want %s by %q", c.name, got, c.want, c.spread)
		}
	}
}
