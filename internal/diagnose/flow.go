package diagnose

import (
	"cmp"
	"math"
	"slices"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/traffic"
)

// end is one host of a flow.
type end struct {
	name   string         // near or far
	host   *host.Snapshot // nil: nothing known
	run    traffic.End
	card   *host.Interface // that carries the flow; nil: not known
	routes []host.Route    // towards the other host, one for each of its addresses
}

// flow is one loaded direction of one run: who sends, who receives, and what the sender's kernel said. Several streams are taken
// as one: bytes, segments, windows and buffers add up, round trips are the mean.
type flow struct {
	run       *traffic.Result
	direction traffic.Direction // up or down, never both
	sender    end
	receiver  end

	rate    float64 // payload at the receiver, bits per second
	streams int     // senders with TCP_INFO; 0: the kernel said nothing

	busy, rwndLimited, sndbufLimited float64 // seconds, all streams
	appLimited                       bool    // every stream's last reading
	window                           float64 // largest receive window that the peer offered, bytes
	cwnd                             float64 // mean congestion window, bytes
	sndbuf, rcvbuf                   float64 // socket buffers as the kernels keep them, bytes
	rtt                              float64 // mean under load, seconds
	minRTT                           float64 // smallest under load, seconds
	idleRTT                          float64 // smallest of the idle ping, seconds; 0: no ping
	segments, retransmits            float64
	mss                              float64 // bytes
	congestion                       string
	scaling                          bool // window scaling agreed on by every stream
	shift                            int  // window scale that the receiver announced

	scatter   float64 // coefficient of variation of the interim rates
	intervals int     // interim results that count
}

// flowsOf gives the loaded directions, slowest first.
//
// The slowest direction comes first, because it is the one that somebody complains about. Tests other than streams do
// not load a path and have no flow.
func flowsOf(c Case) []*flow {
	var flows []*flow
	for i := range c.Runs {
		r := &c.Runs[i]
		if r.Test != traffic.Stream {
			continue
		}
		switch r.Direction {
		case traffic.Bidir:
			flows = append(flows, newFlow(c, r, traffic.Up, r.UpBitsPerSec), newFlow(c, r, traffic.Down, r.DownBitsPerSec))
		default:
			flows = append(flows, newFlow(c, r, r.Direction, r.ThroughputBitsPerSec))
		}
	}
	slices.SortStableFunc(flows, func(a, b *flow) int { return cmp.Compare(a.rate, b.rate) })
	return flows
}

// newFlow gathers one direction of a run: d says who sends, rate is what that direction carried.
//
// Of several pings in the case the last one counts.
func newFlow(c Case, r *traffic.Result, d traffic.Direction, rate float64) *flow {
	near := end{name: "near", host: c.Near, run: r.Ends.Local}
	far := end{name: "far", host: c.Far, run: r.Ends.Remote}
	near.card, near.routes = towards(c.Near, c.Far, c.FarAddress)
	far.card, far.routes = towards(c.Far, c.Near, c.NearAddress)
	f := &flow{run: r, direction: d, sender: near, receiver: far, rate: rate}
	if d == traffic.Down {
		f.sender, f.receiver = far, near
	}
	f.readSender()
	f.readReceiver()
	f.readSeries()
	for _, other := range c.Runs {
		if other.Test == traffic.Ping && other.RTT != nil && other.RTT.Min > 0 {
			f.idleRTT = other.RTT.Min
		}
	}
	return f
}

// readSender adds up what the sender's kernel said of every stream. Buffers and windows add up because each stream has its own; round
// trips are the mean, because all streams share the path.
func (f *flow) readSender() {
	f.scaling, f.appLimited = true, true
	var means int
	for _, t := range f.sender.run.TCP {
		if !t.Sender {
			continue
		}
		f.streams++
		f.busy += t.BusySeconds
		f.rwndLimited += t.RwndLimitedSeconds
		f.sndbufLimited += t.SndbufLimitedSeconds
		f.appLimited = f.appLimited && t.AppLimited
		f.window += float64(max(t.MaxSndWndBytes, t.SndWndBytes))
		f.cwnd += cmp.Or(t.MeanCwndBytes, t.CwndBytes)
		f.sndbuf += float64(t.SndBufBytes)
		if rtt := cmp.Or(t.MeanRTTSeconds, t.RTTSeconds); rtt > 0 {
			f.rtt += rtt
			means++
		}
		if t.MinRTTSeconds > 0 && (f.minRTT == 0 || t.MinRTTSeconds < f.minRTT) {
			f.minRTT = t.MinRTTSeconds
		}
		f.segments += float64(t.SegsOut)
		f.retransmits += float64(t.RetransSegs)
		f.mss = float64(t.SndMSSBytes)
		f.congestion = t.CongestionControl
		f.scaling = f.scaling && t.WScaleOK
		f.shift = t.SndWScale
	}
	if means > 0 {
		f.rtt /= float64(means)
	}
	// A run without TCP_INFO of the sender (another operating system, an old peer) still names its congestion control
	// and segment size once for the whole run.
	f.congestion = cmp.Or(f.congestion, f.run.CongestionControl)
	f.mss = cmp.Or(f.mss, float64(f.run.MSSBytes))
}

