package names

import (
	"math"
	"math/rand/v2"
)

// zipf draws numbers from 0 to n-1, of which number k has the weight (k+1)^-s, for any s above 0;
// rand.Zipf wants one above 1. The method is rejection-inversion (Hörmann and Derflinger 1996): the
// area below the continuous weight is drawn evenly, and few draws are repeated.
type zipf struct {
	rnd         *rand.Rand
	s, n        float64
	first, last float64 // areas up to the first number, without its excess, and up to the last
	near        float64 // numbers this close to the point drawn need no comparison
}

func newZipf(rnd *rand.Rand, s float64, n int) *zipf {
	z := &zipf{rnd: rnd, s: s, n: float64(n)}
	z.first, z.last = z.area(1.5)-1, z.area(z.n+0.5)
	z.near = 2 - z.inverse(z.area(2.5)-math.Pow(2, -s))
	return z
}

// area is the integral of x^-s from 1 on.
func (z *zipf) area(x float64) float64 {
	log := math.Log(x)
	if t := (1 - z.s) * log; math.Abs(t) > 1e-8 {
		return math.Expm1(t) / (1 - z.s)
	}
	return log
}

// inverse returns where an area ends.
func (z *zipf) inverse(area float64) float64 {
	t := max(area*(1-z.s), -1) // -1 by rounding
	if math.Abs(t) > 1e-8 {
		return math.Exp(math.Log1p(t) / (1 - z.s))
	}
	return math.Exp(area)
}

func (z *zipf) draw() uint32 {
	for {
		u := z.last + z.rnd.Float64()*(z.first-z.last)
		x := z.inverse(u)
		k := min(max(math.Floor(x+0.5), 1), z.n)
		if k-x <= z.near || u >= z.area(k+0.5)-math.Pow(k, -z.s) {
			return uint32(k) - 1
		}
	}
}
