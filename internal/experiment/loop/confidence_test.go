package loop

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/traffic"
)

// figures returns a test with these throughputs in sequence; the last one repeats.
func figures(values ...float64) func(context.Context) (*traffic.Result, error) {
	i := 0
	return func(context.Context) (*traffic.Result, error) {
		v := values[min(i, len(values)-1)]
		i++
		return &traffic.Result{Test: traffic.Stream, ThroughputBitsPerSec: v}, nil
	}
}

// TestConfidentCovers simulates tests of known truth with several kinds and sizes of noise: the
// interval must cover the truth as often as stated, although the rule checks it after every round.
func TestConfidentCovers(t *testing.T) {
	const truth = 9.4e8
	// Three standard errors of the share of runs that hold the truth: 93.5 % of 2000 runs, 90.4 %
	// of 200. The seeds are fixed, so that a run repeats exactly.
	runs, least := 200, 904
	if testenv.Provided(testenv.Long) {
		runs, least = 2000, 935
	}
	for _, kind := range []struct {
		name string
		draw func(*rand.Rand) float64
	}{
		{"normal", (*rand.Rand).NormFloat64},
		{"heavy tails", func(r *rand.Rand) float64 { // Student's with four degrees of freedom
			var sum float64
			for range 4 {
				z := r.NormFloat64()
				sum += z * z
			}
			return r.NormFloat64() / math.Sqrt(sum/4)
		}},
	} {
		for _, spread := range []float64{0.003, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.1} {
			t.Run(fmt.Sprintf("%s %v", kind.name, spread), func(t *testing.T) {
				t.Parallel()
				random := rand.New(rand.NewPCG(7, uint64(spread*1e6)))
				covered, reached, total := 0, 0, 0
				for range runs {
					r, err := Confident(t.Context(), func(context.Context) (*traffic.Result, error) {
						return &traffic.Result{Test: traffic.Stream,
							ThroughputBitsPerSec: truth * math.Exp(spread*kind.draw(random))}, nil
					}, nil)
					if err != nil {
						t.Fatal(err)
					}
					c := r.Confidence
					if c.Low <= truth && truth <= c.High {
						covered++
					}
					if c.Reached {
						reached++
						if c.HalfWidthRatio > confidentHalfWidth {
							t.Fatalf("stopped at ±%v", c.HalfWidthRatio)
						}
					} else if c.Rounds != mostRounds {
						t.Fatalf("gave up after %d rounds", c.Rounds)
					}
					total += c.Rounds
				}
				n := float64(runs)
				t.Logf("covered %.3f, reached %.3f, %.1f rounds",
					float64(covered)/n, float64(reached)/n, float64(total)/n)
				if covered < runs*least/1000 {
					t.Errorf("the interval holds the truth in %d of %d runs", covered, runs)
				}
				if spread <= 0.02 && reached < runs*99/100 {
					t.Errorf("reached in %d of %d runs", reached, runs)
				}
			})
		}
	}
}

func TestConfidentStops(t *testing.T) {
	var reported []int
	r, err := Confident(t.Context(), figures(100, 100.1, 99.9),
		func(n int, c traffic.Confidence) { reported = append(reported, n) })
	if err != nil {
		t.Fatal(err)
	}
	c := r.Confidence
	if c.Rounds != 3 || !c.Reached || r.ThroughputBitsPerSec != 100 || math.Abs(c.Mean-100) > 0.01 || c.Low >= c.Mean ||
		c.High <= c.Mean || len(reported) != 1 || reported[0] != 3 {
		t.Errorf("%+v, reported %v", c, reported)
	}
	// Of an even number of rounds the lower middle one counts: the result is a measured round.
	r, err = Confident(t.Context(), figures(100, 103, 101.5, 101), nil)
	if err != nil || r.ThroughputBitsPerSec != 101 {
		t.Errorf("%v, %v of %+v", err, r.ThroughputBitsPerSec, r.Confidence)
	}
}

