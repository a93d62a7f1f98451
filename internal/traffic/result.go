package traffic

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/host/drops"
	"github.com/linerate/linerate/internal/host/tcpinfo"
	"github.com/linerate/linerate/internal/traffic/engine"
)

// smallerSegments says that segments of the size asked for did not come about: TCP_MAXSEG only ever
// lowers what the path and the hosts agree on. Timestamps take their bytes out of what was asked
// for, which is no news; 0 is not asked, or not known.
func smallerSegments(asked, got int) string {
	if got == 0 || got >= asked-tcpinfo.TimestampBytes {
		return ""
	}
	return fmt.Sprintf("segments of %d bytes were asked for, and %d is the most that this path and both hosts take",
		asked, got)
}

// assemble makes the result out of what both sides counted.
func assemble(c *conductor, link Link, method string, started time.Time, far resultBody, intervals []Interval) *Result {
	near := c.body(link.HostName)
	r := &Result{
		Test: c.spec.Test, Direction: c.spec.Direction, Method: method,
		StartTime: started, WarmUpSeconds: c.warmUp.Seconds(), Streams: c.spec.Streams,
		Intervals: intervals, Ends: Ends{Local: near.End, Remote: far.End},
		Warnings: joined(near.Warnings, far.Warnings),
	}
	if r.Intervals == nil {
		r.Intervals = []Interval{}
	}
	if r.Ends.Remote.Drops == nil {
		r.Ends.Remote.Drops = []drops.Drop{}
	}
	r.DurationSeconds = near.Seconds
	r.RTT = c.distribution()
	switch c.spec.Test {
	case Stream:
		r.bulk(near, far)
		r.SendMethod, r.ReceiveMethod = cmp.Or(near.SendMethod, far.SendMethod),
			cmp.Or(far.ReceiveMethod, near.ReceiveMethod)
		r.VerifiedBytes = near.Verified + far.Verified
		r.pace(c.spec, near, far)
	case UDP:
		r.datagrams(c.spec, near, far)
		r.MTUBytes = c.pathMTU
		r.VerifiedBytes = near.Verified + far.Verified
	case RR, CRR:
		r.TransactionsPerSec = perSecond(near.Transactions, near.Seconds)
	case Ping:
		r.pings(c)
	}
	r.path()
	if w := smallerSegments(c.spec.MSSBytes, r.MSSBytes); w != "" {
		r.Warnings = append(r.Warnings, w)
	}
	r.cost(near, far)
	if c.pinger != nil {
		r.troubles(c.pinger.Troubles())
	}
	return r
}

// joined are the sentences of both ends, each once: two ends of one name, as in two namespaces of a
// host, doubt the same thing.
func joined(near, far []string) []string {
	all := slices.Clone(near)
	for _, w := range far {
		if !slices.Contains(all, w) {
			all = append(all, w)
		}
	}
	return all
}

// bulk fills in what the receivers counted.
func (r *Result) bulk(near, far resultBody) {
	// The far side counts from the moment it opens its window, and an amount may have come in
	// before that. Where so little time is left that this matters, the time counts in which the
	// near side sent and heard that all had come: too long by a way back, never too short.
	upSeconds := far.Seconds
	if upSeconds < shortAmount.Seconds() {
		upSeconds = max(upSeconds, near.Window)
	}
	down, up := perSecond(near.Bytes, near.Seconds)*8, perSecond(far.Bytes, upSeconds)*8
	switch r.Direction {
	case Up:
		r.Bytes, r.DurationSeconds, r.ThroughputBitsPerSec = far.Bytes, upSeconds, up
	case Down:
		r.Bytes, r.DurationSeconds, r.ThroughputBitsPerSec = near.Bytes, near.Seconds, down
	case Bidir:
		// Two windows that overlap but for half a round trip; the sum is what both hosts carried at
		// the same time.
		r.Bytes, r.DurationSeconds, r.ThroughputBitsPerSec = near.Bytes+far.Bytes, near.Seconds, up+down
		r.UpBitsPerSec, r.DownBitsPerSec = up, down
	}
}

// cost spreads the processor time of both ends over what was carried: payload, and packets. Those
// are datagrams, segments that the senders sent, or the messages of transactions.
func (r *Result) cost(near, far resultBody) {
	var packets uint64
	switch {
	case r.UDP != nil:
		packets = r.UDP.Received
	case r.Test == Stream:
		for _, t := range slices.Concat(r.Ends.Local.TCP, r.Ends.Remote.TCP) {
			if t.Sender {
				packets += t.SegsOut
			}
		}
	default:
		packets = 2 * uint64(max(0, near.Transactions))
	}
	// Each end's time is of its own window, and the windows are not the same where the ends wait
	// for each other: what counts is the share.
	for _, e := range []struct {
		end    *End
		window float64
	}{{&r.Ends.Local, near.Window}, {&r.Ends.Remote, far.Window}} {
		if e.window > 0 {
			e.end.perUnit(r.Bytes, packets, r.DurationSeconds/e.window)
		}
	}
}

