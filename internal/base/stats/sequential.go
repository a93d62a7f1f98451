package stats

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sync"
)

// exactPairs is the largest number of pairs whose 2^n sign patterns are enumerated: 4096 patterns,
// a fraction of a millisecond.
const exactPairs = 12

// firstShare is the largest part of the risk of a false alarm that the first look may take.
//
// Six pairs cannot show anything rarer than 1/64, which is 62 % of the 2.5 % of one side. O'Brien
// and Fleming's boundary would allow them only 1/20 000, but a large effect should be decided after
// six pairs.
const firstShare = 0.65

// Look is one planned look at the data.
type Look struct {
	Pairs int // number of pairs at this look
	// the interval's ends are the Rank-th smallest and largest Walsh averages; 0: this look cannot
	// prove anything
	Rank  int
	Spent float64 // probability that pure noise has crossed one given side of the boundary at this look or before
}

// Boundary is the plan of an experiment with several looks. The interval of every look is a
// repeated confidence interval: the probability that any of them misses the truth on a given side
// remains at or below (1−Confidence)/2, whenever and for any reason the experiment stops.
type Boundary struct {
	Looks      []Look
	Confidence float64

	lock     sync.Mutex
	stricter map[float64]*Boundary
}

// Stricter returns the same plan at a higher confidence, for a test that shares its risk with
// others. If the first look could then prove nothing, it moves to the first number of pairs that
// can. The plan is computed once for each confidence.
func (b *Boundary) Stricter(confidence float64) (*Boundary, error) {
	b.lock.Lock()
	defer b.lock.Unlock()
	if s := b.stricter[confidence]; s != nil {
		return s, nil
	}
	if !(confidence >= b.Confidence && confidence < 1) {
		return nil, fmt.Errorf("plan looks: confidence %v is not between %v and 1", confidence, b.Confidence)
	}
	first := max(b.Looks[0].Pairs, int(math.Ceil(-math.Log2(firstShare*(1-confidence)/2))))
	looks := []int{first}
	for _, l := range b.Looks {
		if l.Pairs > first {
			looks = append(looks, l.Pairs)
		}
	}
	s, err := NewBoundary(looks, confidence)
	if err != nil {
		return nil, err
	}
	if b.stricter == nil {
		b.stricter = map[float64]*Boundary{}
	}
	b.stricter[confidence] = s
	return s, nil
}

// NewBoundary plans looks at the given, increasing numbers of pairs (1…1000 each) with an overall
// two-sided confidence.
//
// Up to 12 pairs the plan is exact. Without an effect the signs of the differences are fair coins,
// independent of the order of their magnitudes, so the sequence of sign patterns in rank order is a
// Markov chain: the next difference has either sign with probability one half and any place in the
// order with the same probability. The plan enumerates its 2^n states and removes those past the
// boundary at each look. Beyond 12 pairs it tracks only the rank sum, with a normal step from look
// to look. Rank sums have lighter tails than that, so the plan spends a few per cent less than it
// could, never more.
//
// The step from one look to the next matters: the same differences are present at the next look,
// and only their places in the order have changed, at random. Treating the looks as independent
// would be wrong, and treating each as the only one (the fixed-sample interval) would spend the
// risk several times.
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
	var sums []float64 // of the rank sum at the previous look, without the crossed part
	spent, before := 0.0, 0
	for _, pairs := range looks {
		switch {
		case pairs <= exactPairs:
			for chain.pairs < pairs {
				chain.step()
			}
			sums = chain.sums()
		case before == 0:
			sums = signedRankProbabilities(pairs)
		default:
			sums = laterSums(sums, before, pairs)
		}
		allowed := spending(total, looks[0], pairs, last) - spent
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
		clear(sums[:rank])
		spent += crossing
		before = pairs
		out.Looks = append(out.Looks, Look{Pairs: pairs, Rank: rank, Spent: spent})
	}
	return out, nil
}

