package evidence

import (
	"cmp"
	"math"
	"slices"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/traffic"
)

// End is one host of a flow.
type End struct {
	Name   string         // near or far
	Host   *host.Snapshot // nil: nothing known
	Run    traffic.End
	Card   *host.Interface // that carries the flow; nil: not known
	Routes []host.Route    // towards the other host, one for each of its addresses
}

// Flow is one loaded direction of one run: who sends, who receives, and what the sender's kernel
// said. Several streams are taken as one: bytes, segments, windows and buffers add up, round trips
// are the mean.
type Flow struct {
	Case      *Case // that it is of: probes are asked of it
	Run       *traffic.Result
	Direction traffic.Direction // up or down, never both
	Sender    End
	Receiver  End

	RateBitsPerSec float64 // payload at the receiver
	Streams        int     // senders with TCP_INFO; 0: the kernel said nothing

	BusySeconds, RwndLimitedSeconds, SndbufLimitedSeconds float64 // all streams

	AppLimited               bool    // every stream's last reading
	WindowBytes              float64 // largest receive window that the peer offered
	CwndBytes                float64 // mean congestion window
	SndbufBytes, RcvbufBytes float64 // socket buffers as the kernels keep them
	RTTSeconds               float64 // mean under load
	MinRTTSeconds            float64 // smallest under load
	IdleRTTSeconds           float64 // smallest of the idle ping; 0: no ping
	IdleMedianSeconds        float64 // median of the idle ping: on a path that jitters far above the smallest
	Segments, Retransmits    float64
	MSSBytes                 float64
	Congestion               string // congestion control of the sender
	WindowScaling            bool   // agreed on by every stream
	WindowShift              int    // window scale that the receiver announced

	ScatterRatio float64 // coefficient of variation of the interim rates
	Intervals    int     // interim results that count
}

// FlowsOf gives the loaded directions, slowest first.
//
// The slowest direction comes first, because it is the one that somebody complains about. Tests
// other than streams do not load a path and have no flow.
func FlowsOf(c *Case) []*Flow {
	var flows []*Flow
	for i := range c.Runs {
		r := &c.Runs[i]
		if r.Test != traffic.Stream {
			continue
		}
		switch r.Direction {
		case traffic.Bidir:
			flows = append(flows, newFlow(c, r, traffic.Up, r.UpBitsPerSec),
				newFlow(c, r, traffic.Down, r.DownBitsPerSec))
		default:
			flows = append(flows, newFlow(c, r, r.Direction, r.ThroughputBitsPerSec))
		}
	}
	slices.SortStableFunc(flows, func(a, b *Flow) int { return cmp.Compare(a.RateBitsPerSec, b.RateBitsPerSec) })
	return flows
}

// newFlow gathers one direction of a run: d says who sends, rate is what that direction carried.
//
// Of several pings in the case the last one counts.
func newFlow(c *Case, r *traffic.Result, d traffic.Direction, rate float64) *Flow {
	near, far := c.ends(r)
	f := &Flow{Case: c, Run: r, Direction: d, Sender: near, Receiver: far, RateBitsPerSec: rate}
	if d == traffic.Down {
		f.Sender, f.Receiver = far, near
	}
	f.readSender()
	f.readReceiver()
	f.readSeries()
	for _, other := range c.Runs {
		if other.Test == traffic.Ping && other.RTT != nil && other.RTT.Min > 0 {
			f.IdleRTTSeconds, f.IdleMedianSeconds = other.RTT.Min, other.RTT.P50
		}
	}
	return f
}

