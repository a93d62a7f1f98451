package traffic

import (
	"cmp"
	"fmt"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/host/drops"
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

// accountOf is what x has come to, as it travels; nil where this side does not send, or not
// receive.
func accountOf(x *datagram.Exchange) (*udpSent, *udpReceived) {
	s, r := x.Totals()
	var sent *udpSent
	if s != nil {
		sent = &udpSent{
			Packets: s.Packets, Bytes: s.Bytes, SocketErrors: s.SocketErrors, Gaps: DistributionOf(s.Gaps),
			Pacing: s.Pacing, Batch: string(s.Batch),
		}
	}
	if r == nil {
		return sent, nil
	}
	return sent, &udpReceived{
		DatagramCounts: DatagramCounts{
			Sent: uint64(r.Sent), Received: uint64(r.Packets), Lost: uint64(r.Lost), Duplicates: known(r.Duplicates),
			Reordered:     known(r.Reordered),
			JitterSeconds: r.JitterSeconds, DelayVariation: DistributionOf(r.DelayVariation),
		},
		Bytes: r.Bytes, Seconds: r.Time.Seconds(), SocketDrops: r.SocketDrops, Batch: string(r.Batch),
	}
}

// datagrams fills in what became of the datagrams of both directions.
func (r *Result) datagrams(spec Spec, near, far resultBody) {
	// Not more than the receiving end's time: what queues on the way held back came after the
	// sender's window. Not less than the window either, which a test of few packets does not fill.
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
	r.Losses = drops.Merge(
		explain(up, near, far),
		explain(down, far, near),
	)
	for _, b := range []resultBody{near, far} {
		if b.UDPSent == nil {
			continue
		}
		r.UDP.Batch = cmp.Or(r.UDP.Batch, b.UDPSent.Batch)
		if b.UDPSent.Bytes < spec.Bytes {
			r.Warnings = append(r.Warnings, fmt.Sprintf("only %d of %d bytes were sent within %v", b.UDPSent.Bytes,
				spec.Bytes, spec.Duration))
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
	d.Duplicates, d.Reordered = sumKnown(d.Duplicates, o.Duplicates), sumKnown(d.Reordered, o.Reordered)
	return d
}

// known is a count that was told.
func known(n int64) *uint64 {
	u := uint64(n)
	return &u
}

// sumKnown is nil where one of the counts is not known: the other alone is no total.
func sumKnown(a, b *uint64) *uint64 {
	if a == nil || b == nil {
		return nil
	}
	sum := *a + *b
	return &sum
}

// explain finds out where the packets of one direction died.
func explain(counts DatagramCounts, sender, receiver resultBody) []drops.Loss {
	var own drops.SocketDrops
	if sender.UDPSent != nil {
		own.Sent = uint64(max(0, sender.UDPSent.SocketErrors))
	}
	if receiver.UDPReceived != nil {
		own.Received = uint64(max(0, receiver.UDPReceived.SocketDrops))
	}
	return drops.Losses(counts.Lost, own, sender.End.Counters, receiver.End.Counters)
}

// pace fills in how well a rate was kept.
func (r *Result) pace(spec Spec, near, far resultBody) {
	target := spec.BitRate()
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
	if p.AchievedBitsPerSec < leastKept*p.TargetBitsPerSec {
		r.Warnings = append(r.Warnings, fmt.Sprintf("only %v of the %v asked for were sent",
			unit.BitRate(p.AchievedBitsPerSec), unit.BitRate(p.TargetBitsPerSec)))
	}
}

// leastKept is the share of a rate below which the result is not what was asked for. A few per cent
// go by the ends of a short window, where one more or less of few datagrams counts.
const leastKept = 0.95
