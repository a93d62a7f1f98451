package loop

import (
	"cmp"
	"context"
	"fmt"
	"runtime"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/drops"
	"github.com/linerate/linerate/internal/host/moderation"
	"github.com/linerate/linerate/internal/traffic"
)

// burstSteps bounds the search between the longest whole train and the shortest one with a loss: it
// ends when they are a 64th apart, and exactly below 64 packets.
const burstSteps = 64

// burst sends growing trains until the first one loses packets, and then searches the length
// between the longest whole train and that one.
//
// A train with a loss is sent once more. If the second one arrives whole, the loss was not one of
// the length: other traffic, or a path that loses single packets.
func burst(ctx context.Context, run traffic.Runner, spec traffic.Spec,
	progress func(traffic.Interval)) (*traffic.Result, error) {
	spec, err := spec.Normalize()
	if err != nil {
		return nil, err
	}
	b := &traffic.BurstResult{PacketBytes: spec.PacketBytes,
		LongestPackets: uint64(spec.Bytes) / uint64(spec.PacketBytes), Trains: []traffic.BurstTrain{}}
	s := burstSearch{BurstResult: b, whole: &traffic.Result{Test: traffic.Burst, Direction: spec.Direction,
		Streams: 1, Burst: b, Intervals: []traffic.Interval{},
		Ends: traffic.Ends{Local: traffic.End{Drops: []drops.Drop{}}, Remote: traffic.End{Drops: []drops.Drop{}}}}}
	send := func(packets uint64) (*traffic.Result, error) {
		r, err := run(ctx, burstTrain(spec, packets), shifted(progress, s.at()))
		if err != nil {
			return nil, fmt.Errorf("%s test, train of %d packets: %w", spec.Test, packets, err)
		}
		s.add(packets, r)
		return r, nil
	}
	for packets, more := s.next(); more; packets, more = s.next() {
		r, err := send(packets)
		if err == nil && lostOf(r) > 0 {
			r, err = send(packets)
		}
		if err != nil {
			return nil, err
		}
		s.judge(packets, r)
	}
	return s.whole, nil
}

// burstTrain is the test that sends one train.
func burstTrain(s traffic.Spec, packets uint64) traffic.Spec {
	s.Test, s.Bytes = traffic.UDP, int64(packets)*int64(s.PacketBytes)
	// One frame a packet: a message that the kernel splits late crosses queues as one.
	s.Batch = "mmsg"
	if runtime.GOOS != "linux" {
		s.Batch = "single"
	}
	return s
}

// burstSearch chooses the length of the next train.
type burstSearch struct {
	*traffic.BurstResult
	whole *traffic.Result
}

// next returns how many packets the next train has, and whether there is one.
func (s *burstSearch) next() (packets uint64, more bool) {
	if s.LostAtPackets == 0 {
		return min(max(1, 2*s.HeldPackets), s.LongestPackets), s.HeldPackets < s.LongestPackets
	}
	gap := s.LostAtPackets - s.HeldPackets
	return s.HeldPackets + gap/2, gap > max(1, s.LostAtPackets/burstSteps)
}

// judge narrows the search by the last result of a train of that length.
func (s *burstSearch) judge(packets uint64, r *traffic.Result) {
	if lostOf(r) == 0 {
		s.HeldPackets = packets
		return
	}
	s.LostAtPackets, s.Losses, s.Place = packets, r.Losses, worst(r.Losses)
	s.whole.Losses, s.whole.LossRatio = r.Losses, r.LossRatio
}

// add adds a train to the whole: what is constant comes from the first one, and the counters and
// the time of all add up.
func (s *burstSearch) add(packets uint64, r *traffic.Result) {
	w := s.whole
	train := traffic.BurstTrain{Packets: packets, Lost: lostOf(r), Place: worst(r.Losses)}
	if r.UDP != nil {
		train.Received = r.UDP.Received
	}
	s.Trains = append(s.Trains, train)
	if w.StartTime.IsZero() {
		w.StartTime = r.StartTime
		w.Ends.Local.Host, w.Ends.Remote.Host = r.Ends.Local.Host, r.Ends.Remote.Host
	}
	w.Method, w.MTUBytes = cmp.Or(w.Method, r.Method), cmp.Or(w.MTUBytes, r.MTUBytes)
	w.LocalAddress, w.RemoteAddress = cmp.Or(w.LocalAddress, r.LocalAddress), cmp.Or(w.RemoteAddress, r.RemoteAddress)
	for _, i := range r.Intervals {
		i.StartSeconds, i.EndSeconds = i.StartSeconds+s.at(), i.EndSeconds+s.at()
		w.Intervals = append(w.Intervals, i)
	}
	w.DurationSeconds += r.DurationSeconds
	w.WarmUpSeconds += r.WarmUpSeconds
	w.Bytes += r.Bytes
	w.VerifiedBytes += r.VerifiedBytes
	addEnd(&w.Ends.Local, r.Ends.Local)
	addEnd(&w.Ends.Remote, r.Ends.Remote)
}