func TestConfidentThrowsDisturbedRoundsAway(t *testing.T) {
	i := 0
	r, err := Confident(t.Context(), func(context.Context) (*traffic.Result, error) {
		i++
		r := &traffic.Result{Test: traffic.RR, TransactionsPerSec: 20000, Warnings: []string{"own"}}
		switch i {
		case 2:
			r.TransactionsPerSec = 10000
			r.Ends.Local.CPUs = []host.CPUTimes{{CPU: 0, User: 1, Steal: 1}}
		case 3:
			r.TransactionsPerSec = 0
		}
		return r, nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(r.Warnings, "\n")
	if r.Confidence.Rounds != 3 || r.Confidence.Mean < 19999 || i != 5 ||
		!strings.Contains(text, "round 2 does not count: 50 %") || !strings.Contains(text, "round 3 does not count") {
		t.Errorf("%d rounds, %+v, %q", i, r.Confidence, r.Warnings)
	}
	// It ends even if every round is unusable.
	r, err = Confident(t.Context(), figures(0), nil)
	if err != nil || r.Confidence != nil || len(r.Warnings) != mostDisturbed+1 {
		t.Errorf("%v, %+v, %d warnings", err, r.Confidence, len(r.Warnings))
	}
}

// TestConfidentBesideNeighbours measures on a host of whose CPU time a part is always stolen: the
// interval is that of the host as it is.
func TestConfidentBesideNeighbours(t *testing.T) {
	i := 0
	r, err := Confident(t.Context(), func(context.Context) (*traffic.Result, error) {
		i++
		r := &traffic.Result{Test: traffic.RR, TransactionsPerSec: 20000 + float64(i%3)}
		r.Ends.Local.CPUs = []host.CPUTimes{{CPU: 0, User: 0.9, Steal: 0.1}}
		if i == 2 {
			r.Ends.Local.CPUs = []host.CPUTimes{{CPU: 0, User: 0.8, Steal: 0.2}}
		}
		return r, nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := "4 of 4 rounds count although CPU time was stolen, because the first 4 all had that: " +
		"it can have cost up to 20.0 % of a figure"
	if r.Confidence == nil || !r.Confidence.Reached || r.Confidence.Rounds != 4 || i != 4 ||
		len(r.Warnings) != 1 || r.Warnings[0] != want {
		t.Errorf("%d rounds, %+v, %q", i, r.Confidence, r.Warnings)
	}
	// A quiet round among the first four shows that this host has quiet ones.
	i = 0
	r, err = Confident(t.Context(), func(context.Context) (*traffic.Result, error) {
		i++
		r := &traffic.Result{Test: traffic.RR, TransactionsPerSec: 20000}
		if i%2 == 1 {
			r.TransactionsPerSec = 10000
			r.Ends.Local.CPUs = []host.CPUTimes{{CPU: 0, User: 0.5, Steal: 0.5}}
		}
		return r, nil
	}, nil)
	if err != nil || r.Confidence.Rounds != 3 || r.Confidence.Mean < 19999 || i != 6 || len(r.Warnings) != 3 {
		t.Errorf("%d rounds, %+v, %q, %v", i, r.Confidence, r.Warnings, err)
	}
}

func TestConfidentEndsWithAnError(t *testing.T) {
	broken := errors.New("broken")
	n := 0
	_, err := Confident(t.Context(), func(context.Context) (*traffic.Result, error) {
		if n++; n == 3 {
			return nil, broken
		}
		return &traffic.Result{Test: traffic.Stream, ThroughputBitsPerSec: 1}, nil
	}, nil)
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "round 3") {
		t.Errorf("%v", err)
	}
}

func TestHeadline(t *testing.T) {
	for _, c := range []struct {
		r    traffic.Result
		want float64
	}{
		{traffic.Result{Test: traffic.Stream, ThroughputBitsPerSec: 5}, 5},
		{traffic.Result{Test: traffic.UDP, ThroughputBitsPerSec: 6}, 6},
		{traffic.Result{Test: traffic.RR, TransactionsPerSec: 7}, 7},
		{traffic.Result{Test: traffic.CRR, TransactionsPerSec: 8}, 8},
		{traffic.Result{Test: traffic.Ping, RTT: &stats.Latencies{P50: 9}}, 9},
		{traffic.Result{Test: traffic.Ping}, 0},
		{traffic.Result{Test: traffic.MTU, MTUBytes: 1500}, 1500}, {traffic.Result{Test: traffic.Load}, 0},
		{traffic.Result{Test: traffic.Load, Load: &traffic.LoadResult{RoundTripsPerMinute: 600}}, 600},
	} {
		if got := headline(&c.r); got != c.want {
			t.Errorf("%s: %v, want %v", c.r.Test, got, c.want)
		}
	}
}
