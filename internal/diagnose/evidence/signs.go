package evidence

import (
	"math"
	"strings"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/ceiling"
)

const (
	// LimitedShare is how much of its busy time a sender must have spent against one limit for the
	// kernel's own account to decide. Slow start and the pauses of pacing keep even a hard limit
	// well below 1.
	LimitedShare = 0.40
	// windowFill is the least part of the offered window that the rate must fill on the empty path.
	// Below one half something else holds the flow: a queue that the window bounds, or a reader
	// that empties its buffer slowly.
	windowFill = 0.5
	// windowFillQueued is the same when a queue builds: then a window that holds the flow leaves no
	// room for that queue, so the rate must fill it nearly by itself.
	windowFillQueued = 0.8
	// MinLoss is one segment in ten thousand: below it no congestion control of today is held back
	// on a terrestrial path.
	MinLoss = 1e-4
	// mathis is the constant of rate = MSS/RTT · 1.22/√p for an acknowledgement per segment (Mathis
	// et al. 1997).
	mathis = 1.22
	// lineRateShare of the goodput ceiling counts as reached: the rest is start, recovery and
	// acknowledgements.
	lineRateShare = 0.94
)

// fillsWindow tells that the rate fills the offered window on the empty path, which is what a
// window that holds a flow looks like.
func (f *Flow) FillsWindow() bool {
	if f.Queued() {
		return f.Fill() >= windowFillQueued
	}
	return f.Fill() >= windowFill
}

// goodput is what a link carries as TCP payload over IPv4 with timestamps, the most common case;
// IPv6 has 1.4 % less at MTU 1500, which the margin of lineRateShare covers.
func Goodput(c *host.Interface) float64 {
	mtu := c.MTUBytes
	if mtu <= 0 {
		mtu = 1500
	}
	return c.SpeedBitsPerSec * ceiling.GoodputRatio(mtu, false, true)
}

// atLinkRate tells that the slowest real link of the two ends is full.
//
// Both ends are asked, because the slower of two links is the ceiling of the path whatever lies
// between them.
func (f *Flow) AtLinkRate() bool {
	link, _, ok := f.SlowestLink()
	return ok && Goodput(link) > 0 && f.RateBitsPerSec >= lineRateShare*Goodput(link)
}

// alwaysBusy tells that the sender had data in flight for nearly all of the run. Without a
// chronograph it is taken for granted: our own traffic engine never rests.
//
// The 15 % are handshake, slow start and the end of the run, in which the last acknowledgements are
// awaited.
func (f *Flow) AlwaysBusy() bool {
	return f.BusySeconds <= 0 || f.BusySeconds >= 0.85*f.Run.DurationSeconds*float64(f.Streams)
}

// trueLoss is the part of the segments that had to be sent again because they were lost: what the
// receiver reported as received twice (DSACK) was reordering or a timer that fired too early.
func (f *Flow) TrueLoss() (ratio, segments float64) {
	var spurious float64
	for _, t := range f.Sender.Run.TCP {
		if t.Sender {
			spurious += float64(t.DSACKDups)
		}
	}
	segments = max(f.Retransmits-spurious, 0)
	if f.Segments <= 0 {
		return 0, segments
	}
	return segments / f.Segments, segments
}

// mathisRate is what loss-based congestion control reaches under loss p, all streams together.
//
// It takes the empty round trip: a queue would be the flow's own, and with one this rule does not
// speak.
func (f *Flow) MathisRate(p float64) float64 {
	return float64(f.Streams) * f.MSSBytes * 8 / f.Base() * mathis / math.Sqrt(p)
}

// modelBased tells congestion controls that follow delivery rate or delay and not each loss.
//
// dctcp goes by marks first and cdg by the trend of the delay.
func (f *Flow) ModelBased() bool {
	return strings.HasPrefix(f.Congestion, "bbr") || f.Congestion == "dctcp" || f.Congestion == "cdg"
}

// congestionName is the congestion control in a sentence, also when it is not known.
func (f *Flow) CongestionName() string {
	if f.Congestion == "" {
		return "the sender"
	}
	return f.Congestion
}

// plateau tells a flat delivery: at least four interim rates that scatter by no more than 6 %. A
// loss-based sender under random loss scatters by 10 % and more at half-second intervals; a
// bottleneck or a window delivers evenly.
func (f *Flow) Plateau() bool { return f.Intervals >= 4 && f.ScatterRatio <= 0.06 }

// congestionControls lists what a host's kernel offers.
func (e End) CongestionControls() []string {
	for _, name := range []string{TCPAvailableCongestionControl, TCPAllowedCongestionControl} {
		if text, ok := e.Setting(name); ok {
			return strings.Fields(text)
		}
	}
	return nil
}

// last keeps the largest level: for a lesser suspect one try is enough.
func Last(levels []knob.Value) []knob.Value {
	if len(levels) > 1 {
		return levels[len(levels)-1:]
	}
	return levels
}

// add appends a candidate that has something to try.
func (r *Remedy) Add(c Candidate) {
	if len(c.Levels) > 0 {
		r.Settings = append(r.Settings, c)
	}
}
