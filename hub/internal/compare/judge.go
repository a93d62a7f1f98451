package compare

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/linerate/linerate/internal/base/stats"
)

const (
	fewestBlocks = 8    // in the shorter interval
	mostBlocks   = 64   // in the longer one
	fewestValues = 16   // in a judged interval
	shuffles     = 2000 //
	level        = 0.05
	seed         = 0x6c696e6572617465 // the same history gives the same answer
)

// pair is a series in both intervals, ready for the judgement: block means, and how much too
// confident they make it.
type pair struct {
	enough        bool
	before, after []float64 // block means
	wideBefore    float64   // factor on the standard error of the blocks
	wideAfter     float64
}

// verdict is the judgement of a pair.
type verdict struct {
	judged           bool
	ratio, low, high float64 // NaN if undefined
	moved            bool
	chance           float64
}

func pairOf(before, after []float64) pair {
	shorter := min(len(before), len(after))
	if shorter < fewestValues {
		return pair{}
	}
	length := shorter / fewestBlocks
	// A longer interval has more blocks, up to a bound; beyond it the blocks are longer.
	cut := func(x []float64) []float64 { return blocks(x, min(len(x)/length, mostBlocks)) }
	p := pair{enough: true, before: cut(before), after: cut(after)}
	p.wideBefore, p.wideAfter = widening(before, len(p.before)), widening(after, len(p.after))
	return p
}

// blocks returns the means of n parts of x, one value each.
func blocks(x []float64, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = stats.Mean(x[i*len(x)/n : (i+1)*len(x)/n])
	}
	return out
}

// widening returns the standard error of the mean of a series relative to what its n block means
// suggest. It follows from the correlation of one value with the next, as if the series had no
// other memory.
func widening(x []float64, n int) float64 {
	r := stats.Autocorrelation(x)
	size := float64(len(x))
	// The estimate is too small for short series. At 1 the mean is undefined; values near it are
	// clamped.
	r = min(r+(1+3*r)/size, 0.99)
	if r <= 0 {
		return 1
	}
	whole, block := varianceOfMean(r, size), varianceOfMean(r, size/float64(n))
	if block <= whole {
		return 1
	}
	return math.Sqrt(max(1, whole*float64(n-1)/(block-whole)))
}

// varianceOfMean returns the variance of the mean of n values of a first-order autoregressive
// series, relative to that of one value.
func varianceOfMean(r, n float64) float64 {
	return ((1+r)/(1-r) - 2*r*(1-math.Pow(r, n))/(n*(1-r)*(1-r))) / n
}

// judge returns a verdict on each pair, knowing all pairs.
func judge(pairs []pair) []verdict {
	out := make([]verdict, len(pairs))
	// Metrics with gaps have other numbers of blocks. Only pairs of one shape share a shuffle, and
	// most have the same shape.
	shapes := make(map[[2]int][]int)
	for i, p := range pairs {
		out[i] = verdict{ratio: math.NaN(), low: math.NaN(), high: math.NaN(), chance: 1}
		if !p.enough {
			continue
		}
		out[i].judged = true
		out[i].ratio, out[i].low, out[i].high = ratio(p)
		shapes[[2]int{len(p.before), len(p.after)}] = append(shapes[[2]int{len(p.before), len(p.after)}], i)
	}
	for shape, members := range shapes {
		shuffle(pairs, members, shape, len(shapes), out)
	}
	return out
}

// ratio returns the ratio of the means, after to before, with its interval.
func ratio(p pair) (r, low, high float64) {
	b, a := stats.Mean(p.before), stats.Mean(p.after)
	if b <= 0 || a <= 0 {
		if b > 0 && a == 0 {
			return 0, math.NaN(), math.NaN()
		}
		return math.NaN(), math.NaN(), math.NaN()
	}
	part := func(x []float64, mean, wide float64) float64 {
		sd := stats.StdDev(x) * wide / mean
		return sd * sd / float64(len(x))
	}
	vb, va := part(p.before, b, p.wideBefore), part(p.after, a, p.wideAfter)
	r = a / b
	if vb+va == 0 {
		return r, r, r
	}
	// Welch's degrees of freedom.
	df := (vb + va) * (vb + va) / (vb*vb/float64(len(p.before)-1) + va*va/float64(len(p.after)-1))
	half := studentQuantile(1-level/2, df) * math.Sqrt(vb+va)
	return r, r * math.Exp(-half), r * math.Exp(half)
}

// shuffle judges which members of a shape moved. Each of the shapes gets its part of the level.
func shuffle(pairs []pair, members []int, shape [2]int, shapes int, out []verdict) {
	nb, n := shape[0], shape[0]+shape[1]
	// Ranks from -1 to 1, so that the sums of all series have one scale.
	ranks := make([][]float64, len(members))
	observed := make([]float64, len(members))
	for k, i := range members {
		p := pairs[i]
		ranks[k] = centred(append(slices.Clone(p.before), p.after...))
		sum := 0.0
		for _, r := range ranks[k][nb:] {
			sum += r
		}
		observed[k] = math.Abs(sum) / max(p.wideBefore, p.wideAfter)
	}
	source := rand.New(rand.NewPCG(seed, uint64(n)))
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	largest := make([]float64, shuffles)
	for s := range largest {
		source.Shuffle(n, func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, r := range ranks {
			sum := 0.0
			for _, j := range order[nb:] {
				sum += r[j]
			}
			largest[s] = max(largest[s], math.Abs(sum))
		}
	}
	for k, i := range members {
		beyond := 1 // the observed order is one of those that chance makes
		for _, l := range largest {
			if l >= observed[k]*(1-1e-12) {
				beyond++
			}
		}
		out[i].chance = min(1, float64(beyond)/float64(shuffles+1)*float64(shapes))
		out[i].moved = out[i].chance <= level
	}
}

// centred replaces values by their ranks around 0; equal values share a rank.
func centred(x []float64) []float64 {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(x[i], x[j]) })
	out := make([]float64, len(x))
	for i := 0; i < len(order); {
		j := i
		for j < len(order) && x[order[j]] == x[order[i]] {
			j++
		}
		r := float64(i+j-1)/2 - float64(len(x)-1)/2
		for ; i < j; i++ {
			out[order[i]] = r
		}
	}
	return out
}

// studentQuantile returns a quantile of Student's distribution for p above a half, by Hill's
// approximation: six digits from 3 degrees of freedom, two below.
func studentQuantile(p, df float64) float64 {
	df = max(df, 1)
	tail := 2 * (1 - p)
	if df == 1 {
		return 1 / math.Tan(tail*math.Pi/2)
	}
	a := 1 / (df - 0.5)
	b := 48 / (a * a)
	c := ((20700*a/b-98)*a-16)*a + 96.36
	d := ((94.5/(b+c)-3)/b + 1) * math.Sqrt(a*math.Pi/2) * df
	x := d * tail
	y := math.Pow(x, 2/df)
	if y > 0.05+a {
		x = -math.Sqrt2 * math.Erfinv(2*(1-tail/2)-1) // the normal quantile of the lower tail
		y = x * x
		if df < 5 {
			c += 0.3 * (df - 4.5) * (x + 0.6)
		}
		c = (((0.05*d*x-5)*x-7)*x-2)*x + b + c
		y = (((((0.4*y+6.3)*y+36)*y+94.5)/c-y-3)/b + 1) * x
		y = math.Expm1(a * y * y)
	} else {
		y = ((1/(((df+6)/(df*y)-0.089*d-0.822)*(df+2)*3)+0.5/(df+4))*y-1)*(df+1)/(df+2) + 1/y
	}
	return math.Sqrt(df * y)
}
