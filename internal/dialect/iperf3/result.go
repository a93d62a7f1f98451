package iperf3

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/drops"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/datagram"
)

// maxStealShare is the share of the time of all CPUs above which steal noticeably changes a
// throughput.
const maxStealShare = 0.02

// result combines what both ends counted.
func (c *client) result() *traffic.Result {
	s := c.spec
	r := &traffic.Result{
		Test: s.Test, Direction: s.Direction, StartTime: c.startedAt, Streams: s.Streams,
		WarmUpSeconds: c.load.marked.Seconds(),
		Intervals:     c.intervals, LocalAddress: c.local.WithZone("").String(),
		RemoteAddress: c.remote.WithZone("").String(),
		Ends:          traffic.Ends{Local: c.localEnd(), Remote: traffic.End{Drops: []drops.Drop{}}},
	}
	r.Warnings = c.warnings
	if c.load.p.Omit == 0 {
		r.WarmUpSeconds = 0 // only some microseconds of this program's own work
	}
	// An empty list, because a reader of the JSON expects a list and not null.
	if r.Intervals == nil {
		r.Intervals = []traffic.Interval{}
	}
	c.methods(r)
	c.throughput(r)
	if c.load.p.UDP {
		c.datagrams(r)
	} else {
		c.connections(r)
	}
	c.pacing(r)
	if gigabytes := float64(r.Bytes) / 1e9; gigabytes > 0 && r.Ends.Local.CPUSeconds > 0 {
		r.Ends.Local.CPUSecondsPerGigabyte = r.Ends.Local.CPUSeconds / gigabytes
	}
	return r
}

// methods records the dialect and how this end moved the data.
func (c *client) methods(r *traffic.Result) {
	kind := "tcp"
	if c.load.p.UDP {
		kind = "udp"
	}
	var used []string
	for _, f := range c.load.flows {
		// A test in both directions has two methods, and one sentence contains both.
		m := f.worker.Method
		if !slices.Contains(used, m) {
			used = append(used, m)
		}
		switch {
		case c.load.p.UDP:
		case f.sends:
			r.SendMethod = m
		default:
			r.ReceiveMethod = m
		}
	}
	r.Method = fmt.Sprintf("iperf3, %s, %s", kind, strings.Join(used, "+"))
}

// throughput records what the receivers counted within the measured part, by this end's clock. The
// far end's own totals cover a longer time: it starts to count at a moment of its own, and stops
// when it learns of the end.
func (c *client) throughput(r *traffic.Result) {
	down := c.end.down - c.marked.down
	seconds := (c.end.at - c.marked.at).Seconds()
	up := c.sentUp(seconds, r)
	if c.spec.Bytes > 0 && !c.load.p.UDP && c.spec.Direction == traffic.Up {
		seconds = (c.settled - c.marked.at).Seconds() // an amount took until the far kernel had all of it
	}
	rate := func(bytes int64) float64 {
		if seconds <= 0 {
			return 0
		}
		return float64(bytes) * 8 / seconds
	}
	r.UpBitsPerSec, r.DownBitsPerSec = rate(up), rate(down)
	r.ThroughputBitsPerSec = r.UpBitsPerSec + r.DownBitsPerSec
	r.Bytes, r.DurationSeconds = up+down, seconds
	// With one direction, the total is enough.
	if c.spec.Direction != traffic.Bidir {
		r.UpBitsPerSec, r.DownBitsPerSec = 0, 0
	}
}

// unreadShare is the part of what the far kernel acknowledged that the far program may not have
// counted: above it, something else has taken the data.
const unreadShare = 0.05

