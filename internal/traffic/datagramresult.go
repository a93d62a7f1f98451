package traffic

import (
	"time"

	"github.com/linerate/linerate/internal/stats"
	"github.com/linerate/linerate/internal/traffic/account"
	"github.com/linerate/linerate/internal/traffic/datagram"
)

// udpSent is what the senders of one side did in the window, all streams together.
type udpSent struct {
	Packets      int64         `json:"packets"`
	Bytes        int64         `json:"bytes"`
	SocketErrors int64         `json:"socket_errors,omitempty"` // of Packets: the kernel took and dropped them
	Gaps         *Distribution `json:"gaps,omitempty"`          // of the stream whose gaps varied most
	Pacing       string        `json:"pacing,omitempty"`
	Batch        string        `json:"batch,omitempty"`
}

// udpReceived is what the receivers of one side counted, all streams together.
type udpReceived struct {
	DatagramCounts
	Bytes       int64   `json:"bytes"`
	Seconds     float64 `json:"seconds"` // from the first to the last arrival
	SocketDrops int64   `json:"socket_drops,omitempty"`
	Batch       string  `json:"batch,omitempty"`
}

// sums adds up what the two kinds of workers of a side report; nil where it has none of a kind.
func (x *exchange) sums() (*udpSent, *udpReceived) {
	var sent *udpSent
	for _, s := range x.sent {
		if sent == nil {
			sent = &udpSent{Batch: string(s.Batch), Pacing: s.Pacing}
		}
		sent.Packets += s.Packets
		sent.Bytes += s.Bytes
		sent.SocketErrors += s.MeasuredSocketErrors
		sent.Gaps = wider(sent.Gaps, s.Gaps)
	}
	var received *udpReceived
	var first, last time.Duration
	for i, g := range x.got {
		if received == nil {
			received = &udpReceived{Batch: string(g.Batch)}
		}
		theirs := int64(0)
		if i < len(x.theirs) {
			theirs = x.theirs[i].Packets
		}
		received.Sent += uint64(theirs)
		received.Received += uint64(g.Packets)
		// A packet so late that nobody can tell it from a copy was not lost.
		received.Lost += uint64(max(0, theirs-g.Packets-g.Late))
		received.Duplicates += uint64(g.Duplicates)
		received.Reordered += uint64(g.Reordered)
		received.JitterSeconds += g.JitterSeconds / float64(len(x.got))
		received.DelayVariation = wider(received.DelayVariation, g.DelayVariation)
		received.Bytes += g.Bytes
		received.SocketDrops += socketDrops(g)
		if g.Packets > 0 {
			if first == 0 || g.FirstAt < first {
				first = g.FirstAt
			}
			last = max(last, g.LastAt)
		}
	}
	if received != nil {
		received.Seconds = (last - first).Seconds()
	}
	return sent, received
}

// socketDrops is how many measured packets the socket had no room for. A socket that merges packets counts the merged ones as one, and then the hole
// that the drop has left says how many there were.
func socketDrops(g datagram.Received) int64 {
	if g.Merged && g.MeasuredSocketDrops > 0 {
		return max(g.MeasuredSocketDrops, g.GapsAtSocket)
	}
	return g.MeasuredSocketDrops
}

// wider is the distribution with the longer tail. Those of several streams cannot be merged, and the worst one is what a user asks for.
func wider(d *Distribution, l stats.Latencies) *Distribution {
	if l.Count == 0 || d != nil && d.P99 >= l.P99 {
		return d
	}
	return plainDistribution(l)
}

