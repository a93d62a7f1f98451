package calc

import (
	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/host/moderation"
)

// Polling asks what a host takes that looks at its card HZ times a second, and takes at most Burst
// packets each time (polling(4) of FreeBSD: kern.hz, kern.polling.burst_max).
type Polling struct {
	HZ       float64
	Burst    uint32
	Link     unit.BitRate
	MTUBytes int // 0: 1500
}

// Result returns the most packets per second, the wait, and what the link would need.
func (p Polling) Result() (*Result, error) {
	r := &Result{What: "polling", Formula: "packets per second = HZ × burst"}
	if !(p.HZ > 0) || p.Burst == 0 && p.Link <= 0 {
		return nil, missing("polling", "--hz with --burst", "--hz with --link")
	}
	r.given("HZ", p.HZ, PerSecond)
	r.given("burst", float64(p.Burst), Frames)
	r.given("link", float64(p.Link), BitsPerSecond)
	r.given("MTU", float64(p.MTUBytes), Bytes)
	if p.Burst > 0 {
		r.add("packets, at most", float64(moderation.PollingProduct(moderation.InterruptsPerSecond(p.HZ), p.Burst)),
			PerSecond, "HZ × burst")
	}
	r.add("wait of a packet, mean", 1/p.HZ/2, Seconds, "half a tick")
	r.add("wait of a packet, at most", 1/p.HZ, Seconds, "a tick")
	if p.Link > 0 {
		mtu, err := mtuOf(p.MTUBytes, moderation.MinimumPayload)
		if err != nil {
			return nil, err
		}
		line := float64(moderation.LineRate(p.Link, mtu))
		r.add("burst that the link needs", line/p.HZ, Frames, "frames of the link with MTU %d / HZ", mtu)
		smallest := float64(moderation.LineRate(p.Link, moderation.MinimumPayload))
		r.add("burst for the smallest frames", smallest/p.HZ, Frames, "frames of 64 bytes / HZ")
	}
	return r.finish()
}