// spending returns the part of the total risk that may be spent up to a look at n pairs. The first
// look may spend the cost of its strongest possible outcome, if that leaves some risk for the
// others; from there on the risk grows in proportion to the pairs.
//
// Even spending favours the late looks more than front-loaded spending does, and small effects need
// the late looks.
func spending(total float64, first, n, last int) float64 {
	least := math.Pow(2, -float64(first))
	if n == last {
		return total
	}
	if least > firstShare*total {
		return total * float64(n) / float64(last)
	}
	return least + (total-least)*float64(n-first)/float64(last-first)
}

// laterSums transforms the distribution of the rank sum from one look to a later one.
//
// A difference of rank r among the first m has rank r(n+1)/(m+1) among n on average, and each new
// one is on the wrong side with probability one half, at a mean rank of (n+1)/2. The step has the
// part of the new variance that the old rank sum does not explain.
func laterSums(old []float64, m, n int) []float64 {
	out := make([]float64, n*(n+1)/2+1)
	stretch := float64(n+1) / float64(m+1)
	deviation := math.Sqrt(rankVariance(n) - stretch*stretch*rankVariance(m))
	const far = 7 // standard deviations: negligible beyond
	for sum, p := range old {
		// A smaller state does not affect a risk planned to a thousandth.
		if p < 1e-10 {
			continue
		}
		mean := float64(sum)*stretch + float64(n-m)*float64(n+1)/4
		first, last := max(0, int(mean-far*deviation)), min(len(out)-1, int(mean+far*deviation))
		below := 0.0
		for s := first; s <= last; s++ {
			upTo := normalBelow((float64(s) + 0.5 - mean) / deviation)
			out[s] += p * (upTo - below)
			below = upTo
		}
	}
	return out
}

// rankVariance returns the variance of the rank sum of n differences without an effect.
func rankVariance(n int) float64 { return float64(n) * float64(n+1) * float64(2*n+1) / 24 }

// normalBelow is the normal distribution function.
func normalBelow(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }

// Detectable returns how far the truth must lie above a value, in standard deviations of one
// difference, for the lower end of the last look's interval to lie above that value with the given
// power (0…1): the half width of the interval plus a margin for chance. It applies to normal
// differences and large numbers. It is a forecast, not a basis for decisions.
func (b *Boundary) Detectable(power float64) float64 {
	last := b.Looks[len(b.Looks)-1]
	n := float64(last.Pairs)
	half := (n*(n+1)/4 - float64(last.Rank) + 0.5) / math.Sqrt(rankVariance(last.Pairs))
	// The Hodges-Lehmann estimate has 3/π of the efficiency of the mean. The second factor was
	// fitted to simulations, within 3 % at 6 to 32 pairs: interval ends at few ranks scatter more
	// than the estimate.
	return (half + math.Sqrt2*math.Erfinv(2*power-1)) / math.Sqrt(3/math.Pi*n) * (1 + 2.8/n)
}

// MaxPairs returns the number of pairs at the last look.
func (b *Boundary) MaxPairs() int { return b.Looks[len(b.Looks)-1].Pairs }

// LookAt returns the look planned at this number of pairs.
func (b *Boundary) LookAt(pairs int) (int, bool) {
	return slices.BinarySearchFunc(b.Looks, pairs, func(l Look, n int) int { return l.Pairs - n })
}

// Interval returns the repeated confidence interval of x at the look planned for len(x) pairs.
// Between looks both ends are infinite: the estimate may be shown, but must not be used for a
// decision.
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

// signChain is the distribution over sign patterns in order of magnitude: bit i of the index is set
// if the difference of rank i+1 is on the wrong side. Stopped mass has been removed.
type signChain struct {
	pairs int
	mass  []float64 // 2^pairs
}

func newSignChain() *signChain { return &signChain{mass: []float64{1}} }

// step adds one more difference of random sign and random place in the order.
//
// The place splits the pattern: ranks below it remain, ranks from it on move up by one, and the new
// bit is inserted.
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

// sums returns the remaining probability of every rank sum of the wrong-sided differences.
func (c *signChain) sums() []float64 {
	out := make([]float64, c.pairs*(c.pairs+1)/2+1)
	for pattern, p := range c.mass {
		out[rankSum(pattern)] += p
	}
	return out
}

// stop removes every pattern whose rank sum is below rank.
//
// The removed patterns have crossed the boundary: in these cases the experiment is over, and they
// cannot cross a second time.
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
