package calc

import (
	"fmt"
	"math"
	"time"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/host/moderation"
)

// Moderation asks for an interrupt timer. The rate of interrupts comes from one of Interrupts,
// Interval and PerInterrupt; two of them are refused. PerInterrupt needs Packets, or a Link, which
// then is full of frames.
type Moderation struct {
	Interrupts   float64       // per second
	Interval     time.Duration // between two interrupts
	PerInterrupt float64       // frames
	Packets      float64       // per second
	Link         unit.BitRate
	MTUBytes     int           // payload of the frames on the link; 0: 1500
	RoundTrip    time.Duration // without moderation at either end
	Descriptors  uint32        // of the receive ring
}

// Result returns the timer, its register on an 8254x, and what it does to waits, transactions and
// rings.
func (m Moderation) Result() (*Result, error) {
	r := &Result{What: "moderation", Formula: "interval = 1 / interrupts per second"}
	mtu, err := mtuOf(m.MTUBytes, moderation.MinimumPayload)
	if err != nil {
		return nil, err
	}
	if (m.Interrupts > 0 && m.Interval > 0) || (m.PerInterrupt > 0 && (m.Interrupts > 0 || m.Interval > 0)) {
		return nil, missing("moderation", "one of --interrupts, --interval and --per-interrupt, not two")
	}
	r.given("interrupts", m.Interrupts, PerSecond)
	r.given("interval", m.Interval.Seconds(), Seconds)
	r.given("frames per interrupt", m.PerInterrupt, Frames)
	r.given("packets", m.Packets, PerSecond)
	r.given("link", float64(m.Link), BitsPerSecond)
	r.given("MTU", float64(m.MTUBytes), Bytes)
	r.given("round trip without moderation", m.RoundTrip.Seconds(), Seconds)
	r.given("ring", float64(m.Descriptors), Frames)

	packets := moderation.PacketsPerSecond(m.Packets)
	if m.Link > 0 {
		line := moderation.LineRate(m.Link, mtu)
		r.add("frames of the link", float64(line), PerSecond, "link / 8 / (MTU %d + 38 bytes of header, check sequence, "+
			"preamble and gap)", mtu)
		r.add("packet time", 1/float64(line), Seconds, "1 / frames of the link")
		r.add("two packet times", 2/float64(line), Seconds, "the least useful packet timer (AP-450)")
		two := time.Duration(math.Round(2e9 / float64(line)))
		r.add("such a packet timer expires below", float64(moderation.PacketTimerThreshold(m.Link, mtu, two)),
			BitsPerSecond, "link × packet time / (packet time + timer)")
		if packets == 0 {
			packets = line
		}
	}
	var rate moderation.InterruptsPerSecond
	from := "as given"
	switch {
	case m.Interrupts > 0:
		rate = moderation.InterruptsPerSecond(m.Interrupts)
	case m.Interval > 0:
		rate, from = moderation.RateOf(m.Interval), "1 / interval"
	case m.PerInterrupt >= 1 && packets > 0:
		rate, from = moderation.RateForFrames(packets, m.PerInterrupt), "packets / frames per interrupt"
		r.Formula = "interrupts per second = packets per second / frames per interrupt; interval = 1 / that"
	case m.PerInterrupt > 0:
		return nil, missing("moderation", "--packets or --link with --per-interrupt of at least 1")
	case m.Link > 0:
		r.Formula = "frames per second = link / 8 / (MTU + 38)"
		return r.finish()
	default:
		return nil, missing("moderation", "--interrupts", "--interval", "--packets with --per-interrupt", "--link")
	}
	r.add("interrupts", float64(rate), PerSecond, "%s", from)
	m.timer(r, rate, packets)
	return r.finish()
}

// timer adds what an interrupt rate does.
func (m Moderation) timer(r *Result, rate moderation.InterruptsPerSecond, packets moderation.PacketsPerSecond) {
	interval := rate.Interval()
	wait := moderation.Wait(interval)
	r.add("interval", 1/float64(rate), Seconds, "1 / interrupts")
	r.add("register of an 8254x (ITR)", float64(rate.ITR()), Number, "interval / 256 ns, truncated to 16 bits")
	r.add("interrupts of that register", float64(rate.ITR().Rate()), PerSecond, "1 / (256 ns × ITR)")
	r.add("wait of a frame, mean", wait.Mean.Seconds(), Seconds, "interval / 2: it arrives at a random moment")
	r.add("wait of a frame, at most", wait.Most.Seconds(), Seconds, "interval")
	if packets > 0 {
		frames := moderation.FramesPerInterrupt(packets, rate)
		r.add("frames per interrupt", frames, Frames, "packets / interrupts, at least 1")
	}
	least, most := moderation.TransactionRate(m.RoundTrip, interval, interval)
	r.add("transactions of one connection, at most", most, PerSecond,
		"1 / the longer of interval and round trip: both ends in step")
	if m.RoundTrip > 0 {
		r.add("transactions of one connection, at least", least, PerSecond,
			"1 / (round trip + interval of each end)")
		trip := moderation.IdleRoundTrip(m.RoundTrip, interval, interval)
		r.add("ping, mean", trip.Mean.Seconds(), Seconds, "round trip + half an interval at each end")
		r.add("ping, at most", trip.Most.Seconds(), Seconds, "round trip + an interval at each end")
	}
	if m.Descriptors > 0 && packets > 0 {
		r.add("ring is full after", moderation.RingTime(m.Descriptors, packets).Seconds(), Seconds,
			"descriptors / packets per second")
		if moderation.Overruns(m.Descriptors, packets, interval) {
			r.Notes = append(r.Notes, "the ring overruns between two interrupts at that rate")
		}
	}
}

// mtuOf returns the MTU in bytes, Ethernet's own if none is given. It refuses what no frame
// carries.
func mtuOf(mtu, least int) (int, error) {
	const largest = 65535 // of an IP packet (RFC 791)
	if mtu == 0 {
		return 1500, nil
	}
	if mtu < least || mtu > largest {
		return 0, fmt.Errorf("calculate with an MTU of %d: it is from %d to %d bytes", mtu, least, largest)
	}
	return mtu, nil
}