// readReceiver fills what only the receiving end knows. Kernels before 5.4 do not tell the sender's view of the window, then the
// receiver's own (6.2) stands in.
//
// The receiver's buffer is what SO_RCVBUF reports, which is what the kernel accounts against and about twice the
// payload that fits (tcp_adv_win_scale, or the learnt scaling ratio since 6.6).
func (f *flow) readReceiver() {
	var offered float64
	for _, t := range f.receiver.run.TCP {
		if t.Sender {
			continue
		}
		f.rcvbuf += float64(t.RcvBufBytes)
		offered += float64(t.RcvWndBytes)
	}
	if f.window == 0 {
		f.window = offered
	}
}

// readSeries measures how steady the interim rates are. A last interval that was cut short says nothing and is left out.
//
// The spread is the ordinary one and not a robust one: that a flow breaks down now and then is what is asked about.
func (f *flow) readSeries() {
	var rates []float64
	var full float64
	for _, i := range f.run.Intervals {
		if !i.Omitted {
			full = max(full, i.EndSeconds-i.StartSeconds)
		}
	}
	for _, i := range f.run.Intervals {
		if !i.Omitted && i.EndSeconds-i.StartSeconds > full/2 {
			rates = append(rates, i.ThroughputBitsPerSec)
		}
	}
	f.intervals = len(rates)
	if f.intervals < 2 {
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
		f.scatter = math.Sqrt(squares) / mean
	}
}

// share is a part of the busy time; 0 when the kernel kept no chronograph.
//
// The chronographs of several streams are added up and so is their busy time, so that the share is that of the mean
// stream. It is cut at 1, because the two are read one after the other by the kernel.
func (f *flow) share(seconds float64) float64 {
	if f.busy <= 0 {
		return 0
	}
	return min(seconds/f.busy, 1)
}

// base is the round trip of the empty path, as near as the runs can tell: seconds, 0 when unknown.
//
// Both are upper bounds of the empty path: the ping for the time in which the program answers, tcpi_min_rtt because
// it comes from a loaded connection. The smaller one is nearer to the truth.
func (f *flow) base() float64 {
	switch {
	case f.idleRTT == 0:
		return f.minRTT
	case f.minRTT == 0:
		return f.idleRTT
	}
	return min(f.idleRTT, f.minRTT)
}

// loaded is the round trip under load, seconds, 0 when unknown.
func (f *flow) loaded() float64 { return cmp.Or(f.rtt, f.minRTT) }

// inFlight is how much is on its way on average, bytes: rate times loaded round trip (Little's law).
func (f *flow) inFlight() float64 { return f.rate / 8 * f.loaded() }

// queued tells that a queue builds on the path: the loaded round trip stands clearly over the empty one. Half of the round trip,
// or five milliseconds on long paths, is more than scheduling on a busy host adds; below one millisecond every host jitters.
func (f *flow) queued() bool {
	extra := f.loaded() - f.base()
	return f.base() > 0 && (extra >= 0.005 || extra >= 0.001 && f.loaded() >= 1.5*f.base())
}

// fill is the part of the offered window that the rate would use on the empty path. Near 1 the window limits. Far below 1 with a
// queue, something slower than the window limits and the window merely bounds that queue; far below 1 without one, nothing waits
// for the window. 0 when window or round trip are unknown.
func (f *flow) fill() float64 {
	if f.window <= 0 {
		return 0
	}
	return f.rate / 8 * f.base() / f.window
}

// loss is the share of segments that were sent again.
func (f *flow) loss() float64 {
	if f.segments <= 0 {
		return 0
	}
	return f.retransmits / f.segments
}

// drops adds up the places of both ends where packets died on this flow's way, which is outbound at the sender and inbound at
// the receiver; both directions are counted, because acknowledgements that die are seldom and the sum is only compared.
//
// A place is a counter, such as the qdisc of an interface or the backlog of a processor. Names of places come with
// the run.
func (f *flow) drops() (total float64, where string) {
	var worst uint64
	for _, e := range []end{f.sender, f.receiver} {
		for _, d := range e.run.Drops {
			total += float64(d.Total)
			if d.Total > worst {
				worst, where = d.Total, d.Place+" ("+e.name+")"
			}
		}
	}
	return total, where
}

// busiest gives the busiest processor of an end during the run and the part of the time it worked. ok is false when unknown.
//
// Steal counts as work here: a processor that the hypervisor has taken away is not there for the flow either. CPU −1
// is the sum over all and says nothing about one flow, whose packets go through one or two processors.
func (e end) busiest() (cpu int, busy float64, ok bool) {
	for _, t := range e.run.CPUs {
		all := t.User + t.System + t.IRQ + t.SoftIRQ + t.Steal + t.Idle
		if t.CPU < 0 || all <= 0 {
			continue
		}
		if b := 1 - t.Idle/all; !ok || b > busy {
			cpu, busy, ok = t.CPU, b, true
		}
	}
	return cpu, busy, ok
}

// stolen is the part of an end's processor time that the hypervisor gave to others.
func (e end) stolen() float64 {
	var steal, all float64
	for _, t := range e.run.CPUs {
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
func (f *flow) busiestOf() (e end, cpu int, busy float64, ok bool) {
	for _, x := range []end{f.sender, f.receiver} {
		if c, b, known := x.busiest(); known && (!ok || b > busy) {
			e, cpu, busy, ok = x, c, b, true
		}
	}
	return e, cpu, busy, ok
}

// shortPath tells a path inside one machine or one rack row: below one millisecond the windows of any default suffice.
func (f *flow) shortPath() bool { return f.base() > 0 && f.base() < 0.001 }
