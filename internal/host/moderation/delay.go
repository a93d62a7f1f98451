package moderation

import (
	"math"
	"time"
)

// Delays are the timers between a received frame and its interrupt. The transmit side has the same
// three with the same precedence.
type Delays struct {
	Packet   Ticks // RxIntDelay: restarts with every frame; 0: interrupts at once
	Absolute Ticks // RxAbsIntDelay: starts with the first frame of a group; 0, or no packet timer: off
	Throttle ITR   // has precedence: no interrupt sooner than this after the previous one
}

// Rule is the timer that decides.
type Rule string

// The timers that can decide, by the parameters that set them.
const (
	RuleNone     Rule = "none" // every frame interrupts
	RulePacket   Rule = "RxIntDelay"
	RuleAbsolute Rule = "RxAbsIntDelay"
	RuleThrottle Rule = "InterruptThrottleRate"
)

// Interval returns the time from the first frame of a group to its interrupt when packets arrive
// evenly, and the timer that decides.
//
// The packet timer expires when the gap between frames is longer than it. Faster frames restart it
// each time, and only the absolute timer ends the chain. Without an absolute timer a card waits
// until its ring is nearly full, which is returned as the longest duration. In any case the
// throttle holds the interrupt back until its interval is over, so short delays never cause more
// interrupts than it allows.
func (d Delays) Interval(packets PacketsPerSecond) (time.Duration, Rule) {
	wait, rule := time.Duration(0), RuleNone
	if d.Packet > 0 {
		wait, rule = d.Packet.Duration(), RulePacket
		if gap := RingTime(1, packets); packets > 0 && gap <= wait {
			wait, rule = d.Absolute.Duration(), RuleAbsolute
			if d.Absolute == 0 {
				wait, rule = math.MaxInt64, RulePacket
			}
		} else if d.Absolute > 0 && d.Absolute.Duration() < wait {
			wait, rule = d.Absolute.Duration(), RuleAbsolute
		}
	}
	if throttle := d.Throttle.Interval(); throttle > wait {
		return throttle, RuleThrottle
	}
	return wait, rule
}

// Overruns reports whether the ring is full before the interrupt comes: more frames gather in the
// interval than it has descriptors, and the card drops the rest as missed. e1000.rst describes this
// as a delay set too high.
func Overruns(descriptors uint32, packets PacketsPerSecond, interval time.Duration) bool {
	return packets > 0 && RingTime(descriptors, packets) < interval
}
