package traffic

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/host/drops"
	"github.com/linerate/linerate/internal/host/tcpinfo"
	"github.com/linerate/linerate/internal/traffic/echo"
	"github.com/linerate/linerate/internal/traffic/engine"
)

// outcome is what both ends of a test report.
type outcome struct {
	spec      Spec
	near, far resultBody
}

// assemble makes the result out of what both ends counted.
func assemble(c *nearConductor, n *nearEnd, started time.Time, far resultBody, intervals []Interval) *Result {
	spec, near := n.spec, c.body(n.HostName)
	r := &Result{
		Test: spec.Test, Direction: spec.Direction, Method: engine.Name,
		StartTime: started, DurationSeconds: near.Seconds, WarmUpSeconds: c.warmedUp.Seconds(), Streams: spec.Streams,
		LocalAddress: n.addresses.local, RemoteAddress: n.addresses.remote,
		RTT:       c.distribution(spec.Bulk()),
		Intervals: intervals, Ends: Ends{Local: near.End, Remote: far.End},
		Warnings: joined(near.Warnings, far.Warnings),
	}
	if r.Intervals == nil {
		r.Intervals = []Interval{}
	}
	if r.Ends.Remote.Drops == nil {
		r.Ends.Remote.Drops = []drops.Drop{}
	}
	r.path(spec.Bulk())
	k, _ := kindOf(spec.Test) // known, because the Spec is normalized
	packets := k.result(r, outcome{spec: spec, near: near, far: far})
	if w := smallerSegments(spec.MSSBytes, r.MSSBytes); w != "" {
		r.Warnings = append(r.Warnings, w)
	}
	r.cost(near, far, packets)
	r.Ends.distinguish(n.addresses.local, cmp.Or(n.addresses.remote, n.PeerIP))
	return r
}

// distinguish adds the addresses to the names of two hosts that have the same name.
func (e *Ends) distinguish(local, remote string) {
	if e.Local.Host == "" || e.Local.Host != e.Remote.Host || local == remote {
		return
	}
	for end, address := range map[*End]string{&e.Local: local, &e.Remote: remote} {
		if address != "" {
			end.Host += " (" + address + ")"
		}
	}
}

// joined returns the sentences of both ends, each once: two ends with one name, as in two
// namespaces of a host, doubt the same thing.
func joined(near, far []string) []string {
	all := slices.Clone(near)
	for _, w := range far {
		if !slices.Contains(all, w) {
			all = append(all, w)
		}
	}
	return all
}

// path fills in what the kernel reports about the connections, from the end that sent. Of a test of
// transactions both ends send.
func (r *Result) path(bulk bool) {
	var retransmits uint64
	senders := 0
	for _, t := range slices.Concat(r.Ends.Local.TCP, r.Ends.Remote.TCP) {
		if !t.Sender && bulk {
			continue
		}
		senders++
		retransmits += t.RetransSegs
		r.MSSBytes = max(r.MSSBytes, t.SndMSSBytes)
		// The smallest, because a path with several routes would hide it.
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

// smallerSegments returns a warning if the connections did not get the segment size asked for, and
// "" otherwise: TCP_MAXSEG only ever lowers what the path and the hosts agree on. TCP timestamps
// take their bytes out of the size asked for, which deserves no warning. A size of 0 was not asked
// for, or is not known.
func smallerSegments(asked, got int) string {
	if got == 0 || got >= asked-tcpinfo.TimestampBytes {
		return ""
	}
	return fmt.Sprintf("segments of %d bytes were asked for, and %d is the most that this path and both hosts take",
		asked, got)
}

// cost spreads the CPU time of both ends over what was carried: payload, and packets.
func (r *Result) cost(near, far resultBody, packets uint64) {
	// Each end's time is that of its own window, and the windows differ where the ends wait for
	// each other, so the time is scaled to that of the result.
	for _, e := range []struct {
		end    *End
		window float64
	}{{&r.Ends.Local, near.Window}, {&r.Ends.Remote, far.Window}} {
		if e.window > 0 {
			e.end.perUnit(r.Bytes, packets, r.DurationSeconds/e.window)
		}
	}
}

// paced is what the senders of one end sent at a rate.
type paced struct {
	bytes   int64
	seconds float64
	method  string
	gaps    *stats.Latencies // nil: not known
}

// leastKept is the share of a rate below which the result is not what the Spec asked for. A few per
// cent are lost at the ends of a short window, where one datagram more or less counts.
const leastKept = 0.95

// pace fills in how well a rate, in bits per second for each sending end, was kept; 0: none was
// asked for.
func (r *Result) pace(target float64, ends []paced) {
	if target == 0 {
		return
	}
	p := &Pacing{}
	for _, e := range ends {
		p.Method = e.method
		if p.Gaps == nil || e.gaps != nil && e.gaps.P99 > p.Gaps.P99 {
			p.Gaps = e.gaps
		}
		p.TargetBitsPerSec += target
		p.AchievedBitsPerSec += perSecond(8*e.bytes, e.seconds)
	}
	r.Pacing = p
	if p.AchievedBitsPerSec < leastKept*p.TargetBitsPerSec {
		r.Warnings = append(r.Warnings, fmt.Sprintf("only %v of the %v asked for were sent",
			unit.BitRate(p.AchievedBitsPerSec), unit.BitRate(p.TargetBitsPerSec)))
	}
}

// warnOf adds what the network reported about single packets to the warnings.
func (r *Result) warnOf(all []echo.Trouble) {
	for _, t := range all {
		r.Warnings = append(r.Warnings, t.String())
	}
}

// distribution merges the round trips of all workers; nil when there are none. Beside includes
// those of the pings beside the test: beside a test of transactions only the intervals report them,
// because two kinds of round trips in one distribution would be neither. The workers must have
// ended.
func (s *sampler) distribution(beside bool) *stats.Latencies {
	all := stats.NewHistogram()
	for _, w := range s.workers {
		if w.RTT != nil && (beside || w != s.beside) {
			all.Merge(w.RTT)
		}
	}
	return all.Snapshot().OrNil()
}

// body returns what one end reports about its window.
func (c *conductor) body(name string) resultBody {
	open, shut := c.window.open, c.window.shut
	seconds := (shut.at - open.at).Seconds()
	b := resultBody{
		End: c.end(name), Bytes: c.arrived(), Transactions: shut.transactions - open.transactions,
		Verified: shut.verified - open.verified, Seconds: seconds, Window: seconds, Parts: c.parts,
	}
	for _, w := range c.workers {
		switch w.Role {
		case engine.Sender:
			b.SendMethod = w.Method
		case engine.Receiver:
			b.ReceiveMethod = w.Method
		}
	}
	c.ending.account(c, &b)
	b.Warnings = c.doubts(b.End, name)
	return b
}

// messages returns the number of messages of the transactions.
func (b *resultBody) messages() uint64 { return 2 * uint64(max(0, b.Transactions)) }

// perSecond returns a rate; 0 if no time has passed.
func perSecond(n int64, seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	return float64(n) / seconds
}
