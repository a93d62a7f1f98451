package evidence

import (
	"cmp"
	"math"
	"strings"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/drops"
	"github.com/linerate/linerate/internal/traffic"
)

// End is one host of a flow.
type End struct {
	Name   string         // near or far
	Host   *host.Snapshot // nil: unknown
	Run    traffic.End
	Card   *host.Interface // the NIC that carries the flow; nil: unknown
	Routes []host.Route    // to the other host, one per address
}

// Flow is one loaded direction of one run: the sender, the receiver, and what the sender's kernel
// reported. It combines several streams into one: bytes, segments, windows and buffers add up,
// round trips are the mean.
type Flow struct {
	Case      *Case // the case of the run; rules ask it for probes
	Run       *traffic.Result
	Direction traffic.Direction // up or down, never both
	Sender    End
	Receiver  End

	RateBitsPerSec float64 // payload at the receiver
	Streams        int     // senders with TCP_INFO; 0: the kernel reported none

	BusySeconds, RwndLimitedSeconds, SndbufLimitedSeconds float64 // all streams

	AppLimited               bool    // according to the last reading of every stream
	WindowBytes              float64 // largest receive window that the peer advertised
	CwndBytes                float64 // mean congestion window
	SndbufBytes, RcvbufBytes float64 // socket buffers as the kernels account for them
	RTTSeconds               float64 // mean under load
	MinRTTSeconds            float64 // smallest under load
	IdleRTTSeconds           float64 // smallest of the idle ping; 0: no ping
	IdleMedianSeconds        float64 // median of the idle ping; on a path with jitter far above the smallest
	Segments, Retransmits    float64
	MSSBytes                 float64
	Congestion               string // congestion control of the sender
	WindowScaling            bool   // negotiated by every stream
	WindowShift              int    // window scale that the receiver advertised

	ScatterRatio float64 // coefficient of variation of the interim rates
	Intervals    int     // interim results behind ScatterRatio
}

// FlowsOf returns the loaded directions of a case, slowest first: the slowest one is the one that
// users complain about. Tests other than streams do not load a path and have no flow.
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
	sorting.StableFunc(flows, func(a, b *Flow) int { return cmp.Compare(a.RateBitsPerSec, b.RateBitsPerSec) })
	return flows
}

// newFlow builds the flow of one direction of a run. The direction d determines the sender; rate is
// what that direction carried. If the case has several pings, the last one counts.
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

// readSender adds up what the sender's kernel reported for every stream. Buffers and windows add up
// because each stream has its own; round trips are the mean because all streams share the path.
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
	// A run without TCP_INFO of the sender (another operating system, an old peer) still reports
	// its congestion control and segment size once for the whole run.
	f.Congestion = cmp.Or(f.Congestion, f.Run.CongestionControl)
	f.MSSBytes = cmp.Or(f.MSSBytes, float64(f.Run.MSSBytes))
}

// readReceiver fills in what only the receiving end knows. Kernels before 5.4 do not report the
// sender's view of the window; the receiver's own (6.2) replaces it.
//
// The receiver's buffer is what SO_RCVBUF reports: the kernel accounts against it, and it is about
// twice the payload that fits (tcp_adv_win_scale, or the learnt scaling ratio since 6.6).
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

// readSeries measures how steady the interim rates are. It leaves out a shortened last interval.
//
// The spread is the ordinary one and not a robust one, because the rules look for a flow that
// breaks down now and then.
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

// Share returns the given time as a part of the busy time, 0…1; 0 if the kernel kept no
// chronograph.
//
// The chronographs of several streams add up, and so does their busy time: the share is that of the
// mean stream. It never exceeds 1, although the kernel reads the two one after the other.
func (f *Flow) Share(seconds float64) float64 {
	if f.BusySeconds <= 0 {
		return 0
	}
	return min(seconds/f.BusySeconds, 1)
}

// Base returns the round trip of the empty path in seconds, as near as the runs show it; 0 if
// unknown.
//
// Both sources are upper bounds: the ping includes the time in which the program answers, and
// tcpi_min_rtt comes from a loaded connection. The smaller one is nearer to the truth.
func (f *Flow) Base() float64 {
	switch {
	case f.IdleRTTSeconds == 0:
		return f.MinRTTSeconds
	case f.MinRTTSeconds == 0:
		return f.IdleRTTSeconds
	}
	return min(f.IdleRTTSeconds, f.MinRTTSeconds)
}

// Loaded returns the round trip under load in seconds; 0 if unknown.
func (f *Flow) Loaded() float64 { return cmp.Or(f.RTTSeconds, f.MinRTTSeconds) }

// InFlight returns the mean number of bytes in flight: rate times loaded round trip (Little's law).
func (f *Flow) InFlight() float64 { return f.RateBitsPerSec / 8 * f.Loaded() }

// UnderLoad returns the round trip under load in seconds: the smaller of that of the flow's own
// segments and that of pings beside them. A busy receiver delays the acknowledgement of a segment,
// a busy sender delays a ping, but a queue on the path delays both. It is 0 if neither is known.
func (f *Flow) UnderLoad() float64 {
	own := f.Loaded()
	if f.Run.RTT == nil || f.Run.RTT.P50 <= 0 {
		return own
	}
	return min(f.Run.RTT.P50, cmp.Or(own, f.Run.RTT.P50))
}

// Added returns what the load adds to the round trip of the empty path, in seconds. It compares
// medians: on a path with jitter the smallest round trip is an exception, loaded or not.
func (f *Flow) Added() float64 { return max(f.UnderLoad()-f.idle(), 0) }

