package traffic

import (
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/traffic/engine"
)

// counters reads the host's counters; without them the test still has a result, so a failure is a
// warning.
func (c *conductor) counters() *host.Counters {
	if c.sample == nil {
		return nil
	}
	counters, err := c.sample()
	if err != nil {
		c.warn("host counters not read: %v", err)
		return nil
	}
	return counters
}

// read takes a reading of every connection and sums the tallies at this moment.
func (c *conductor) read() reading {
	// The tallies are read one after the other while they grow. With a reading per 50 ms at the
	// least, the microseconds between the first and the last of them are less than the noise of the
	// clock's own edges.
	r := reading{at: c.now()}
	inWindow := c.phase.Is() == engine.Measured
	for i, w := range c.workers {
		if w.Conn != nil {
			// One that cannot be read keeps its last reading; if it broke, its worker says so.
			if info, err := w.Conn.Info(); err == nil {
				c.flows[i].Add(info, inWindow)
			}
		}
		switch w.Role {
		case engine.Receiver:
			r.bytes += c.received(i)
			r.packets += w.Packets.Load()
			r.verified += w.Verified.Load()
		case engine.Sender:
			r.sent += w.Bytes.Load()
		}
		if w.Role == engine.Pinger && c.spec.Test != Ping {
			r.probes += w.Transactions.Load()
			r.probeNanos += w.RTTNanos.Load()
			continue
		}
		r.transactions += w.Transactions.Load()
		r.rttNanos += w.RTTNanos.Load()
	}
	if c.udp != nil {
		r.missing = c.udp.Missing()
	}
	return r
}

// received is the payload that worker i has received. The kernel's count is the truer one: data
// that arrived but were not read yet are in it. Of an amount, though, every byte that is read
// counts, and the kernel began to count before.
func (c *conductor) received(i int) int64 {
	if f := &c.flows[i]; c.spec.Bytes == 0 && f.TellsReceived() {
		return int64(f.Last.BytesReceived)
	}
	return c.workers[i].Bytes.Load()
}
