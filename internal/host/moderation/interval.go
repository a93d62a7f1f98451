package moderation

import (
	"math"
	"time"

	"github.com/linerate/linerate/internal/base/unit"
)

// InterruptsPerSecond is the highest interrupt rate of a card. +Inf: no limit.
type InterruptsPerSecond float64

// PacketsPerSecond is a rate of packets. Here a packet is a frame: this package neither merges nor
// splits them.
type PacketsPerSecond float64

// The units of the registers of the 8254x.
const (
	ITRUnit  = 256 * time.Nanosecond  // of the interrupt throttling register (manual, 13.4.18)
	TickUnit = 1024 * time.Nanosecond // of the receive and transmit delay timers
)

// ITR is the interrupt throttling register of the 8254x and its successors up to the 82574: the
// least time between two interrupts, in units of 256 ns; 0 is no throttle. Its 16 bits reach 16.8
// ms, which is 59.6 interrupts per second.
type ITR uint16

// Interval returns the time in the register; 0 if it is off.
func (r ITR) Interval() time.Duration { return time.Duration(r) * ITRUnit }

// Rate returns the highest interrupts per second that the register allows: 1 / (256 ns × r). 488
// gives 8004.6.
func (r ITR) Rate() InterruptsPerSecond { return RateOf(r.Interval()) }

// Ticks is one of the delay timers (RDTR, RADV, TIDV, TADV), in units of 1.024 µs; 0 is off.
type Ticks uint16

// Duration returns the time that the timer runs; 0 if it is off.
func (t Ticks) Duration() time.Duration { return time.Duration(t) * TickUnit }

// RateOf returns the rate of something that happens once per interval. A zero or negative interval
// is no bound: +Inf.
func RateOf(interval time.Duration) InterruptsPerSecond {
	if interval <= 0 {
		return InterruptsPerSecond(math.Inf(1))
	}
	return InterruptsPerSecond(1 / interval.Seconds())
}

// Interval returns the time between two interrupts at that rate, to the nearest nanosecond: 3000/s
// gives 333.333 µs. No bound gives 0. A rate that is not positive, or not a number, never
// interrupts and gives the longest duration.
func (r InterruptsPerSecond) Interval() time.Duration {
	if !(r > 0) {
		return math.MaxInt64
	}
	nanoseconds := math.Round(1e9 / float64(r))
	if nanoseconds >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(nanoseconds)
}

// ITR returns the register value that the drivers write for that rate: 10⁹ / (256 × rate),
// truncated, so the card may interrupt slightly more often than requested: 8000/s becomes 488,
// which is 8004.6/s. No bound gives 0. Rates below what 16 bits hold give the longest interval;
// rates above one per unit give the shortest, since 0 would switch the throttle off.
func (r InterruptsPerSecond) ITR() ITR {
	if math.IsInf(float64(r), 1) {
		return 0
	}
	if !(r > 0) {
		return math.MaxUint16
	}
	units := math.Floor(1e9 / (float64(ITRUnit) * float64(r)))
	return ITR(min(max(units, 1), math.MaxUint16))
}

// FramesPerInterrupt returns how many frames gather for one interrupt on average. It is at least
// one, because without frames there is no interrupt, and 0 if nothing arrives.
func FramesPerInterrupt(packets PacketsPerSecond, interrupts InterruptsPerSecond) float64 {
	if !(packets > 0) {
		return 0
	}
	return max(1, float64(packets)/float64(interrupts))
}

// RateForFrames returns the interrupt rate at which that many frames gather on average: 81 000
// packets/s at 50 each give 1620/s, an interval of 617 µs (AP-450, 4.1). Fewer than one frame gives
// no bound.
func RateForFrames(packets PacketsPerSecond, frames float64) InterruptsPerSecond {
	if !(frames >= 1) || !(packets > 0) {
		return InterruptsPerSecond(math.Inf(1))
	}
	return InterruptsPerSecond(float64(packets) / frames)
}

// PollingProduct returns the most packets per second of a host that polls its card at that rate and
// takes at most budget packets each time: HZ × burst_max on FreeBSD (polling(4)), interrupts ×
// netdev_budget before Linux counts a squeeze.
func PollingProduct(looks InterruptsPerSecond, budget uint32) PacketsPerSecond {
	if budget == 0 || !(looks > 0) {
		return 0
	}
	return PacketsPerSecond(float64(looks) * float64(budget))
}

// RingTime returns how long a ring of that many descriptors takes packets without being emptied, at
// one descriptor per packet. It is 0 if nothing arrives or the ring has no room.
func RingTime(descriptors uint32, packets PacketsPerSecond) time.Duration {
	if !(packets > 0) {
		return 0
	}
	nanoseconds := float64(descriptors) / float64(packets) * 1e9
	if nanoseconds >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(math.Round(nanoseconds))
}

// BufferFrames returns how many whole frames of that size a card's own memory holds: the 5 kB that
// an 8-bit card has left for receiving are three frames of 1500 bytes. Sizes are bytes; a frame of
// no size gives 0.
func BufferFrames(buffer, frame unit.Bytes) int64 {
	if frame <= 0 || buffer <= 0 {
		return 0
	}
	return int64(buffer / frame)
}

// The bytes of an Ethernet frame outside its payload, and the smallest payload, to which shorter
// ones are padded (IEEE 802.3).
const (
	frameOverhead  = 14 + 4 + 8 + 12 // header, check sequence, preamble, gap
	MinimumPayload = 46              // makes the smallest frame, of 64 bytes
)

// WireBytes returns the bytes on the wire of a frame with that payload, from its preamble to the
// end of the gap after it: 1538 bytes for 1500, 84 for the smallest.
func WireBytes(mtu int) unit.Bytes {
	return unit.Bytes(max(mtu, MinimumPayload) + frameOverhead)
}

// LineRate returns how many frames of that payload a link carries back to back: at 1 Gb/s 81 274 of
// 1500 bytes and 1 488 095 of the smallest.
func LineRate(link unit.BitRate, mtu int) PacketsPerSecond {
	if !(link > 0) {
		return 0
	}
	return PacketsPerSecond(float64(link) / 8 / float64(WireBytes(mtu)))
}

// PacketTimerThreshold returns the load below which a packet timer expires: one that restarts with
// every frame and interrupts when it expires (RxIntDelay). The frame itself and the timer must fit
// between two frames, so a timer of two packet times expires below a third of the link's rate.
// Above that load only an absolute timer interrupts (AP-450, 4.2). It is 0 for a link without a
// rate, and the whole link for no timer.
func PacketTimerThreshold(link unit.BitRate, mtu int, timer time.Duration) unit.BitRate {
	packets := LineRate(link, mtu)
	if packets == 0 {
		return 0
	}
	packetSeconds := 1 / float64(packets)
	return unit.BitRate(float64(link) * packetSeconds / (packetSeconds + max(timer, 0).Seconds()))
}