// datagrams fills in what became of the datagrams of both directions.
func (r *Result) datagrams(spec Spec, near, far resultBody) {
	// Not more than the receiving end's time: what queues on the way held back came after the sender's window. Not less than the window either, which a
	// test of few packets does not fill.
	timed := func(sender resultBody, got *udpReceived) (bytes int64, seconds float64) {
		if got == nil {
			return 0, 0
		}
		return got.Bytes, max(sender.Seconds, got.Seconds)
	}
	upBytes, upSeconds := timed(near, far.UDPReceived)
	downBytes, downSeconds := timed(far, near.UDPReceived)
	up, down := far.UDPReceived.counts(), near.UDPReceived.counts()
	r.Bytes, r.DurationSeconds = upBytes+downBytes, max(upSeconds, downSeconds)
	r.ThroughputBitsPerSec = perSecond(8*upBytes, upSeconds) + perSecond(8*downBytes, downSeconds)
	r.PacketsPerSec = perSecond(int64(up.Received), upSeconds) + perSecond(int64(down.Received), downSeconds)
	r.UDP = &Datagrams{DatagramCounts: up}
	if spec.Direction == Down {
		r.UDP.DatagramCounts = down
	}
	if spec.Direction == Bidir {
		r.UDP.DatagramCounts = up.with(down)
		r.UDP.Up, r.UDP.Down = &up, &down
		r.UpBitsPerSec, r.DownBitsPerSec = perSecond(8*upBytes, upSeconds), perSecond(8*downBytes, downSeconds)
	}
	if r.UDP.Sent > 0 {
		loss := float64(r.UDP.Lost) / float64(r.UDP.Sent)
		r.LossRatio = &loss
	}
	r.Losses = merge(
		explain(up, near, far),
		explain(down, far, near),
	)
	for _, b := range []resultBody{near, far} {
		if b.UDPSent != nil && r.UDP.Batch == "" {
			r.UDP.Batch = b.UDPSent.Batch
		}
	}
	r.pace(spec, near, far)
}

// counts are those of one direction; all zero where nothing was received.
func (u *udpReceived) counts() DatagramCounts {
	if u == nil {
		return DatagramCounts{}
	}
	return u.DatagramCounts
}

// with joins the counts of two directions; delays are those of the worse one.
func (d DatagramCounts) with(o DatagramCounts) DatagramCounts {
	if o.DelayVariation != nil && (d.DelayVariation == nil || o.DelayVariation.P99 > d.DelayVariation.P99) {
		d.DelayVariation = o.DelayVariation
	}
	d.JitterSeconds = max(d.JitterSeconds, o.JitterSeconds)
	d.Sent += o.Sent
	d.Received += o.Received
	d.Lost += o.Lost
	d.Duplicates += o.Duplicates
	d.Reordered += o.Reordered
	return d
}

// explain finds out where the packets of one direction died.
func explain(counts DatagramCounts, sender, receiver resultBody) []Loss {
	var own account.SocketDrops
	if sender.UDPSent != nil {
		own.Sent = uint64(max(0, sender.UDPSent.SocketErrors))
	}
	if receiver.UDPReceived != nil {
		own.Received = uint64(max(0, receiver.UDPReceived.SocketDrops))
	}
	return account.Losses(counts.Lost, own, sender.End.Counters, receiver.End.Counters)
}

// merge joins the losses of both directions: one entry for each place and source.
func merge(up, down []Loss) []Loss {
	for _, d := range down {
		found := false
		for i := range up {
			if up[i].Place == d.Place && up[i].Source == d.Source {
				up[i].Packets += d.Packets
				found = true
			}
		}
		if !found {
			up = append(up, d)
		}
	}
	return up
}

// pace fills in how well a rate was kept.
func (r *Result) pace(spec Spec, near, far resultBody) {
	target := spec.bitRate()
	if target == 0 {
		return
	}
	p := &Pacing{}
	for _, b := range []resultBody{near, far} {
		var sent int64
		switch {
		case b.UDPSent != nil:
			sent, p.Method = b.UDPSent.Bytes, b.UDPSent.Pacing
			if p.Gaps == nil || b.UDPSent.Gaps != nil && b.UDPSent.Gaps.P99 > p.Gaps.P99 {
				p.Gaps = b.UDPSent.Gaps
			}
		case spec.Test == Stream && b.SendMethod != "":
			p.Method = "SO_MAX_PACING_RATE"
			for _, t := range b.End.TCP {
				if t.Sender {
					sent += int64(t.BytesAcked)
				}
			}
		default:
			continue
		}
		p.TargetBitsPerSec += target
		p.AchievedBitsPerSec += perSecond(8*sent, b.Seconds)
	}
	r.Pacing = p
}
