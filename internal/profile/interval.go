package profile

import (
	"cmp"
	"math"

	"github.com/linerate/linerate/internal/base/sorting"
)

// tally counts samples by slice of time.
type tally struct{ by []float64 }

func newTally(slices int) *tally { return &tally{by: make([]float64, slices)} }

func (t *tally) add(slice int, count uint64) {
	if slice >= 0 && slice < len(t.by) {
		t.by[slice] += float64(count)
	}
}

func (t *tally) sum() float64 {
	if t == nil {
		return 0
	}
	sum := 0.0
	for _, v := range t.by {
		sum += v
	}
	return sum
}

// estimator makes rows of tallies.
type estimator struct {
	w    Window
	busy *tally
}

// rows returns the rows of a group, most samples first.
func (e estimator) rows(of map[string]*tally) []Row {
	var all []Row
	for name, t := range of {
		all = append(all, e.row(name, t))
	}
	sorting.Func(all, func(x, y Row) int {
		return cmp.Or(cmp.Compare(y.Samples, x.Samples), cmp.Compare(x.Name, y.Name))
	})
	return all
}

// row estimates the share of a tally and its time per packet.
func (e estimator) row(name string, t *tally) Row {
	k, n := t.sum(), e.busy.sum()
	r := Row{Name: name, Samples: uint64(k)}
	if n > 0 {
		quantile := quantileT(len(t.by) - 1)
		d := dispersion(t.by, e.busy.by, n, k*(1-k/n)/n)
		r.Dispersion = round3(d)
		r.Share = k / n
		r.ShareLow, r.ShareHigh = wilson(k/d, n/d, quantile)
	}
	packets := sum(e.w.PacketsBySlice)
	bytes := sum(e.w.BytesBySlice)
	if e.w.SampleSeconds > 0 {
		seconds := k * e.w.SampleSeconds
		r.Seconds = &seconds
		if packets > 0 {
			scale := e.w.SampleSeconds * 1e9 / packets
			d := 1.0
			if len(e.w.PacketsBySlice) == len(t.by) {
				d = dispersion(t.by, e.w.PacketsBySlice, packets, k/packets)
			}
			low, high := poisson(k/d, quantileT(len(t.by)-1))
			r.PerPacket, r.PerPacketLow, r.PerPacketHigh = of(k*scale), of(low*d*scale), of(high*d*scale)
		}
		if bytes > 0 {
			r.PerByte = of(seconds * 1e9 / bytes)
		}
	} else if e.w.EventsPerSample > 0 && packets > 0 {
		r.EventsPerPacket = of(k * e.w.EventsPerSample / packets)
	}
	return r
}

func of(v float64) *float64 { return &v }

func round3(v float64) float64 { return math.Round(v*1000) / 1000 }

func sum(x []float64) float64 {
	s := 0.0
	for _, v := range x {
		s += v
	}
	return s
}

// dispersion returns the variance of the counts x around their ratio to the sizes of the slices,
// relative to that of independent samples: variance is what one unit of size has then. It is at
// least 1: fewer than independent samples would vary is chance. One slice knows no variance.
func dispersion(x, size []float64, total, variance float64) float64 {
	n := 0
	for _, s := range size {
		if s > 0 {
			n++
		}
	}
	k := sum(x)
	if n < 2 || k == 0 || total <= 0 || variance <= 0 {
		return 1
	}
	ratio, squares := k/total, 0.0
	for i := range x {
		if size[i] > 0 || x[i] > 0 {
			d := x[i] - ratio*size[i]
			squares += d * d
		}
	}
	seen := squares * float64(n) / float64(n-1)
	return max(1, seen/(variance*total))
}

// wilson returns the score interval of k of n for the given quantile.
func wilson(k, n, z float64) (low, high float64) {
	if n <= 0 {
		return 0, 1
	}
	p, z2 := k/n, z*z
	centre := (p + z2/(2*n)) / (1 + z2/n)
	half := z / (1 + z2/n) * math.Sqrt(p*(1-p)/n+z2/(4*n*n))
	return max(0, centre-half), min(1, centre+half)
}

// poisson returns the score interval of a count.
func poisson(k, z float64) (low, high float64) {
	centre, half := k+z*z/2, z*math.Sqrt(k+z*z/4)
	return max(0, centre-half), centre + half
}

// quantileT returns the 97.5 % quantile of Student's t with the given degrees of freedom, within
// 0.1 % (Cornish and Fisher's expansion from the normal one; exact values for one to four). Without
// any degree it is the normal one: nothing is known about dispersion then.
func quantileT(degrees int) float64 {
	const z = 1.959963984540054
	switch {
	case degrees <= 0:
		return z
	case degrees <= 4:
		return [...]float64{12.706205, 4.302653, 3.182446, 2.776445}[degrees-1]
	}
	v := float64(degrees)
	z3, z5, z7 := z*z*z, math.Pow(z, 5), math.Pow(z, 7)
	return z + (z3+z)/(4*v) + (5*z5+16*z3+3*z)/(96*v*v) + (3*z7+19*z5+17*z3-15*z)/(384*v*v*v)
}