// sentUp returns how many bytes of this end's data were received within the measured part, and
// warns if the far end's count contradicts that.
func (c *client) sentUp(seconds float64, r *traffic.Result) int64 {
	var far, received, handed int64
	acked := true
	for i, f := range c.load.flows {
		if !f.sends {
			continue
		}
		far += c.far.Streams[i].Bytes
		handed += c.final[i].bytes - f.mark.bytes // what this kernel accepted
		acked = acked && f.worker.Conn != nil && f.tcp.Last.Has(bytesAckedEnd)
		if f.sender != nil {
			received += c.datagramsUp(f).received * int64(c.load.p.BlockBytes)
		}
	}
	switch {
	case c.load.p.UDP && c.lossUntold():
		return min(far, handed) // the count of datagrams would lack the losses of the warm-up too
	case c.load.p.UDP:
		return received
	case c.spec.Bytes > 0 || !acked:
		received = far
	default:
		received = c.end.up - c.marked.up
	}
	switch {
	// Only of an amount: at the end of a time, something is always on its way.
	case c.spec.Bytes > 0 && far < handed:
		r.Warnings = append(r.Warnings, fmt.Sprintf(
			"the far end counted %d bytes fewer than it acknowledged: "+
				"iperf3 closes its connections before it has read everything", handed-far))
	case float64(far) < (1-unreadShare)*float64(received):
		r.Warnings = append(r.Warnings, fmt.Sprintf(
			"the far end counted %d bytes in the measured %.3g s, where %d were acknowledged: "+
				"a proxy on the path, or iperf3 does not read fast enough", far, seconds, received))
	}
	return received
}

// lossUntold reports whether the far end does not separate the losses of the omitted seconds from
// the others: versions before 3.14.
func (c *client) lossUntold() bool { return c.load.p.Omit > 0 && !c.far.TellsOmitted }

// sentDatagrams is what became of the datagrams that this end sent on one stream in the measured
// part, without those that were still under way when the far end stopped to count.
type sentDatagrams struct{ sent, received, lost int64 }

func (c *client) datagramsUp(f *flow) sentDatagrams {
	return judgeSent(f.sender.Sent(), c.far.Streams[f.index], c.recent.settled(f.index, c.end.at))
}

// judgeSent compares what a stream sent with what the far end counted. settled datagrams were sent
// so long before the end that they have arrived, or never will.
//
// The far end's highest number bounds what it can have judged: those after it were lost or still
// under way. The settled ones were lost. The others do not count, as in the program, which takes
// the far end's figures alone. If nothing arrived, everything was lost.
func judgeSent(sent datagram.Sent, far streamResult, settled int64) sentDatagrams {
	left := int64(0) // under way
	if far.Packets > 0 {
		left = max(sent.AllPackets-max(far.Packets, settled), 0)
	}
	// All datagrams ever sent, less those received and those lost before the mark: no gap shows
	// losses after the last arrival. The far end's counts are clamped to what is possible: duplicates
	// make iperf3 report a negative loss.
	lost := sent.AllPackets - left - (far.Packets - far.Errors) - far.OmittedErrors
	d := sentDatagrams{sent: max(sent.Packets-left, 0)}
	d.lost = min(max(lost, 0), d.sent)
	d.received = d.sent - d.lost
	return d
}

// sentRecently remembers what the streams had sent at moments of the last time of its span, and at
// one before.
type sentRecently struct {
	span    time.Duration
	moments []sentAt
}

// sentAt is what the streams had sent at one moment.
type sentAt struct {
	at      time.Duration // since the start
	packets []int64       // by stream
}

// noteEvery is the time between two such moments.
const noteEvery = underWay / 4

// note remembers the counts of now.
func (r *sentRecently) note(now time.Duration, flows []*flow) {
	if n := len(r.moments); n > 0 && now-r.moments[n-1].at < noteEvery {
		return
	}
	s := sentAt{at: now, packets: make([]int64, len(flows))}
	for i, f := range flows {
		s.packets[i] = f.worker.Packets.Load()
	}
	r.moments = append(r.moments, s)
	for len(r.moments) > 1 && r.moments[1].at <= now-r.span {
		r.moments = r.moments[1:]
	}
}

// settled returns what a stream had sent a span before the end, or somewhat earlier; 0: nothing is
// known of that time.
func (r sentRecently) settled(stream int, end time.Duration) (packets int64) {
	for _, s := range r.moments {
		if s.at <= end-r.span {
			packets = s.packets[stream]
		}
	}
	return packets
}

