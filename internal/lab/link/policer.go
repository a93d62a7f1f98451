package link

import "time"

// bucket is the token bucket of a policer: it fills at a rate up to a burst, and a frame passes
// when it finds as many tokens as it is long. Nothing waits, which is what tells a policer from a
// shaper. The zero value lets everything pass.
type bucket struct {
	rate   float64 // bytes per second; 0: no policer
	burst  float64 // bytes
	tokens float64 // bytes
	filled time.Duration
}

// set changes rate (bits per second) and burst (bytes). The bucket is full afterwards, as that of a
// policer just configured.
func (b *bucket) set(rate float64, burst int64) {
	b.rate, b.burst, b.tokens = rate/8, float64(burst), float64(burst)
}

// take tells how many of the frame's first wire segments conform at time now and takes their
// tokens. Segments of one super-frame are as long as each other but for the last, so that the first
// that does not conform is followed by others that do not; only a short last one might have, which
// errs by less than one segment.
func (b *bucket) take(now time.Duration, f *Frame) int {
	if b.rate == 0 {
		return f.segments
	}
	b.tokens = min(b.burst, b.tokens+b.rate*(now-b.filled).Seconds())
	b.filled = now
	n := f.segments
	if all := float64(f.bytes(0, n)); all > b.tokens {
		n = min(n-1, int(b.tokens/float64(f.segmentLen(0))))
	}
	b.tokens -= float64(f.bytes(0, n))
	return n
}