// at returns when the next train begins on the time line of the whole, in seconds.
func (s *burstSearch) at() float64 { return s.whole.WarmUpSeconds + s.whole.DurationSeconds }

// lostOf returns how many packets of a train were lost.
func lostOf(r *traffic.Result) uint64 {
	if r.UDP == nil {
		return 0
	}
	return r.UDP.Lost
}

// worst returns the place of most losses; of two equal ones the first on the path.
func worst(losses []drops.Loss) string {
	var most drops.Loss
	for _, l := range losses {
		if l.Packets > most.Packets {
			most = l
		}
	}
	return most.Place
}

// frameMemory is what the kernel charges a receive buffer for a frame of up to 1500 bytes: 2048
// bytes of data with struct skb_shared_info and 256 of struct sk_buff (SKB_TRUESIZE, Linux 6).
const frameMemory = 2304

// BurstBounds adds to the result of a burst test what the queues on the way should hold, by the
// snapshots of both hosts. A queue whose length a snapshot does not show is left out.
func BurstBounds(r *traffic.Result, spec traffic.Spec, near, far *host.Snapshot) {
	if r.Burst == nil || near == nil || far == nil {
		return
	}
	from, to := near, far
	toIP, fromIP := r.RemoteAddress, r.LocalAddress
	if r.Direction == traffic.Down {
		from, to, toIP, fromIP = far, near, fromIP, toIP
	}
	b := r.Burst
	put := func(place, dev, source string, packets int64, full float64) {
		if packets > 0 {
			b.Bounds = append(b.Bounds, traffic.BurstBound{Place: place, Interface: dev, Source: source,
				Packets: uint64(packets), FullAfter: full})
		}
	}
	full := func(dev host.Interface, descriptors uint32) float64 {
		if dev.SpeedBitsPerSec <= 0 || dev.Virtual || descriptors == 0 {
			return 0
		}
		line := moderation.LineRate(unit.BitRate(dev.SpeedBitsPerSec), dev.MTUBytes)
		return moderation.RingTime(descriptors, line).Seconds()
	}
	if dev, _, ok := from.InterfaceTo(toIP); ok {
		// The other queueing disciplines have limits of their own, which a snapshot does not show.
		if dev.Qdisc == "pfifo_fast" || dev.Qdisc == "pfifo" {
			put(drops.SenderQdisc, dev.Name, "txqueuelen", int64(dev.TxQueueLen), 0)
		}
		if dev.Rings != nil {
			put(drops.SenderCard, dev.Name, "ring.tx", int64(dev.Rings.Tx.Current), full(dev, dev.Rings.Tx.Current))
		}
	}
	if dev, _, ok := to.InterfaceTo(fromIP); ok && dev.Rings != nil {
		put(drops.ReceiverRing, dev.Name, "ring.rx", int64(dev.Rings.Rx.Current), full(dev, dev.Rings.Rx.Current))
	}
	if n, ok := to.SysctlNumber("net.core.netdev_max_backlog"); ok {
		put(drops.ReceiverSoftnet, "", "net.core.netdev_max_backlog", n, 0)
	}
	memory, source := int64(2*spec.WindowBytes), "the receive buffer asked for"
	if memory == 0 {
		memory, _ = to.SysctlNumber("net.core.rmem_default") // 0: not known
		source = "net.core.rmem_default"
	}
	if frame := r.MTUBytes; frame <= 1500 && b.PacketBytes+28 <= 1500 {
		put(drops.ReceiverSocket, "", fmt.Sprintf("%s, %d bytes of memory a frame", source, frameMemory),
			memory/frameMemory, 0)
	}
}
