package link

import "time"

// bucket is the token bucket of a policer: it fills at a rate up to a burst, and a frame passes if
// it finds as many tokens as it has bytes. No frame waits, which distinguishes a policer from a
// shaper. The zero value passes every frame.
type bucket struct {
	rate   float64 // bytes per second; 0: no policer
	burst  float64 // bytes
	tokens float64 // bytes
	filled time.Duration
}

// set changes rate (bits per second) and burst (bytes), and fills the bucket, as configuring a
// policer does.
func (b *bucket) set(rate float64, burst int64) {
	b.rate, b.burst, b.tokens = rate/8, float64(burst), float64(burst)
}

// take returns how many of the frame's first wire segments conform at time now, and takes their
// tokens. All segments of a super-frame but the last have the same length. After the first segment
// that does not conform only a short last one still might; ignoring it is an error of less than one
// segment.
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
