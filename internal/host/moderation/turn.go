package moderation

import (
	"math"
	"time"
)

// A Span is the range of a time, with its mean.
type Span struct {
	Least, Mean, Most time.Duration
}

// Wait is how long a frame waits that arrives at any moment of an interval between two interrupts:
// not at all at best, all of it at worst, half of it on average.
func Wait(interval time.Duration) Span {
	interval = max(interval, 0)
	return Span{Mean: interval / 2, Most: interval}
}

// IdleRoundTrip is the round trip of a lone packet, as of ping, between two hosts whose cards
// moderate: base, which is the round trip without moderation at either end, and one wait at each
// end.
//
// A card that has been quiet for longer than its interval would interrupt at once if the timer
// started with the last interrupt. The field notes of 2007 show that it runs freely on the 8254x:
// 0.032 ms without, 0.156 ms with 125 µs at both ends, which is half an interval at each.
func IdleRoundTrip(base, near, far time.Duration) Span {
	a, b := Wait(near), Wait(far)
	return Span{
		Least: base,
		Mean:  addUp(base, a.Mean, b.Mean),
		Most:  addUp(base, a.Most, b.Most),
	}
}

// TransactionRate is the range of transactions per second that one connection gets which asks again
// as soon as it is answered. base is the round trip without moderation.
//
// A transaction needs an interrupt at each end. The best that can happen is that both ends are in
// step with it, and then it takes one interval of the slower end; it cannot take less, which is why
// such rates stand at 1 / interval to the digit: 8004.6/s for ITR 488 at one end. The worst is that
// each end waits a whole interval. 0 and 0 where no time is given at all, as then nothing bounds it
// here.
func TransactionRate(base, near, far time.Duration) (least, most float64) {
	longest := max(base, near, far)
	if longest <= 0 {
		return 0, 0
	}
	return 1 / addUp(base, near, far).Seconds(), 1 / longest.Seconds()
}

// addUp adds durations, of which negative ones count as none, and stops at the longest there is
// instead of turning negative.
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
