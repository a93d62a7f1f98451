package datagram

import (
	"math"
	"math/bits"
	"time"

	"github.com/linerate/linerate/internal/base/stats"
)

// jitter is the interarrival jitter of RFC 3550 §6.4.1: the smoothed difference of transit times of
// packets that arrived one after the other. The clocks of the two hosts need not agree.
type jitter struct {
	any     bool
	transit time.Duration
	value   float64 // nanoseconds
}

func (j *jitter) note(transit time.Duration) {
	if j.any {
		d := math.Abs(float64(transit - j.transit))
		j.value += (d - j.value) / 16
	}
	j.any, j.transit = true, transit
}

func (j *jitter) seconds() float64 { return j.value / 1e9 }

// Geometry of the buckets of variation: each power of two is cut into 2^fineBits parts, so a value
// is known to 0.4 %.
const (
	fineBits = 8
	fine     = 1 << fineBits
	// of nanoseconds: two and a half hours; longer ones count as this long, and the exact maximum
	// is kept
	highestBit  = 43
	bucketCount = (highestBit - fineBits + 1) * fine
	levels      = highestBit - fineBits // of buckets of one width
)

// variation is the packet delay variation of RFC 5481 §4.2: the distribution of the transit time
// minus its minimum. The clocks need not agree. The minimum is known only at the end, so values are
// stored as distances from a reference a little below the smallest so far, and all of them are
// moved when a transit time falls below the reference.
type variation struct {
	counts [bucketCount]uint64
	// by how much the values of a level are more than those of their buckets, less than a width
	lag       [levels]uint64
	reference time.Duration // transit time of distance 0
	min, max  time.Duration // transit times
	count     uint64
	// Welford's running mean and sum of squared deviations of the distance from first, nanoseconds
	mean, m2 float64
	first    time.Duration
}

// headRoom is how far the reference lies below a new minimum. Clocks that drift apart make new
// minima all the time; with this headroom moves are rare, and the precision lost is less than 200
// ns.
const headRoom = 50 * time.Microsecond

// note adds n packets of one transit time.
func (v *variation) note(transit time.Duration, n int) {
	if v.count == 0 {
		v.reference, v.first, v.min, v.max = transit-headRoom, transit, transit, transit
	}
	v.min, v.max = min(v.min, transit), max(v.max, transit)
	if transit < v.reference {
		to := transit - headRoom
		v.move(v.reference - to)
		v.reference = to
	}
	v.counts[v.place(uint64(transit-v.reference))] += uint64(n)
	// Chan, Golub & LeVeque's formula for adding n equal values.
	k, total := float64(n), float64(v.count)+float64(n)
	d := float64(transit-v.first) - v.mean
	v.mean += d * k / total
	v.m2 += d * d * float64(v.count) * k / total
	v.count += uint64(n)
}

// move adds a distance to every value. It moves a level by whole buckets and keeps the rest,
// because many distances are shorter than the buckets of large values. From the top down, because
// each goes up.
func (v *variation) move(by time.Duration) {
	for level := levels - 1; level >= 0; level-- {
		width := uint64(1) << level
		far := v.lag[level] + uint64(by)
		v.lag[level] = far % width
		if far -= far % width; far == 0 {
			continue
		}
		first := (level + 1) << fineBits
		if level == 0 {
			first = 0
		}
		for i := (level+2)<<fineBits - 1; i >= first; i-- {
			n := v.counts[i]
			if n == 0 {
				continue
			}
			v.counts[i] = 0
			to := bucketOf(middleOf(i) + far)
			if levelOf(to) != level {
				to = v.place(middleOf(i) + far + v.lag[level])
			}
			v.counts[to] += n
		}
	}
}

// place returns the bucket of a distance, which stands for a little more than its own values.
func (v *variation) place(distance uint64) int {
	lag := v.lag[levelOf(bucketOf(distance))]
	return bucketOf(distance - min(lag, distance))
}

// quantile returns the variation in nanoseconds that the share q of all packets does not exceed.
func (v *variation) quantile(q float64) float64 {
	rank := max(uint64(math.Ceil(q*float64(v.count))), 1)
	offset := float64(v.min - v.reference)
	for i, n := range &v.counts {
		if n >= rank {
			return min(max(float64(middleOf(i)+v.lag[levelOf(i)])-offset, 0), float64(v.max-v.min))
		}
		rank -= n
	}
	return float64(v.max - v.min)
}

// summary returns the distribution; all zero when empty.
func (v *variation) summary() stats.Latencies {
	if v.count == 0 {
		return stats.Latencies{}
	}
	s := stats.Latencies{
		Count: v.count,
		Mean:  (v.mean + float64(v.first-v.min)) / 1e9,
		P50:   v.quantile(0.5) / 1e9,
		P90:   v.quantile(0.9) / 1e9,
		P99:   v.quantile(0.99) / 1e9,
		P999:  v.quantile(0.999) / 1e9,
		Max:   (v.max - v.min).Seconds(),
	}
	if v.count > 1 {
		s.StdDev = math.Sqrt(v.m2/float64(v.count-1)) / 1e9
	}
	return s
}

// bucketOf returns the bucket of a distance in nanoseconds. The first two powers of two share
// buckets of one nanosecond.
func bucketOf(v uint64) int {
	v = min(v, 1<<highestBit-1)
	shift := max(bits.Len64(v)-fineBits-1, 0)
	return shift<<fineBits + int(v>>shift)
}

// levelOf returns the power of two that is the width of a bucket.
func levelOf(i int) int { return max(i>>fineBits-1, 0) }

// middleOf returns the value in the middle of a bucket.
func middleOf(i int) uint64 {
	shift := levelOf(i)
	low := uint64(i-shift<<fineBits) << shift
	return low + uint64(1)<<shift/2
}
