package traffic

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"

	"github.com/linerate/linerate/internal/traffic/engine"
)

// Stream is bulk TCP.
const Stream Test = "stream"

type streamTest struct{}

func (streamTest) traits() traits {
	return traits{bulk: true, dials: true, takes: directions | manyStreams | amounts | bitRates | probes | probeSizes |
		methods | tcpOptions | sourcePorts}
}

func (streamTest) fill(*Spec) {}

func (streamTest) check(s Spec) string {
	if s.RequestBytes != 0 && (s.ProbeGap == 0 || s.RequestBytes < minPingBytes || s.RequestBytes > maxPingBytes) {
		return fmt.Sprintf("pings of %d bytes beside a stream need a gap, and %d to %d bytes",
			s.RequestBytes, minPingBytes, maxPingBytes)
	}
	return ""
}

func (t streamTest) near(ctx context.Context, n *nearEnd) (cast, error) {
	workers, err := n.dial(ctx, t.worker(n.spec, n.phase, true))
	return t.cast(n.spec, true, workers), err
}

func (t streamTest) far(ctx context.Context, f *farEnd) (cast, error) {
	if err := f.accept(); err != nil {
		return cast{}, err
	}
	workers, err := f.collect(ctx, t.worker(f.spec, f.phase, false))
	return t.cast(f.spec, false, workers), err
}

// worker returns a function that makes the worker of one end for connection index. All senders of
// the end share the amount, if the Spec asks for one.
func (streamTest) worker(s Spec, p *engine.Phase, near bool) makeWorker {
	o := engine.StreamOptions{Send: s.SendMethod, Receive: s.ReceiveMethod}
	if s.Bytes > 0 {
		o.Limit = engine.NewQuota(s.Bytes)
	}
	return func(conn *net.TCPConn, index int) (*engine.Worker, error) {
		role := s.role(near, index)
		c, err := engine.Adopt(conn, s.connOptions(false, role == engine.Sender))
		if err != nil {
			return nil, err
		}
		if role == engine.Sender {
			return orClose(c)(engine.NewStreamSender(p, c, o))
		}
		return orClose(c)(engine.NewStreamReceiver(p, c, o))
	}
}

// cast describes the workers of one end. Senders of an amount start when the window opens, one
// after the other, so they keep threads of their own; those of a shared thread start together.
func (streamTest) cast(s Spec, near bool, workers []*engine.Worker) cast {
	c := cast{workers: workers, share: s.Bytes == 0}
	if s.Bytes > 0 {
		c.amount, c.held = true, true
		c.ending = &streamAmount{bytes: s.Bytes, sends: s.sends(near), receives: s.receives(near)}
	}
	return c
}

func (streamTest) interval(i *Interval, d Direction, own, far part) {
	i.ThroughputBitsPerSec = own.bitRate() + far.bitRate()
	sender := own
	if d == Down {
		sender = far
	}
	i.RTTSeconds, i.RTTVarSeconds, i.RetransmitsTotal = sender.RTT, sender.RTTVar, sender.Retransmits
	i.CwndBytes, i.SsthreshBytes, i.DeliveryRateBitsPerSec = sender.Cwnd, sender.Ssthresh, sender.DeliveryRate
	if length := sender.End - sender.Start; length > 0 {
		// The kernel's clock and ours differ by up to a tick; a share is one at most.
		i.RwndLimitedRatio, i.SndbufLimitedRatio = min(1, sender.RwndLimited/length),
			min(1, sender.SndbufLimited/length)
	}
	if d == Bidir {
		i.RetransmitsTotal += far.Retransmits
	}
}

func (t streamTest) result(r *Result, o outcome) (packets uint64) {
	t.throughput(r, o.near, o.far)
	r.SendMethod = cmp.Or(o.near.SendMethod, o.far.SendMethod)
	r.ReceiveMethod = cmp.Or(o.far.ReceiveMethod, o.near.ReceiveMethod)
	r.VerifiedBytes = o.near.Verified + o.far.Verified
	var sent []paced
	for _, b := range []resultBody{o.near, o.far} {
		if b.SendMethod == "" {
			continue
		}
		p := paced{seconds: b.Seconds, method: "SO_MAX_PACING_RATE"}
		for _, tcp := range b.End.TCP {
			if tcp.Sender {
				p.bytes += int64(tcp.BytesAcked)
			}
		}
		sent = append(sent, p)
	}
	r.pace(o.spec.BitRate(), sent)
	for _, tcp := range slices.Concat(r.Ends.Local.TCP, r.Ends.Remote.TCP) {
		if tcp.Sender {
			packets += tcp.SegsOut
		}
	}
	return packets
}

// throughput fills in what the receivers counted.
func (streamTest) throughput(r *Result, near, far resultBody) {
	// The far end counts from the moment it opens its window, and an amount may have arrived before
	// that. If the remaining time is so short that this matters, the time counts in which the near
	// end sent and heard that all had arrived: too long by one trip back, never too short.
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
		// The two windows overlap except for half a round trip; the sum is what both hosts carried
		// at the same time.
		r.Bytes, r.DurationSeconds, r.ThroughputBitsPerSec = near.Bytes+far.Bytes, near.Seconds, up+down
		r.UpBitsPerSec, r.DownBitsPerSec = up, down
	}
}
