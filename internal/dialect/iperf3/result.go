package iperf3

import (
	"fmt"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/drops"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/datagram"
)

// maxStealShare of the time of all CPUs already moves a throughput by more than what is looked for.
const maxStealShare = 0.02

// result puts together what both ends counted.
func (c *client) result() *traffic.Result {
	s := c.spec
	r := &traffic.Result{
		Test: s.Test, Direction: s.Direction, StartTime: c.startedAt, Streams: s.Streams,
		WarmUpSeconds: c.load.marked.Seconds(), DurationSeconds: (c.end.at - c.load.marked).Seconds(),
		Intervals: c.intervals, LocalAddress: c.local.WithZone("").String(),
		RemoteAddress: c.remote.WithZone("").String(),
		Ends:          traffic.Ends{Local: c.localEnd(), Remote: traffic.End{Drops: []drops.Drop{}}},
	}
	r.Warnings = c.warnings
	if c.load.p.Omit == 0 {
		r.WarmUpSeconds = 0 // some microseconds of our own work
	}
	// An empty list, because a reader of the JSON must not find null in its place.
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

// methods names the dialect and what moved the data at this end.
func (c *client) methods(r *traffic.Result) {
	kind := "tcp"
	if c.load.p.UDP {
		kind = "udp"
	}
	var used []string
	for _, f := range c.load.flows {
		// In both directions there are two of them, and one sentence tells of both.
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

// throughput is what the receivers counted: the far end all that came until it heard of the end,
// this one what came while it measured. A stream that is sent from here took until the far kernel
// had everything.
func (c *client) throughput(r *traffic.Result) {
	var up, sent int64 // sent counts what this kernel was given
	for _, f := range c.load.flows {
		if f.sends {
			up += c.far.Streams[f.index].Bytes
			sent += c.final[f.index].bytes - f.mark.bytes
		}
	}
	down := c.end.down - c.marked.down
	downSeconds := (c.end.at - c.marked.at).Seconds() // of the two readings that the bytes are of
	upSeconds := downSeconds
	if !c.load.p.UDP {
		upSeconds = (c.settled - c.load.marked).Seconds()
	}
	rate := func(bytes int64, seconds float64) float64 {
		if seconds <= 0 {
			return 0
		}
		return float64(bytes) * 8 / seconds
	}
	r.UpBitsPerSec, r.DownBitsPerSec = rate(up, upSeconds), rate(down, downSeconds)
	r.ThroughputBitsPerSec = r.UpBitsPerSec + r.DownBitsPerSec
	r.Bytes = up + down
	// With one direction the total is all there is to say.
	if c.spec.Direction != traffic.Bidir {
		r.UpBitsPerSec, r.DownBitsPerSec = 0, 0
	}
	if c.spec.Direction == traffic.Up {
		r.DurationSeconds = upSeconds
	}
	// Without omitted seconds only: with them both ends begin to count at moments of their own, and
	// a difference means nothing.
	if !c.load.p.UDP && c.load.p.Omit == 0 && up < sent {
		r.Warnings = append(r.Warnings, fmt.Sprintf(
			"the far end counted %d bytes fewer than it acknowledged: iperf3 closes its connections before it has read everything", sent-up))
	}
}

// connections is what the kernels say of TCP streams, from the side that sends.
func (c *client) connections(r *traffic.Result) {
	var retransmits uint64
	known := true
	for _, f := range c.load.flows {
		if !f.sends {
			n := c.far.Streams[f.index].Retransmits
			// Only the far kernel knows of what it had to send again, and a program that cannot ask
			// it says -1, or that it has none.
			known = known && c.far.HasRetransmits == 1 && n >= 0
			retransmits += uint64(max(n, 0))
		}
		if !f.tcp.Known() {
			// Of a connection that only receives the kernel need not tell anything: the sum is of
			// the senders.
			known = known && !f.sends
			continue
		}
		t := f.tcp.Report(f.sends)
		r.Ends.Local.TCP = append(r.Ends.Local.TCP, t)
		if f.sends {
			retransmits += t.RetransSegs // segments, as the far end counts its own
			r.MSSBytes = max(r.MSSBytes, t.SndMSSBytes)
			r.CongestionControl = t.CongestionControl
		}
		// The smallest is the one that a path with several routes would hide.
		if r.MTUBytes == 0 || t.PMTUBytes < r.MTUBytes {
			r.MTUBytes = t.PMTUBytes
		}
	}
	if known {
		r.RetransmitsTotal = &retransmits
	}
	// Nothing was sent from here, so it is the far end that has one.
	if r.CongestionControl == "" {
		r.CongestionControl = c.far.Congestion
	}
}

// datagrams is what became of the datagrams. What is lost in the omitted seconds is left out where
// the far end tells it apart.
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
			// Of all that was ever sent, less what came and what was lost before the mark: what is
			// lost at the very end has no gap behind it.
			lost := sent.AllPackets - (far.Packets - far.Errors) - far.OmittedErrors
			untold = untold || c.load.p.Omit > 0 && !c.far.TellsOmitted && lost > 0
			// What was sent is of the measured part alone, and the loss as well as the far end lets
			// it be told.
			add(&up, sent.Packets, lost)
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
		down.Duplicates, down.Reordered = &duplicates, &reordered // of what goes up, the far end tells neither
		down.JitterSeconds += got.JitterSeconds / float64(c.spec.Streams)
		own[1].Received += uint64(max(dropped(got)-dropped(f.mark.got), 0))
		if c.spec.Streams == 1 && got.DelayVariation.Count > 0 {
			down.DelayVariation = traffic.DistributionOf(got.DelayVariation)
		}
	}
	if untold {
		r.Warnings = append(r.Warnings,
			"the far end does not tell losses of the warm-up apart: they count as losses of the test")
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
	// The far sender goes on until it hears of the end, so of what comes down only the window's
	// packets make a rate.
	if window := c.end.at - c.marked.at; window > 0 {
		r.PacketsPerSec = float64(int64(up.Received)+c.end.packets-c.marked.packets) / window.Seconds()
	}
}

// dropped is how many datagrams the receiving socket had no room for.
func dropped(got datagram.Received) int64 {
	if got.Merged {
		return got.GapsAtSocket // the socket counts what the kernel had merged as one
	}
	return got.SocketDrops
}

// add counts the datagrams of one stream. Those that arrive twice make iperf3 count less than
// nothing as lost.
func add(d *traffic.DatagramCounts, sent, lost int64) {
	// The far end is believed only as far as it can be true.
	sent = max(sent, 0)
	lost = min(max(lost, 0), sent)
	d.Sent += uint64(sent)
	d.Lost += uint64(lost)
	d.Received += uint64(sent - lost)
}

// pacing tells how well this end kept a rate. That of the far end is only to be seen in what
// arrives.
func (c *client) pacing(r *traffic.Result) {
	target := c.load.p.BitsPerSec * float64(c.spec.Streams)
	seconds := (c.end.at - c.load.marked).Seconds()
	if target == 0 || !c.load.p.sending() || seconds <= 0 {
		return
	}
	// TCP is paced by the kernel (SO_MAX_PACING_RATE), datagrams by the worker, which then knows
	// the gaps.
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
			p.Gaps = traffic.DistributionOf(gaps)
		}
	}
	r.Pacing = p
}

// localEnd is what this host spent and dropped.
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
	// The counters are read around the whole test. Of the time outside the measured part the same
	// share is taken off.
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
