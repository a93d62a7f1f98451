package dialect

import (
	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/drops"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/engine"
)

// assemble adds what this end knows to the result, which already has what the far end reported.
func (c *conductor) assemble(before, busy, after *host.Counters) {
	r := c.result
	c.methods()
	var up, down int64
	for i, f := range c.flows {
		c.observe(f)
		if f.Role == engine.Receiver {
			down += f.Bytes.Load()
		} else {
			up += carried(f.Worker)
		}
		if f.Conn != nil {
			f.tcp.Shut(f.Conn.Buffers())
			if f.tcp.Known() {
				r.Ends.Local.TCP = append(r.Ends.Local.TCP, f.tcp.Report(f.Role == engine.Sender))
			}
		}
		if f.CPU >= 0 {
			r.Ends.Local.Placement = append(r.Ends.Local.Placement, traffic.Placement{Stream: i, CPU: f.CPU})
		}
	}
	// The far end reports the receiver's time. Where it does not, this end's time up to the last
	// acknowledgement is used.
	if r.DurationSeconds == 0 {
		r.DurationSeconds = c.stopped.Seconds()
	}
	if c.spec.Test == traffic.Stream && r.Bytes == 0 {
		r.Bytes = up + down
	}
	r.ThroughputBitsPerSec = rate(r.Bytes, r.DurationSeconds)
	if c.spec.Direction == traffic.Bidir {
		r.UpBitsPerSec, r.DownBitsPerSec = rate(up, r.DurationSeconds), rate(down, r.DurationSeconds)
		if c.up.at > 0 { // the far end ends its direction by its own clock
			r.UpBitsPerSec, r.DownBitsPerSec = rate(up, c.up.at.Seconds()), rate(down, c.down.at.Seconds())
			r.ThroughputBitsPerSec = r.UpBitsPerSec + r.DownBitsPerSec
		}
	}
	c.path()
	socket := c.datagrams()
	c.cost(before, busy, after)
	// The far end's counters cannot be read, so packets that this end cannot explain were lost on
	// the path or at the far end.
	if r.UDP != nil && r.UDP.Lost > 0 {
		sender, receiver := r.Ends.Local.Counters, map[string]uint64(nil)
		if c.spec.Direction == traffic.Down {
			sender, receiver = receiver, sender
		}
		r.Losses = drops.Losses(r.UDP.Lost, socket, sender, receiver)
	}
	if c.local.IsValid() {
		r.LocalAddress, r.RemoteAddress = c.local.String(), c.remote.String()
	}
}

func rate(bytes int64, seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	return float64(bytes) * 8 / seconds
}

// methods records the dialect and how the data moved.
func (c *conductor) methods() {
	r := c.result
	r.Method = c.name + ", tcp"
	if c.spec.Test == traffic.UDP {
		r.Method = c.name + ", udp"
	}
	for _, f := range c.flows {
		switch f.Role {
		case engine.Sender:
			r.SendMethod = f.Method
		case engine.Receiver:
			r.ReceiveMethod = f.Method
		}
	}
	for _, m := range []string{r.SendMethod, r.ReceiveMethod} {
		if m != "" {
			r.Method += ", " + m
		}
	}
}

// path adds what the kernel reports about the connections on which this end sends.
func (c *conductor) path() {
	r := c.result
	var retransmits uint64
	senders := false
	for _, t := range r.Ends.Local.TCP {
		if r.CongestionControl == "" && t.Sender {
			r.CongestionControl = t.CongestionControl
		}
		r.MSSBytes = max(r.MSSBytes, t.SndMSSBytes)
		// The smallest one: a path with several routes would otherwise hide it.
		if r.MTUBytes == 0 || t.PMTUBytes < r.MTUBytes {
			r.MTUBytes = t.PMTUBytes
		}
		if t.Sender {
			senders = true
			retransmits += t.RetransSegs
		}
	}
	if senders {
		r.RetransmitsTotal = &retransmits
	}
}

// datagrams adds what this end's senders report, and returns what their sockets dropped.
func (c *conductor) datagrams() (drops drops.SocketDrops) {
	r := c.result
	if r.UDP != nil {
		if r.UDP.Sent > 0 {
			loss := float64(r.UDP.Lost) / float64(r.UDP.Sent)
			r.LossRatio = &loss
		}
		if r.DurationSeconds > 0 {
			r.PacketsPerSec = float64(r.UDP.Received) / r.DurationSeconds
		}
	}
	var bits, target float64
	var gaps stats.Latencies
	pacing := ""
	for _, d := range c.test.Datagrams() {
		sent := d.Sent()
		drops.Sent += uint64(sent.SocketErrors)
		if r.UDP != nil {
			r.UDP.Batch = string(sent.Batch)
		}
		if span := (sent.StoppedAt - sent.StartedAt).Seconds(); span > 0 && sent.Packets > 1 {
			// n packets have n-1 gaps between them.
			bits += float64(sent.Bytes) * 8 * float64(sent.Packets-1) / float64(sent.Packets) / span
		}
		if sent.TargetGap > 0 {
			target += float64(c.spec.PacketBytes) * 8 / sent.TargetGap.Seconds()
			pacing = sent.Pacing
			// Distributions of several streams cannot be merged afterwards, so the result has the
			// one with the widest spread.
			if sent.Gaps.StdDev >= gaps.StdDev {
				gaps = sent.Gaps
			}
		}
	}
	for _, d := range c.test.Arrivals() {
		drops.Received += uint64(d.Received().SocketDrops)
	}
	if pacing != "" {
		r.Pacing = &traffic.Pacing{TargetBitsPerSec: target, AchievedBitsPerSec: bits, Method: "user",
			Gaps: gaps.OrNil()}
	}
	return drops
}

// cost records the CPU time and the drops of this host during the test.
func (c *conductor) cost(before, busy, after *host.Counters) {
	if before == nil || busy == nil || after == nil {
		return
	}
	e := &c.result.Ends.Local
	diff := host.Sub(before, after)
	e.CPUs = host.Sub(before, busy).CPUs
	e.Drops = drops.Find(diff.Values, diff.Drivers)
	e.Counters = make(map[string]uint64, len(diff.Values))
	for name, v := range diff.Values {
		if v != 0 {
			e.Counters[name] = v
		}
	}
	for _, cpu := range e.CPUs {
		// CPU -1 is the kernel's own sum over all CPUs.
		if cpu.CPU == -1 {
			e.UserSeconds, e.SystemSeconds, e.SoftIRQSeconds, e.IRQSeconds = cpu.User, cpu.System, cpu.SoftIRQ, cpu.IRQ
			e.CPUSeconds = cpu.User + cpu.System + cpu.SoftIRQ + cpu.IRQ
		}
	}
	if gigabytes := float64(c.result.Bytes) / 1e9; gigabytes > 0 {
		e.CPUSecondsPerGigabyte = e.CPUSeconds / gigabytes
	}
	if c.result.UDP != nil && c.result.UDP.Received > 0 {
		e.CPUSecondsPerMillion = e.CPUSeconds / (float64(c.result.UDP.Received) / 1e6)
	}
}
