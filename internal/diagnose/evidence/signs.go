package evidence

import (
	"math"
	"strings"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/ceiling"
)

const (
	// LimitedShare is the share of its busy time that a sender must have spent against one limit
	// for the kernel's chronograph to decide. Slow start and pacing keep even a hard limit well
	// below 1.
	LimitedShare = 0.40
	// windowFill is the part of the advertised window that the rate must at least fill on the empty
	// path. Below one half something other than the window limits the flow: a queue that the window
	// bounds, or a reader that empties its buffer slowly.
	windowFill = 0.5
	// windowFillQueued is the same when a queue builds: a window that limits the flow leaves no
	// room for that queue, so the rate must nearly fill the window.
	windowFillQueued = 0.8
	// MinLoss is one segment in ten thousand: less does not slow any current congestion control on
	// a terrestrial path.
	MinLoss = 1e-4
	// mathis is the constant of rate = MSS/RTT · 1.22/√p for one acknowledgement per segment
	// (Mathis et al. 1997).
	mathis = 1.22
	// lineRateShare of the goodput ceiling counts as line rate: start, recovery and
	// acknowledgements take the rest.
	lineRateShare = 0.94
)

// FillsWindow reports whether the rate fills the advertised window on the empty path, as it does
// when the window limits the flow.
func (f *Flow) FillsWindow() bool {
	if f.Queued() {
		return f.Fill() >= windowFillQueued
	}
	return f.Fill() >= windowFill
}

// Goodput returns what a link carries as TCP payload, in bits per second, over IPv4 with
// timestamps, the most common case. IPv6 carries 1.4 % less at MTU 1500, which the margin of
// lineRateShare covers.
func Goodput(c *host.Interface) float64 {
	mtu := c.MTUBytes
	if mtu <= 0 {
		mtu = 1500
	}
	return c.SpeedBitsPerSec * ceiling.GoodputRatio(mtu, false, true)
}

// AtLinkRate reports whether the slowest physical link of the two ends is full. It looks at both
// ends, because the slower link bounds the path whatever lies between them.
func (f *Flow) AtLinkRate() bool {
	link, _, ok := f.SlowestLink()
	return ok && Goodput(link) > 0 && f.RateBitsPerSec >= lineRateShare*Goodput(link)
}

// AlwaysBusy reports whether the sender had data in flight for nearly all of the run. Without a
// chronograph the answer is yes, because the traffic engine never rests.
//
// The remaining 15 % are handshake, slow start and the end of the run, which waits for the last
// acknowledgements.
func (f *Flow) AlwaysBusy() bool {
	return f.BusySeconds <= 0 || f.BusySeconds >= 0.85*f.Run.DurationSeconds*float64(f.Streams)
}

// TrueLoss returns the share and number of segments that were retransmitted because they were lost.
// It leaves out those that the receiver reported as received twice (DSACK): reordering, or a timer
// that fired too early.
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

// MathisRate returns the rate in bits per second that loss-based congestion control reaches under
// loss p, all streams together. It uses the empty round trip: the flow itself would make any queue,
// and with a queue this rule does not apply.
func (f *Flow) MathisRate(p float64) float64 {
	return float64(f.Streams) * f.MSSBytes * 8 / f.Base() * mathis / math.Sqrt(p)
}

// ModelBased reports whether the congestion control follows delivery rate or delay instead of each
// loss: bbr; dctcp, which follows marks first; and cdg, which follows the trend of the delay.
func (f *Flow) ModelBased() bool {
	return strings.HasPrefix(f.Congestion, "bbr") || f.Congestion == "dctcp" || f.Congestion == "cdg"
}

// CongestionName returns the congestion control for use in a sentence, or "the sender" if unknown.
func (f *Flow) CongestionName() string {
	if f.Congestion == "" {
		return "the sender"
	}
	return f.Congestion
}

// Plateau reports whether delivery is flat: at least four interim rates that scatter by at most 6
// %. A loss-based sender under random loss scatters by 10 % and more at half-second intervals; a
// bottleneck or a window delivers evenly.
func (f *Flow) Plateau() bool { return f.Intervals >= 4 && f.ScatterRatio <= 0.06 }

// CongestionControls returns the algorithms that a host's kernel offers.
func (e End) CongestionControls() []string {
	for _, name := range []string{TCPAvailableCongestionControl, TCPAllowedCongestionControl} {
		if text, ok := e.Setting(name); ok {
			return strings.Fields(text)
		}
	}
	return nil
}

// Last returns the largest level alone: one try is enough for an unlikely cause.
func Last(levels []knob.Value) []knob.Value {
	if len(levels) > 1 {
		return levels[len(levels)-1:]
	}
	return levels
}

// Add appends a candidate unless it has no level to try.
//
//go:noinline // 62 copies took 15 kB
func (r *Remedy) Add(c Candidate) {
	if len(c.Levels) > 0 {
		r.Settings = append(r.Settings, c)
	}
}
