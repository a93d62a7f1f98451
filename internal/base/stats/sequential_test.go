package stats_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/base/testenv"
)

func TestBoundaryDefault(t *testing.T) {
	b, err := stats.NewBoundary([]int{6, 10, 16, 24, 32}, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	if b.Looks[0].Rank != 1 || !near(b.Looks[0].Spent, 1.0/64, 1e-12) {
		t.Errorf("first look %+v: a large effect must be able to show in six pairs, which costs exactly 1/64",
			b.Looks[0])
	}
	for i, l := range b.Looks {
		if l.Spent > 0.025 || l.Rank == 0 {
			t.Errorf("look %d is %+v, want a reachable boundary within 2.5 %%", i, l)
		}
	}
	if b.MaxPairs() != 32 {
		t.Errorf("max pairs %d", b.MaxPairs())
	}
	if i, ok := b.LookAt(10); !ok || i != 1 {
		t.Errorf("look at 10 pairs: %d, %v", i, ok)
	}
	if _, ok := b.LookAt(7); ok {
		t.Error("the plan has no look at 7 pairs")
	}
}

// TestBoundarySpending compares the planned spending with a simulation that does not use sign
// patterns: equal in the enumerated range, and beyond it at most the planned spending, but not much
// less.
func TestBoundarySpending(t *testing.T) {
	repeats := testenv.Sample(30_000, 3_000)
	for _, looks := range [][]int{{8}, {4, 7, 12}, {6, 10, 16, 24, 32}, {6, 12, 30}} {
		b, err := stats.NewBoundary(looks, 0.9)
		if err != nil {
			t.Fatal(err)
		}
		random := rand.New(rand.NewPCG(5, uint64(len(looks))))
		crossed := make([]int, len(looks))
		for range repeats {
			x := make([]float64, b.MaxPairs())
			for i := range x {
				x[i] = random.NormFloat64()
			}
			for i, l := range b.Looks {
				if b.Interval(x[:l.Pairs]).Low > 0 {
					crossed[i]++
					break
				}
			}
		}
		total := 0
		for i, l := range b.Looks {
			total += crossed[i]
			got := float64(total) / float64(repeats)
			sigma := math.Sqrt(l.Spent * (1 - l.Spent) / float64(repeats))
			least := l.Spent
			if l.Pairs > 12 {
				least *= 0.95
			}
			if got > l.Spent+4*sigma+1e-9 || got < least-4*sigma-1e-9 {
				t.Errorf("looks %v: simulated %.4f crossed by look %d, the plan allows %.4f", looks, got, i, l.Spent)
			}
		}
	}
}

// TestBoundaryLarge checks that the conservative rule beyond the exact range still keeps the
// promise and can still prove an effect.
func TestBoundaryLarge(t *testing.T) {
	b, err := stats.NewBoundary([]int{10, 30, 60}, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range b.Looks {
		if l.Rank == 0 || l.Spent > 0.025*(1+1e-9) {
			t.Errorf("look %+v", l)
		}
	}
	single, err := stats.NewBoundary([]int{30}, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	if want := stats.CriticalRank(30, 0.025); single.Looks[0].Rank != want {
		t.Errorf("a single look at 30 pairs has rank %d, want the fixed-size test's %d", single.Looks[0].Rank, want)
	}
}

// TestDetectable compares the forecast with a simulation: at the forecast distance, nine in ten
// comparisons prove the effect at the last look.
func TestDetectable(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	for _, looks := range [][]int{{6}, {6, 10, 16}, {6, 10, 16, 24, 32}} {
		b, err := stats.NewBoundary(looks, 0.95)
		if err != nil {
			t.Fatal(err)
		}
		const repeats = 2000
		shift, proven := b.Detectable(0.9), 0
		for range repeats {
			x := make([]float64, b.MaxPairs())
			for i := range x {
				x[i] = shift + random.NormFloat64()
			}
			if b.Interval(x).Low > 0 {
				proven++
			}
		}
		if rate := float64(proven) / repeats; rate < 0.87 || rate > 0.93 {
			t.Errorf("looks %v: %.3f are proven at a distance of %.2f standard deviations, want 0.9", looks,
				rate, shift)
		}
	}
}

func TestBoundaryStricter(t *testing.T) {
	b, err := stats.NewBoundary([]int{6, 10, 16}, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	s, err := b.Stricter(0.98)
	if err != nil {
		t.Fatal(err)
	}
	// One in a hundred on a side: eight pairs are the fewest that can prove it and leave some risk
	// for the other looks.
	if s.Looks[0].Pairs != 8 || s.Looks[0].Rank == 0 || s.MaxPairs() != 16 || s.Looks[2].Spent > 0.01*(1+1e-9) ||
		s.Confidence != 0.98 {
		t.Errorf("%+v", s)
	}
	if again, err := b.Stricter(0.98); err != nil || again != s {
		t.Error("computed twice")
	}
	for _, confidence := range []float64{0.9, 1, math.NaN()} {
		if _, err := b.Stricter(confidence); err == nil {
			t.Errorf("confidence %v was accepted", confidence)
		}
	}
}

// TestBoundarySingle checks that a single look is the ordinary signed-rank interval.
func TestBoundarySingle(t *testing.T) {
	b, err := stats.NewBoundary([]int{12}, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	x := []float64{3, 1, 4, 1.5, 5, 9, 2, 6, 5.3, 5.8, 9.7, 9.3}
	if diff := cmp.Diff(stats.SignedRank(x, 0.95), b.Interval(x),
		cmpopts.IgnoreFields(stats.Interval{}, "Confidence")); diff != "" {
		t.Error(diff)
	}
	if got := b.Interval(x[:11]); got.Finite() {
		t.Errorf("interval between looks is %+v, want open ends", got)
	}
}

func TestBoundaryTooSmall(t *testing.T) {
	b, err := stats.NewBoundary([]int{3, 6}, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	if b.Looks[0].Rank != 0 || b.Looks[0].Spent != 0 {
		t.Errorf("three pairs cannot prove anything: %+v", b.Looks[0])
	}
	if b.Looks[1].Rank != 1 {
		t.Errorf("the risk not spent early must be available later: %+v", b.Looks[1])
	}
}

func TestBoundaryRefuses(t *testing.T) {
	for _, looks := range [][]int{nil, {0, 5}, {6, 6}, {10, 6}, {2000}} {
		if _, err := stats.NewBoundary(looks, 0.95); err == nil {
			t.Errorf("looks %v were accepted", looks)
		}
	}
	for _, confidence := range []float64{0, 1, math.NaN()} {
		if _, err := stats.NewBoundary([]int{6}, confidence); err == nil {
			t.Errorf("confidence %v was accepted", confidence)
		}
	}
}

func BenchmarkNewBoundary(b *testing.B) {
	for b.Loop() {
		if _, err := stats.NewBoundary([]int{6, 10, 16, 24, 32}, 0.95); err != nil {
			b.Fatal(err)
		}
	}
}