// readSender adds up what the sender's kernel said of every stream. Buffers and windows add up
// because each stream has its own; round trips are the mean, because all streams share the path.
func (f *Flow) readSender() {
	f.WindowScaling, f.AppLimited = true, true
	var means int
	for _, t := range f.Sender.Run.TCP {
		if !t.Sender {
			continue
		}
		f.Streams++
		f.BusySeconds += t.BusySeconds
		f.RwndLimitedSeconds += t.RwndLimitedSeconds
		f.SndbufLimitedSeconds += t.SndbufLimitedSeconds
		f.AppLimited = f.AppLimited && t.AppLimited
		f.WindowBytes += float64(max(t.MaxSndWndBytes, t.SndWndBytes))
		f.CwndBytes += cmp.Or(t.MeanCwndBytes, t.CwndBytes)
		f.SndbufBytes += float64(t.SndBufBytes)
		if rtt := cmp.Or(t.MeanRTTSeconds, t.RTTSeconds); rtt > 0 {
			f.RTTSeconds += rtt
			means++
		}
		if t.MinRTTSeconds > 0 && (f.MinRTTSeconds == 0 || t.MinRTTSeconds < f.MinRTTSeconds) {
			f.MinRTTSeconds = t.MinRTTSeconds
		}
		f.Segments += float64(t.SegsOut)
		f.Retransmits += float64(t.RetransSegs)
		f.MSSBytes = float64(t.SndMSSBytes)
		f.Congestion = t.CongestionControl
		f.WindowScaling = f.WindowScaling && t.WScaleOK
		f.WindowShift = t.SndWScale
	}
	if means > 0 {
		f.RTTSeconds /= float64(means)
	}
	// A run without TCP_INFO of the sender (another operating system, an old peer) still names its
	// congestion control and segment size once for the whole run.
	f.Congestion = cmp.Or(f.Congestion, f.Run.CongestionControl)
	f.MSSBytes = cmp.Or(f.MSSBytes, float64(f.Run.MSSBytes))
}

// readReceiver fills what only the receiving end knows. Kernels before 5.4 do not tell the sender's
// view of the window, then the receiver's own (6.2) stands in.
//
// The receiver's buffer is what SO_RCVBUF reports, which is what the kernel accounts against and
// about twice the payload that fits (tcp_adv_win_scale, or the learnt scaling ratio since 6.6).
func (f *Flow) readReceiver() {
	var offered float64
	for _, t := range f.Receiver.Run.TCP {
		if t.Sender {
			continue
		}
		f.RcvbufBytes += float64(t.RcvBufBytes)
		offered += float64(t.RcvWndBytes)
	}
	if f.WindowBytes == 0 {
		f.WindowBytes = offered
	}
}

// readSeries measures how steady the interim rates are. A last interval that was cut short says
// nothing and is left out.
//
// The spread is the ordinary one and not a robust one: that a flow breaks down now and then is what
// is asked about.
func (f *Flow) readSeries() {
	var rates []float64
	var full float64
	for _, i := range f.Run.Intervals {
		if !i.Omitted {
			full = max(full, i.EndSeconds-i.StartSeconds)
		}
	}
	for _, i := range f.Run.Intervals {
		if !i.Omitted && i.EndSeconds-i.StartSeconds > full/2 {
			rates = append(rates, i.ThroughputBitsPerSec)
		}
	}
	f.Intervals = len(rates)
	if f.Intervals < 2 {
		return
	}
	var mean, squares float64
	for _, r := range rates {
		mean += r / float64(len(rates))
	}
	for _, r := range rates {
		squares += (r - mean) * (r - mean) / float64(len(rates)-1)
	}
	if mean > 0 {
		f.ScatterRatio = math.Sqrt(squares) / mean
	}
}

// share is a part of the busy time; 0 when the kernel kept no chronograph.
//
// The chronographs of several streams are added up and so is their busy time, so that the share is
// that of the mean stream. It is cut at 1, because the two are read one after the other by the
// kernel.
func (f *Flow) Share(seconds float64) float64 {
	if f.BusySeconds <= 0 {
		return 0
	}
	return min(seconds/f.BusySeconds, 1)
}

// base is the round trip of the empty path, as near as the runs can tell: seconds, 0 when unknown.
//
// Both are upper bounds of the empty path: the ping for the time in which the program answers,
// tcpi_min_rtt because it comes from a loaded connection. The smaller one is nearer to the truth.
func (f *Flow) Base() float64 {
	switch {
	case f.IdleRTTSeconds == 0:
		return f.MinRTTSeconds
	case f.MinRTTSeconds == 0:
		return f.IdleRTTSeconds
	}
	return min(f.IdleRTTSeconds, f.MinRTTSeconds)
}

// loaded is the round trip under load, seconds, 0 when unknown.
func (f *Flow) Loaded() float64 { return cmp.Or(f.RTTSeconds, f.MinRTTSeconds) }

// inFlight is how much is on its way on average, bytes: rate times loaded round trip (Little's
// law).
func (f *Flow) InFlight() float64 { return f.RateBitsPerSec / 8 * f.Loaded() }

