package moderation

import (
	"math"
	"time"
)

// A Span is the range of a time, with its mean.
type Span struct {
	Least, Mean, Most time.Duration
}

// Wait returns how long a frame waits that arrives at a random moment of an interval between two
// interrupts: not at all at best, all of it at worst, half of it on average.
func Wait(interval time.Duration) Span {
	interval = max(interval, 0)
	return Span{Mean: interval / 2, Most: interval}
}

// IdleRoundTrip returns the round trip of a single packet, such as a ping, between two hosts whose
// NICs moderate: base, the round trip without moderation at either end, and one wait at each end.
//
// If the timer started with the last interrupt, a card that was quiet for longer than its interval
// would interrupt at once. The field notes of 2007 show that the timer runs freely on the 8254x:
// 0.032 ms without moderation, 0.156 ms with 125 µs at both ends, which is half an interval at
// each.
func IdleRoundTrip(base, near, far time.Duration) Span {
	a, b := Wait(near), Wait(far)
	return Span{
		Least: base,
		Mean:  addUp(base, a.Mean, b.Mean),
		Most:  addUp(base, a.Most, b.Most),
	}
}

// TransactionRate returns the range of transactions per second of one connection that sends the
// next request as soon as it has the answer. base is the round trip without moderation.
//
// A transaction needs an interrupt at each end. At best both ends are in step with it, and it takes
// one interval of the slower end. It cannot take less, so such rates stay at exactly 1 / interval:
// 8004.6/s for ITR 488 at one end. At worst each end waits a whole interval. Both results are 0 if
// all times are 0, because then nothing here bounds the rate.
func TransactionRate(base, near, far time.Duration) (least, most float64) {
	longest := max(base, near, far)
	if longest <= 0 {
		return 0, 0
	}
	return 1 / addUp(base, near, far).Seconds(), 1 / longest.Seconds()
}

// addUp adds durations, counts negative ones as zero, and stops at the longest duration instead of
// overflowing.
func addUp(times ...time.Duration) time.Duration {
	var sum time.Duration
	for _, t := range times {
		t = max(t, 0)
		if sum > math.MaxInt64-t {
			return math.MaxInt64
		}
		sum += t
	}
	return sum
}