// pings fills in what came back.
func (r *Result) pings(c *conductor) {
	if c.pinger == nil || c.pinger.Sent() == 0 {
		return
	}
	// A ping in flight at the end of the window is not lost: the pinger waits a second for those.
	sent := c.pinger.Sent()
	loss := 1 - float64(min(c.pinger.Answered(), sent))/float64(sent)
	r.LossRatio = &loss
	r.PacketsPerSec = perSecond(sent, r.DurationSeconds)
}

// path fills in what the kernel says of the connections, from the side that sent.
func (r *Result) path() {
	var retransmits uint64
	senders := 0
	for _, t := range slices.Concat(r.Ends.Local.TCP, r.Ends.Remote.TCP) {
		if !t.Sender && r.Test == Stream {
			continue
		}
		senders++
		retransmits += t.RetransSegs
		r.MSSBytes = max(r.MSSBytes, t.SndMSSBytes)
		// The smallest, because it is the one that a path with several routes would hide.
		if r.MTUBytes == 0 || t.PMTUBytes < r.MTUBytes {
			r.MTUBytes = t.PMTUBytes
		}
		if r.CongestionControl == "" {
			r.CongestionControl = t.CongestionControl
		}
	}
	if senders > 0 {
		r.RetransmitsTotal = &retransmits
	}
}

// distribution merges the round trips of all workers; nil when there are none. Those of pings
// beside a test of transactions are told per interval only: two kinds of round trips in one
// distribution would be neither. The workers must have ended.
func (c *conductor) distribution() *Distribution {
	all := stats.NewHistogram()
	for _, w := range c.workers {
		if w.RTT != nil && (w.Role != engine.Pinger || c.spec.Test == Ping || c.spec.Bulk()) {
			all.Merge(w.RTT)
		}
	}
	return DistributionOf(all.Snapshot())
}

// DistributionOf is a summary in plain words; nil when it is of nothing.
func DistributionOf(l stats.Latencies) *Distribution {
	if l.Count == 0 {
		return nil
	}
	return &Distribution{
		Count: l.Count, Min: l.Min, Mean: l.Mean, P50: l.P50, P90: l.P90, P99: l.P99, P999: l.P999, Max: l.Max,
		StdDev: l.StdDev,
	}
}

// body is what one side reports of its window.
func (c *conductor) body(name string) resultBody {
	open, shut := c.window.open, c.window.shut
	b := resultBody{
		End: c.end(name), Bytes: c.arrived(), Transactions: shut.transactions - open.transactions,
		Verified: shut.verified - open.verified, Seconds: (shut.at - open.at).Seconds(),
		Window: (shut.at - open.at).Seconds(), Parts: c.parts,
	}
	for _, w := range c.workers {
		switch w.Role {
		case engine.Sender:
			b.SendMethod = w.Method
		case engine.Receiver:
			b.ReceiveMethod = w.Method
		}
	}
	switch {
	case c.window.full > 0:
		// The near side asks for what it receives, so its time begins when it asks: what came on
		// the way back was sent in that time.
		b.Seconds = max(0, (c.window.full - cmp.Or(c.markedAt, open.at)).Seconds())
	case c.spec.Bytes > 0 && c.spec.Test == Stream && c.receives():
		c.warn("only %d of %d bytes came within %v", b.Bytes, c.spec.Bytes, c.spec.Duration)
	}
	if c.udp != nil {
		b.UDPSent, b.UDPReceived = accountOf(c.udp)
	}
	b.Warnings = c.doubts(b.End, name)
	return b
}

// arrived is the payload that this side received inside its window.
func (c *conductor) arrived() int64 {
	if c.spec.Bytes > 0 {
		return c.window.shut.bytes - c.first.bytes
	}
	counted := c.window.shut.bytes - c.window.open.bytes
	var exact int64
	for i, w := range c.workers {
		if w.Role != engine.Receiver {
			continue
		}
		n, ok := c.flows[i].ReceivedBytes()
		if !ok {
			return counted
		}
		exact += n
	}
	return exact
}

func perSecond(n int64, seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	return float64(n) / seconds
}
