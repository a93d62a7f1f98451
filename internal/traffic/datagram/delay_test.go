package datagram

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestJitter follows the formula of RFC 3550 by hand.
func TestJitter(t *testing.T) {
	var j jitter
	for _, transit := range []time.Duration{1000, 1016, 1000, 1000} {
		j.note(transit)
	}
	want := 0.0
	for _, d := range []float64{16, 16, 0} {
		want += (d - want) / 16
	}
	if math.Abs(j.seconds()*1e9-want) > 1e-9 {
		t.Errorf("%v ns, want %v", j.seconds()*1e9, want)
	}
}

// TestVariationAgreesWithSorting compares with all transit times kept and sorted.
func TestVariationAgreesWithSorting(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for name, next := range map[string]func(i int) time.Duration{
		"constant":           func(int) time.Duration { return time.Second },
		"exponential":        func(int) time.Duration { return time.Duration(r.ExpFloat64() * 1e5) },
		"other host's clock": func(int) time.Duration { return -1000*time.Hour + time.Duration(r.IntN(3e6)) },
		"slower clock":       func(i int) time.Duration { return time.Duration(r.IntN(20000) - 100*i) },
		"faster clock":       func(i int) time.Duration { return time.Duration(r.IntN(20000) + 100*i) },
		// 20 ppm of an hour and a half, and a queue of 200 ms that is empty now and then: each move is
		// shorter than the buckets of what waited in it.
		"slower clock, long queue": func(i int) time.Duration {
			return time.Duration(r.IntN(2)*200_000_000 + r.IntN(20000) - 5000*i)
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := new(variation)
			var all []float64
			for i := range 20000 {
				transit := next(i)
				v.note(transit, 1)
				all = append(all, float64(transit))
			}
			slices.Sort(all)
			s := v.summary()
			for _, c := range []struct {
				name      string
				got, want float64
			}{
				{"p50", s.P50, all[len(all)/2-1] - all[0]},
				{"p90", s.P90, all[len(all)*9/10-1] - all[0]},
				{"p99", s.P99, all[len(all)*99/100-1] - all[0]},
				{"max", s.Max, all[len(all)-1] - all[0]},
				{"mean", s.Mean, mean(all) - all[0]},
			} {
				// A value is known to 0.4 %, and each time the reference is moved, what lies under
				// the headroom is known to the headroom.
				tolerance := 0.004*c.want + 0.004*float64(headRoom)
				if strings.HasPrefix(name, "slower clock") {
					tolerance += 0.004 * c.want * 8
				}
				if math.Abs(c.got*1e9-c.want) > tolerance {
					t.Errorf("%s: %.0f ns, want %.0f", c.name, c.got*1e9, c.want)
				}
			}
			if s.Count != uint64(len(all)) {
				t.Errorf("%d of %d", s.Count, len(all))
			}
		})
	}
}

func mean(all []float64) float64 {
	sum := 0.0
	for _, x := range all {
		sum += x
	}
	return sum / float64(len(all))
}

func TestBucketsAreInOrderAndFine(t *testing.T) {
	last := -1
	for v := uint64(0); v < 1<<40; v += v/1000 + 1 {
		i := bucketOf(v)
		if i < last || i >= bucketCount {
			t.Fatalf("%d: bucket %d after %d of %d", v, i, last, bucketCount)
		}
		last = i
		if off := math.Abs(float64(middleOf(i)) - float64(v)); off > float64(v)/fine {
			t.Fatalf("%d: bucket %d stands for %d", v, i, middleOf(i))
		}
	}
	if i := bucketOf(math.MaxUint64); i >= bucketCount {
		t.Errorf("bucket %d of %d", i, bucketCount)
	}
}
