package stats

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// exactPairs is the largest number of pairs whose 2^n sign patterns are followed one by one: 1 Mi patterns, 8 MiB, tens of milliseconds.
const exactPairs = 20

// spendingPower shapes how the risk of a false alarm is spent over an experiment of relative length t: risk(t) = total · t^spendingPower.
// It is front-loaded because the signed ranks of 6 pairs cannot show anything rarer than 1/64, while O'Brien and Fleming's boundary
// would allow 1/20 000 there. With looks at 6, 10 and 16 pairs 0.4 is just enough for 1/64 of the 2.5 % at the first look,
// so a large effect needs 6 pairs, and the two later looks still have a third of the risk to spend.
const spendingPower = 0.4

// Look is one planned look at the data.
type Look struct {
	Pairs int     // how many pairs there are at this look
	Rank  int     // the interval's ends are the Rank-th smallest and largest Walsh averages; 0: this look cannot prove anything
	Spent float64 // probability that pure noise has crossed one given side of the boundary at this look or before
}

// Boundary plans an experiment that is looked at several times. The interval of every look is a repeated confidence interval: the
// probability that any of them misses the truth on a given side stays at or below (1−Confidence)/2, whenever one stops and for whatever reason.
type Boundary struct {
	Looks      []Look
	Confidence float64
}

// NewBoundary plans looks at the given, increasing numbers of pairs (1…1000 each) with an overall two-sided confidence.
//
// Up to 20 pairs the plan is exact. Under no effect the signs of the differences are fair coins, independent of the order of their
// magnitudes, so the sequence of sign patterns in rank order is a Markov chain: the next difference has either sign with probability
// one half and falls at each place of the order with the same probability. Its 2^n states are enumerated and those past the
// boundary removed at each look. Beyond 20 pairs the looks' risks are simply added up, which is conservative.
//
// The step from one look to the next is what makes this exact: the same differences are still there at the next look,
// and only their places in the order have changed, at random. Treating the looks as independent would be wrong, and
// treating them as one (the fixed-sample interval at each) would spend the risk several times.
func NewBoundary(looks []int, confidence float64) (*Boundary, error) {
	if !(confidence > 0 && confidence < 1) {
		return nil, fmt.Errorf("plan looks: confidence %v is not between 0 and 1", confidence)
	}
	if len(looks) == 0 || looks[0] < 1 || looks[len(looks)-1] > 1000 {
		return nil, fmt.Errorf("plan looks: %v must be between 1 and 1000 pairs", looks)
	}
	for i := 1; i < len(looks); i++ {
		if looks[i] <= looks[i-1] {
			return nil, fmt.Errorf("plan looks: %v must increase", looks)
		}
	}
	last := looks[len(looks)-1]
	total := (1 - confidence) / 2
	out := &Boundary{Confidence: confidence}
	chain := newSignChain()
	spent := 0.0
	for _, pairs := range looks {
		allowed := total*math.Pow(float64(pairs)/float64(last), spendingPower) - spent
		var sums []float64
		if pairs <= exactPairs {
			for chain.pairs < pairs {
				chain.step()
			}
			sums = chain.sums()
		} else {
			sums = signedRankProbabilities(pairs)
		}
		rank, crossing := 0, 0.0
		for sum, p := range sums {
			if crossing+p > allowed*(1+1e-12) {
				break
			}
			crossing += p
			rank = sum + 1
		}
		if pairs <= exactPairs {
			chain.stop(rank)
		}
		spent += crossing
		out.Looks = append(out.Looks, Look{Pairs: pairs, Rank: rank, Spent: spent})
	}
	return out, nil
}

// MaxPairs is the number of pairs at the last look.
func (b *Boundary) MaxPairs() int { return b.Looks[len(b.Looks)-1].Pairs }

// LookAt tells which look is planned at this number of pairs.
func (b *Boundary) LookAt(pairs int) (int, bool) {
	return slices.BinarySearchFunc(b.Looks, pairs, func(l Look, n int) int { return l.Pairs - n })
}

// Interval is the repeated confidence interval of x at the look planned for len(x) pairs. Between looks both ends are infinite: the
// estimate may be shown, but nothing may be decided.
func (b *Boundary) Interval(x []float64) Interval {
	rank := 0
	if i, ok := b.LookAt(len(x)); ok {
		rank = b.Looks[i].Rank
	}
	out := rankInterval(x, rank)
	if out.Finite() {
		out.Confidence = b.Confidence
	}
	return out
}

// signChain is the distribution over sign patterns in order of magnitude: bit i of the index is set when the difference of rank i+1 is
// on the wrong side. Mass that was stopped is gone.
type signChain struct {
	pairs int
	mass  []float64 // 2^pairs
}

func newSignChain() *signChain { return &signChain{mass: []float64{1}} }

// step adds one more difference of random sign and random place in the order.
//
// The place splits the pattern: ranks below it stay, those from it on move up by one, and the new bit goes in
// between.
func (c *signChain) step() {
	next := make([]float64, 2*len(c.mass))
	share := 1 / float64(2*(c.pairs+1))
	for pattern, p := range c.mass {
		if p == 0 {
			continue
		}
		p *= share
		for place := 0; place <= c.pairs; place++ {
			below := pattern & (1<<place - 1)
			moved := (pattern&^(1<<place-1))<<1 | below
			next[moved] += p
			next[moved|1<<place] += p
		}
	}
	c.mass = next
	c.pairs++
}

// sums gives the remaining probability of every rank sum of the wrong-sided ones.
func (c *signChain) sums() []float64 {
	out := make([]float64, c.pairs*(c.pairs+1)/2+1)
	for pattern, p := range c.mass {
		out[rankSum(pattern)] += p
	}
	return out
}

// stop removes every pattern whose rank sum is below rank.
//
// What is removed has crossed the boundary: in those cases the experiment is over, and they cannot cross a second
// time.
func (c *signChain) stop(rank int) {
	for pattern := range c.mass {
		if rankSum(pattern) < rank {
			c.mass[pattern] = 0
		}
	}
}

func rankSum(pattern int) int {
	sum := 0
	for p := uint(pattern); p != 0; p &= p - 1 {
		sum += bits.TrailingZeros(p) + 1
	}
	return sum
}
