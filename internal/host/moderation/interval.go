package moderation

import (
	"math"
	"time"

	"github.com/linerate/linerate/internal/base/unit"
)

// InterruptsPerSecond is how often a card interrupts at most. +Inf: as often as it likes.
type InterruptsPerSecond float64

// PacketsPerSecond is a rate of packets, which are frames here: nothing in this package joins or
// splits them.
type PacketsPerSecond float64

// The units that the registers of the 8254x count in.
const (
	ITRUnit  = 256 * time.Nanosecond  // of the interrupt throttling register (manual, 13.4.18)
	TickUnit = 1024 * time.Nanosecond // of the receive and transmit delay timers
)

// ITR is the interrupt throttling register of the 8254x and its successors up to the 82574: the
// least time between two interrupts, in units of 256 ns; 0 is no throttle. Its 16 bits reach to
// 16.8 ms, which is 59.6 interrupts per second.
type ITR uint16

// Interval is the time that the register asks for; 0 when it is off.
func (r ITR) Interval() time.Duration { return time.Duration(r) * ITRUnit }

// Rate is the most interrupts per second that the register lets through: 1 / (256 ns × r). 488
// gives 8004.6.
func (r ITR) Rate() InterruptsPerSecond { return RateOf(r.Interval()) }

// Ticks is one of the delay timers (RDTR, RADV, TIDV, TADV), in units of 1.024 µs; 0 is off.
type Ticks uint16

// Duration is the time that the timer runs; 0 when it is off.
func (t Ticks) Duration() time.Duration { return time.Duration(t) * TickUnit }

// RateOf is how often something happens that happens once per interval. No interval, or a negative
// one, is no bound: +Inf.
func RateOf(interval time.Duration) InterruptsPerSecond {
	if interval <= 0 {
		return InterruptsPerSecond(math.Inf(1))
	}
	return InterruptsPerSecond(1 / interval.Seconds())
}

// Interval is the time between two interrupts at that rate, to the nearest nanosecond: 3000/s gives
// 333.333 µs. No bound gives 0; a rate that is not positive, or not a number, never interrupts and
// gives the longest duration there is.
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

// ITR is the register value that the drivers write for that rate: 10⁹ / (256 × rate), cut off and
// not rounded, so the card may interrupt a little more often than was asked: 8000/s becomes 488,
// which is 8004.6/s. No bound gives 0. Rates beyond what 16 bits hold give the longest interval;
// rates beyond one per unit give the shortest, since 0 would switch the throttle off.
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

// FramesPerInterrupt is how many frames gather for one interrupt on average. Never less than one:
// without frames there is no interrupt. 0 when nothing arrives.
func FramesPerInterrupt(packets PacketsPerSecond, interrupts InterruptsPerSecond) float64 {
	if !(packets > 0) {
		return 0
	}
	return max(1, float64(packets)/float64(interrupts))
}

// RateForFrames is how often to interrupt so that on average that many frames come together: 81 000
// packets/s at 50 each give 1620/s, an interval of 617 µs (AP-450, 4.1). No bound for fewer than
// one frame.
func RateForFrames(packets PacketsPerSecond, frames float64) InterruptsPerSecond {
	if !(frames >= 1) || !(packets > 0) {
		return InterruptsPerSecond(math.Inf(1))
	}
	return InterruptsPerSecond(float64(packets) / frames)
}

// PollingProduct is the most packets per second that a host takes in which looks at its card so
// many times per second and takes no more than budget packets each time: HZ × burst_max on FreeBSD
// (polling(4)), interrupts × netdev_budget before Linux calls it a squeeze.
func PollingProduct(looks InterruptsPerSecond, budget uint32) PacketsPerSecond {
	if budget == 0 || !(looks > 0) {
		return 0
	}
	return PacketsPerSecond(float64(looks) * float64(budget))
}

// RingTime is how long a ring of that many descriptors takes in packets while nobody empties it, at
// one descriptor per packet. 0 when nothing arrives or the ring has no room, as then there is no
// such time.
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

// BufferFrames is how many whole frames of that size a card's own memory holds: the 5 kB that an
// 8-bit card has left for receiving are three frames of 1500 bytes. Sizes are bytes; 0 for a frame
// of no size.
func BufferFrames(buffer, frame unit.Bytes) int64 {
	if frame <= 0 || buffer <= 0 {
		return 0
	}
	return int64(buffer / frame)
}

// The bytes of an Ethernet frame outside its payload, and the least payload, to which shorter ones
// are padded (IEEE 802.3).
const (
	frameOverhead  = 14 + 4 + 8 + 12 // header, check sequence, preamble, gap
	MinimumPayload = 46              // makes the smallest frame, of 64 bytes
)

// WireBytes is what a frame of that payload takes of the wire, from its preamble to the end of the
// gap behind it: 1538 bytes for 1500, 84 for the smallest.
func WireBytes(mtu int) unit.Bytes {
	return unit.Bytes(max(mtu, MinimumPayload) + frameOverhead)
}

// LineRate is how many frames of that payload a link carries back to back: at 1 Gb/s 81 274 of 1500
// bytes and 1 488 095 of the smallest.
func LineRate(link unit.BitRate, mtu int) PacketsPerSecond {
	if !(link > 0) {
		return 0
	}
	return PacketsPerSecond(float64(link) / 8 / float64(WireBytes(mtu)))
}

// PacketTimerThreshold is the load below which a packet timer expires: one that starts anew with
// every frame and interrupts when it runs out (RxIntDelay). The frame itself and the time behind it
// have to fit between two frames, so a timer of two packet times expires below a third of the
// link's rate; above, only an absolute timer interrupts (AP-450, 4.2). 0 for a link without a rate;
// the whole link for no timer.
func PacketTimerThreshold(link unit.BitRate, mtu int, timer time.Duration) unit.BitRate {
	packets := LineRate(link, mtu)
	if packets == 0 {
		return 0
	}
	packetSeconds := 1 / float64(packets)
	return unit.BitRate(float64(link) * packetSeconds / (packetSeconds + max(timer, 0).Seconds()))
}