// connections records what the kernels report about TCP streams, from the sending side.
func (c *client) connections(r *traffic.Result) {
	var retransmits uint64
	known := true
	for _, f := range c.load.flows {
		if !f.sends {
			n := c.far.Streams[f.index].Retransmits
			// Only the far kernel knows its retransmissions. A program that cannot read them sends
			// -1, or reports that it has none.
			known = known && c.far.HasRetransmits == 1 && n >= 0
			retransmits += uint64(max(n, 0))
		}
		if !f.tcp.Known() {
			// The kernel need not report anything for a connection that only receives: the sum
			// covers the senders.
			known = known && !f.sends
			continue
		}
		t := f.tcp.Report(f.sends)
		r.Ends.Local.TCP = append(r.Ends.Local.TCP, t)
		if f.sends {
			retransmits += t.RetransSegs // segments, as in the far end's count
			r.MSSBytes = max(r.MSSBytes, t.SndMSSBytes)
			r.CongestionControl = t.CongestionControl
		}
		// The smallest one: a path with several routes would otherwise hide it.
		if r.MTUBytes == 0 || t.PMTUBytes < r.MTUBytes {
			r.MTUBytes = t.PMTUBytes
		}
	}
	if known {
		r.RetransmitsTotal = &retransmits
	}
	// This end sent nothing, so the far end's congestion control applies.
	if r.CongestionControl == "" {
		r.CongestionControl = c.far.Congestion
	}
}

// datagrams records what became of the datagrams, without the losses of the omitted seconds where
// the far end reports them separately.
func (c *client) datagrams(r *traffic.Result) {
	var up, down traffic.DatagramCounts
	var duplicates, reordered uint64
	var own [2]drops.SocketDrops
	var batch datagram.Batch
	untold := false
	for _, f := range c.load.flows {
		far := c.far.Streams[f.index]
		if f.sends {
			sent := f.sender.Sent()
			batch = sent.Batch
			d := c.datagramsUp(f)
			untold = untold || c.lossUntold() && d.lost > 0
			// The sent count covers the measured part alone; the loss does as far as the far end
			// reports it.
			add(&up, d.sent, d.lost)
			up.JitterSeconds += far.JitterSeconds / float64(c.spec.Streams)
			own[0].Sent += uint64(sent.MeasuredSocketErrors)
			continue
		}
		got := c.final[f.index].got
		batch = got.Batch
		// The sender's own count where it is higher: see above.
		all := max(far.Packets, int64(got.HighestSequence))
		add(&down, all-f.mark.packets, all-got.UniquePackets-f.mark.lost)
		duplicates += uint64(max(got.Duplicates-f.mark.got.Duplicates, 0))
		reordered += uint64(max(got.Reordered-f.mark.got.Reordered, 0))
		// The far end reports neither for data that this end sends.
		down.Duplicates, down.Reordered = &duplicates, &reordered
		down.JitterSeconds += got.JitterSeconds / float64(c.spec.Streams)
		own[1].Received += uint64(max(dropped(got)-dropped(f.mark.got), 0))
		if c.spec.Streams == 1 && got.DelayVariation.Count > 0 {
			down.DelayVariation = got.DelayVariation.OrNil()
		}
	}
	if untold {
		r.Warnings = append(r.Warnings,
			"the far end does not report losses of the warm-up separately: they count as losses of the test")
	}
	r.UDP = &traffic.Datagrams{Batch: string(batch)}
	counters := r.Ends.Local.Counters
	switch c.spec.Direction {
	case traffic.Up:
		r.UDP.DatagramCounts = up
		r.Losses = drops.Losses(up.Lost, own[0], counters, nil)
	case traffic.Down:
		r.UDP.DatagramCounts = down
		r.Losses = drops.Losses(down.Lost, own[1], nil, counters)
	default:
		r.UDP.DatagramCounts = traffic.DatagramCounts{
			Sent: up.Sent + down.Sent, Received: up.Received + down.Received, Lost: up.Lost + down.Lost,
			JitterSeconds: (up.JitterSeconds + down.JitterSeconds) / 2,
		}
		r.UDP.Up, r.UDP.Down = &up, &down
		r.Losses = drops.Merge(drops.Losses(up.Lost, own[0], counters, nil),
			drops.Losses(down.Lost, own[1], nil, counters))
	}
	total := r.UDP.DatagramCounts
	if total.Sent > 0 {
		ratio := float64(total.Lost) / float64(total.Sent)
		r.LossRatio = &ratio
	}
	// The far sender continues until it learns of the end, so the rate of received data uses only
	// the window's packets.
	if window := c.end.at - c.marked.at; window > 0 {
		r.PacketsPerSec = float64(int64(up.Received)+c.end.packets-c.marked.packets) / window.Seconds()
	}
}