// UnderLoad is the round trip under load, seconds: of the flow's own segments and of the pings
// beside them, where there were any, the smaller. A segment waits for a receiver that has no
// processor to acknowledge it, a ping for a program that has none to send it; a queue on the path
// holds both up. 0 when neither is known.
func (f *Flow) UnderLoad() float64 {
	own := f.Loaded()
	if f.Run.RTT == nil || f.Run.RTT.P50 <= 0 {
		return own
	}
	return min(f.Run.RTT.P50, cmp.Or(own, f.Run.RTT.P50))
}

// Added is what the load adds to the round trip of the empty path, seconds. Medians are compared:
// on a path that jitters the smallest round trip is the exception, loaded or not.
func (f *Flow) Added() float64 { return max(f.UnderLoad()-f.idle(), 0) }

// idle is the usual round trip of the empty path, seconds.
func (f *Flow) idle() float64 { return max(f.Base(), f.IdleMedianSeconds) }

// Queued tells that a queue builds on the path: the round trip under load stands clearly over the
// empty one. Half of the round trip, or five milliseconds on long paths, is more than scheduling on
// a busy host adds; below one millisecond every host jitters.
func (f *Flow) Queued() bool {
	return f.Base() > 0 && (f.Added() >= 0.005 || f.Added() >= 0.001 && f.UnderLoad() >= 1.5*f.idle())
}

// fill is the part of the offered window that the rate would use on the empty path. Near 1 the
// window limits. Far below 1 with a queue, something slower than the window limits and the window
// merely bounds that queue; far below 1 without one, nothing waits for the window. 0 when window or
// round trip are unknown.
func (f *Flow) Fill() float64 {
	if f.WindowBytes <= 0 {
		return 0
	}
	return f.RateBitsPerSec / 8 * f.Base() / f.WindowBytes
}

// loss is the share of segments that were sent again.
func (f *Flow) Loss() float64 {
	if f.Segments <= 0 {
		return 0
	}
	return f.Retransmits / f.Segments
}

// drops adds up the places of both ends where packets died on this flow's way, which is outbound at
// the sender and inbound at the receiver; both directions are counted, because acknowledgements
// that die are seldom and the sum is only compared.
//
// A place is a counter, such as the qdisc of an interface or the backlog of a processor. Names of
// places come with the run.
func (f *Flow) Drops() (total float64, where string) {
	var worst uint64
	for _, e := range []End{f.Sender, f.Receiver} {
		for _, d := range e.Run.Drops {
			total += float64(d.Total)
			if d.Total > worst {
				worst, where = d.Total, d.Place+" ("+e.Name+")"
			}
		}
	}
	return total, where
}

// busiest gives the busiest processor of an end during the run and the part of the time it worked.
// ok is false when unknown.
//
// Programs of a lower priority (nice) count as rest: they give way to a flow. Steal counts as work
// here: a processor that the hypervisor has taken away is not there for the flow either. CPU −1 is
// the sum over all and says nothing about one flow, whose packets go through one or two processors.
func (e End) Busiest() (cpu int, busy float64, ok bool) {
	for _, t := range e.Run.CPUs {
		all := t.User + t.System + t.IRQ + t.SoftIRQ + t.Steal + t.Idle
		if t.CPU < 0 || all <= 0 {
			continue
		}
		if b := 1 - (t.Idle+t.Nice)/all; !ok || b > busy {
			cpu, busy, ok = t.CPU, b, true
		}
	}
	return cpu, busy, ok
}

// stolen is the part of an end's processor time that the hypervisor gave to others.
func (e End) Stolen() float64 {
	var steal, all float64
	for _, t := range e.Run.CPUs {
		if t.CPU >= 0 {
			steal += t.Steal
			all += t.User + t.System + t.IRQ + t.SoftIRQ + t.Steal + t.Idle
		}
	}
	if all <= 0 {
		return 0
	}
	return steal / all
}

// busiestOf gives the busier of the two ends.
func (f *Flow) BusiestOf() (e End, cpu int, busy float64, ok bool) {
	for _, x := range []End{f.Sender, f.Receiver} {
		if c, b, known := x.Busiest(); known && (!ok || b > busy) {
			e, cpu, busy, ok = x, c, b, true
		}
	}
	return e, cpu, busy, ok
}

// shortPath tells a path inside one machine or one rack row: below one millisecond the windows of
// any default suffice.
func (f *Flow) ShortPath() bool { return f.Base() > 0 && f.Base() < 0.001 }