// idle returns the usual round trip of the empty path in seconds.
func (f *Flow) idle() float64 { return max(f.Base(), f.IdleMedianSeconds) }

// Queued reports whether a queue builds on the path: the round trip under load is clearly longer
// than the empty one. Half of the round trip, or five milliseconds on long paths, is more than
// scheduling on a busy host adds; below one millisecond every host jitters.
func (f *Flow) Queued() bool {
	return f.Base() > 0 && (f.Added() >= 0.005 || f.Added() >= 0.001 && f.UnderLoad() >= 1.5*f.idle())
}

// Fill returns the part of the advertised window that the rate would use on the empty path; 0 if
// the window or the round trip is unknown. Near 1 the window limits the flow. Far below 1 with a
// queue, something slower than the window limits the flow, and the window merely bounds that queue.
// Far below 1 without a queue, nothing waits for the window.
func (f *Flow) Fill() float64 {
	if f.WindowBytes <= 0 {
		return 0
	}
	return f.RateBitsPerSec / 8 * f.Base() / f.WindowBytes
}

// Loss returns the share of segments that were retransmitted.
func (f *Flow) Loss() float64 {
	if f.Segments <= 0 {
		return 0
	}
	return f.Retransmits / f.Segments
}

// Drops returns how many packets both ends dropped, and the place with the most drops. A place is a
// counter, such as the qdisc of an interface or the backlog of a CPU; the run names it.
//
// The flow is outbound at the sender and inbound at the receiver, but both directions count:
// dropped acknowledgements are rare, and the callers only compare the sum.
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

// PlacedDrop is a place inside one end that dropped packets.
type PlacedDrop struct {
	drops.Drop
	End string // near or far
}

// SegmentDrops returns where both ends may have dropped segments of an open connection, most first.
// It leaves out datagrams without room in their socket and handshakes that a listener refused,
// which belong to other programs. What the receiver's packet filter dropped is an estimate.
func (f *Flow) SegmentDrops() []PlacedDrop {
	var all []PlacedDrop
	for _, e := range []End{f.Sender, f.Receiver} {
		for _, d := range e.Run.Drops {
			if d.Stage != drops.Socket && !strings.HasPrefix(d.Place, "TcpExt.Listen") &&
				!strings.HasPrefix(d.Place, "TcpExt.TCPReqQFull") {
				all = append(all, PlacedDrop{d, e.Name})
			}
		}
	}
	if n := f.filtered(); n > 0 {
		all = append(all, PlacedDrop{drops.Drop{Place: "InReceives - InDelivers", Total: n, Stage: drops.Filter},
			f.Receiver.Name})
	}
	sorting.StableFunc(all, func(a, b PlacedDrop) int { return cmp.Compare(b.Total, a.Total) })
	return all
}

// Arrived returns how many segments reached the receiver's connections; 0 if it reported none.
func (f *Flow) Arrived() float64 {
	var n float64
	for _, t := range f.Receiver.Run.TCP {
		if !t.Sender {
			n += float64(t.SegsIn)
		}
	}
	return n
}

const (
	// fewFiltered packets of a run of seconds may be what strangers send, refused by a default rule.
	fewFiltered = 20
	// filteredShare of the packets must be missing behind IP, and filteredLosses of the segments that
	// the flow lost must be explained by them.
	filteredShare, filteredLosses = 0.002, 0.5
)

// filtered returns about how many segments of the flow the receiver's packet filter dropped; 0 if
// its counters do not show that it did. IP counts frames as they arrived, and TCP the segments that
// reached the connections.
func (f *Flow) filtered() uint64 {
	counters := f.Receiver.Run.Counters
	n := drops.Undelivered(counters)
	if n < fewFiltered || float64(n) < filteredShare*float64(counters["Ip.InReceives"]+counters["Ip6.InReceives"]) {
		return 0
	}
	arrived := f.Arrived()
	stopped := max(drops.Frames(counters)-arrived, float64(n))
	if arrived == 0 || stopped < filteredLosses*(f.Segments-arrived) {
		return 0
	}
	return uint64(stopped)
}

// Bundles reports whether a packet at this place may hold many segments. A NIC drops frames, and
// the estimate for a packet filter is one of segments.
func (d PlacedDrop) Bundles() bool {
	return d.Stage != drops.Card && d.Stage != drops.Ring && d.Stage != drops.Filter
}

// Where names the place in a sentence.
func (d PlacedDrop) Where() string {
	if d.Stage == drops.Filter {
		return "its packet filter"
	}
	return d.Place
}

// Busiest returns the busiest CPU of an end during the run and the part of the time it worked. ok
// is false if that is unknown.
//
// Programs of a lower priority (nice) count as idle, because they give way to a flow. Steal counts
// as work: a flow cannot use a CPU that the hypervisor has taken away. CPU −1 is the sum over all
// and says nothing about one flow, whose packets use one or two CPUs.
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

// Stolen returns the part of an end's CPU time that the hypervisor took away.
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

// BusiestOf returns the busiest CPU of the two ends and its end.
func (f *Flow) BusiestOf() (e End, cpu int, busy float64, ok bool) {
	for _, x := range []End{f.Sender, f.Receiver} {
		if c, b, known := x.Busiest(); known && (!ok || b > busy) {
			e, cpu, busy, ok = x, c, b, true
		}
	}
	return e, cpu, busy, ok
}

// ShortPath reports whether the path stays inside one machine or one row of racks: below one
// millisecond the windows of any default suffice.
func (f *Flow) ShortPath() bool { return f.Base() > 0 && f.Base() < 0.001 }