// dropped returns how many datagrams the receiving socket had no room for.
func dropped(got datagram.Received) int64 {
	if got.Merged {
		return got.GapsAtSocket // the socket counts packets that the kernel had merged as one
	}
	return got.SocketDrops
}

// add adds the datagrams of one stream.
func add(d *traffic.DatagramCounts, sent, lost int64) {
	// The far end's counts are clamped to what is possible.
	sent = max(sent, 0)
	lost = min(max(lost, 0), sent)
	d.Sent += uint64(sent)
	d.Lost += uint64(lost)
	d.Received += uint64(sent - lost)
}

// pacing records how well this end kept a rate. The far end's pacing only shows in the arrivals.
func (c *client) pacing(r *traffic.Result) {
	target := c.load.p.BitsPerSec * float64(c.spec.Streams)
	seconds := (c.end.at - c.load.marked).Seconds()
	if target == 0 || !c.load.p.sending() || seconds <= 0 {
		return
	}
	// The kernel paces TCP (SO_MAX_PACING_RATE). The worker paces datagrams, and knows the gaps.
	p := &traffic.Pacing{TargetBitsPerSec: target, Method: "kernel"}
	for _, f := range c.load.flows {
		if !f.sends {
			continue
		}
		p.AchievedBitsPerSec += float64(c.final[f.index].bytes-f.mark.bytes) * 8 / seconds
		if f.sender == nil {
			continue
		}
		p.Method = "user"
		if gaps := f.sender.Sent().Gaps; c.spec.Streams == 1 && gaps.Count > 0 {
			p.Gaps = gaps.OrNil()
		}
	}
	r.Pacing = p
}

// localEnd returns this host's costs and drops.
func (c *client) localEnd() traffic.End {
	e := traffic.End{Host: c.o.HostName, Drops: []drops.Drop{}}
	for _, f := range c.load.flows {
		if f.worker.CPU >= 0 {
			e.Placement = append(e.Placement, traffic.Placement{Stream: f.index, CPU: f.worker.CPU})
		}
	}
	if c.before == nil || c.after == nil {
		return e
	}
	d := host.Sub(c.before, c.after)
	e.CPUs, e.Counters = d.CPUs, make(map[string]uint64)
	for name, v := range d.Values {
		if v != 0 {
			e.Counters[name] = v
		}
	}
	e.Drops = drops.Find(e.Counters, d.Drivers)
	// The counters are read around the whole test. The share of the time outside the measured part
	// is subtracted.
	share := 1.0
	if inside := (c.end.at - c.load.marked).Seconds(); inside > 0 && d.Seconds > inside {
		share = inside / d.Seconds
	}
	for _, cpu := range d.CPUs {
		if cpu.CPU != -1 { // the kernel's own sum of all CPUs, the line "cpu" of /proc/stat
			continue
		}
		e.UserSeconds, e.SystemSeconds = cpu.User*share, cpu.System*share
		e.SoftIRQSeconds, e.IRQSeconds = cpu.SoftIRQ*share, cpu.IRQ*share
		e.CPUSeconds = e.UserSeconds + e.SystemSeconds + e.SoftIRQSeconds + e.IRQSeconds
		if all := cpu.User + cpu.System + cpu.IRQ + cpu.SoftIRQ + cpu.Steal + cpu.Idle; all > 0 &&
			cpu.Steal/all > maxStealShare {
			c.warnings = append(c.warnings,
				fmt.Sprintf("the hypervisor took %.1f %% of the CPU time of this host for others", 100*cpu.Steal/all))
		}
	}
	return e
}
