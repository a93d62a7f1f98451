package traffic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/host/drops"
	"github.com/linerate/linerate/internal/traffic/datagram"
	"github.com/linerate/linerate/internal/traffic/echo"
	"github.com/linerate/linerate/internal/traffic/engine"
	"github.com/linerate/linerate/internal/wire"
)

// UDP is datagrams in bulk: rate, loss, reordering, delay variation, and where each lost packet was
// dropped.
const UDP Test = "udp"

// Bounds of the payload of one datagram, in bytes.
const (
	MaxPacketBytes = 65507 // largest payload of UDP over IPv4: 65535 less 20 and 8 bytes of headers
	MinPacketBytes = 16    // the header of our own datagrams; 18 bytes fill the shortest Ethernet frame
)

type udpTest struct{}

func (udpTest) traits() traits {
	return traits{bulk: true, floods: true, takes: directions | manyStreams | amounts | bitRates | packetRates |
		packetSizes | probes | batches | fragments | busyPolls | sourcePorts}
}

func (udpTest) fill(s *Spec) {
	if s.PacketBytes == 0 {
		s.PacketBytes = 1400 // fits every path that carries IPv6 in a tunnel or two
	}
	// Datagrams have no ramp to wait for. Without a warm-up the first packet of the test is the
	// first of the window, and the counters of both hosts hold no others.
	s.WarmUp = max(s.WarmUp, 0)
}

func (udpTest) check(s Spec) string {
	if s.PacketBytes < MinPacketBytes || s.PacketBytes > MaxPacketBytes {
		return fmt.Sprintf("datagrams of %d bytes are not within %d to %d", s.PacketBytes, MinPacketBytes,
			MaxPacketBytes)
	}
	return ""
}

func (t udpTest) near(ctx context.Context, n *nearEnd) (cast, error) {
	to, token, ok := n.echoes(ctx)
	if !ok {
		return cast{}, fmt.Errorf("open streams over udp: %w: the far end named no address", ErrProtocol)
	}
	first := n.accepted.FirstNumbers
	if err := checkNumbers(n.spec, first); err != nil {
		return cast{}, err
	}
	sockets, err := sayHello(ctx, to, token, t.sockets(n.spec, true))
	if err != nil {
		return cast{}, err
	}
	n.addresses.note(net.UDPAddrFromAddrPort(sockets[0].LocalAddr()), net.UDPAddrFromAddrPort(sockets[0].RemoteAddr()))
	c, err := t.cast(n.spec, n.phase, sockets, first, true)
	if err != nil {
		return cast{}, err
	}
	pathMTU := sockets[0].PathMTU() // in bytes, as the kernel believes; 0: not known
	c.report = func(r *Result) error {
		r.Method, r.MTUBytes = "udp, "+c.workers[0].Method, pathMTU
		return nil
	}
	return c, nil
}

func (t udpTest) far(ctx context.Context, f *farEnd) (cast, error) {
	admitted, err := f.admitEchoes()
	if err != nil {
		return cast{}, err
	}
	if !admitted {
		return cast{}, fmt.Errorf("%w: this host has no udp port for tests", errRefusing)
	}
	if f.numbered {
		f.offer.FirstNumbers = newNumbers(f.spec)
	}
	if err := f.accept(); err != nil {
		return cast{}, err
	}
	sockets, quiet, err := hearHellos(ctx, f.session, f.Echo, echo.Token(f.offer.EchoToken), t.sockets(f.spec, false))
	if err != nil {
		return cast{}, err
	}
	c, err := t.cast(f.spec, f.phase, sockets, f.offer.FirstNumbers, false)
	if err != nil {
		quiet()
		return cast{}, err
	}
	c.begun = quiet
	return c, nil
}

// sockets returns the options of every socket of one end.
func (udpTest) sockets(s Spec, near bool) []datagram.SocketOptions {
	all := make([]datagram.SocketOptions, s.channels())
	for i := range all {
		all[i] = datagram.SocketOptions{WindowBytes: s.WindowBytes, TOS: s.TOS, DontFragment: s.DontFragment,
			BusyPoll: s.BusyPoll}
		if near {
			all[i].From = s.from()
		}
		if near && s.SourcePort != 0 {
			all[i].LocalPort = s.SourcePort + i
		}
	}
	return all
}

// newNumbers chooses the number of the first datagram of each socket. Without it a receiver would
// have to believe whatever datagram comes first.
func newNumbers(s Spec) []uint64 {
	numbers := make([]uint64, s.channels())
	for i := range numbers {
		numbers[i] = datagram.RandomNumber()
	}
	return numbers
}

// checkNumbers refuses impossible numbers of a far end; an older one names none.
func checkNumbers(s Spec, numbers []uint64) error {
	if numbers != nil && len(numbers) != s.channels() {
		return fmt.Errorf("%w: %d first numbers for %d sockets", ErrProtocol, len(numbers), s.channels())
	}
	for _, n := range numbers {
		if n > datagram.MaxFirst {
			return fmt.Errorf("%w: %d is no number of a first datagram", ErrProtocol, n)
		}
	}
	return nil
}

// cast makes the workers of one end around its sockets, which it takes over. First has the number
// of the first datagram of each; nil: the other end knows none.
func (t udpTest) cast(s Spec, p *engine.Phase, sockets []*datagram.Socket, first []uint64, near bool) (cast, error) {
	workers, ports := make([]*engine.Worker, len(sockets)), make([]datagram.Port, len(sockets))
	for i, socket := range sockets {
		var err error
		if s.nearSends(i) == near {
			o := t.sendOptions(s, i)
			if first != nil {
				o.First = first[i]
			}
			workers[i], ports[i].Sender, err = datagram.NewSender(p, socket, o)
		} else {
			o := datagram.ReceiveOptions{Bytes: s.PacketBytes, Batch: datagram.Batch(s.Batch), Verify: true}
			if first != nil {
				o.First = &first[i]
			}
			workers[i], ports[i].Receiver, err = datagram.NewReceiver(p, socket, o)
		}
		if err != nil {
			closeSockets(sockets)
			if errors.Is(err, datagram.ErrBadOptions) {
				err = fmt.Errorf("%w: %w", ErrBadSpec, err)
			}
			return cast{}, err
		}
	}
	exchange := datagram.NewExchange(workers, ports)
	return cast{
		workers: workers, ending: &datagramEnding{exchange: exchange, amount: s.Bytes > 0}, missing: exchange.Missing,
		amount: s.Bytes > 0, held: s.Bytes > 0 || s.WarmUp == 0,
	}, nil
}

// sendOptions shares rate and amount among the streams of a direction; the first streams send what
// does not divide.
func (udpTest) sendOptions(s Spec, index int) datagram.SendOptions {
	n := int64(s.Streams)
	o := datagram.SendOptions{
		Bytes: s.PacketBytes, Batch: datagram.Batch(s.Batch),
		BitRate: s.RateBitsPerSec / float64(n), PacketRate: s.RatePacketsPerSec / float64(n),
	}
	if s.Bytes > 0 {
		o.PayloadBytes = s.Bytes / n
		if int64(index)%n < s.Bytes%n {
			o.PayloadBytes++
		}
	}
	return o
}

func closeSockets(sockets []*datagram.Socket) {
	for _, s := range sockets {
		if s != nil {
			s.Close()
		}
	}
}

// drainStep is how often an end looks whether a udp test is over.
const drainStep = 10 * time.Millisecond

// datagramEnding waits for the last datagrams of the window. The senders report how many they sent,
// because what was lost never arrives.
type datagramEnding struct {
	exchange *datagram.Exchange
	amount   bool          // the senders end the window, not the time
	reported bool          // the other end knows what was sent here
	next     time.Duration // look at an amount
}

func (e *datagramEnding) due() time.Duration {
	if e.amount {
		return e.next
	}
	return never
}

func (e *datagramEnding) over(c *conductor, now time.Duration) bool {
	if !e.amount {
		return false
	}
	e.next = now + longestLook/4
	return e.reportSent(c) && (!e.exchange.Receives() || e.exchange.Heard())
}

func (e *datagramEnding) drained(c *conductor, now time.Duration) bool {
	return e.reportSent(c) && e.exchange.Drained(now)
}

// reportSent reports to the other end what was sent, once, as soon as all of it is sent. It returns
// whether it has.
func (e *datagramEnding) reportSent(c *conductor) bool {
	if !e.reported && e.exchange.Idle() {
		e.reported = true
		if e.exchange.Sends() {
			c.session.post(msgSent, sentBody{e.exchange.Tallies()})
		}
	}
	return e.reported
}

func (e *datagramEnding) handle(c *conductor, m wire.Message) (taken bool, err error) {
	if m.Type != msgSent || c.phase.Is() < engine.Measured {
		return false, nil
	}
	var b sentBody
	if err := decode(m, &b); err != nil {
		return true, err
	}
	if err := e.exchange.Hear(b.Streams); err != nil {
		return true, fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	return true, nil
}

func (e *datagramEnding) account(_ *conductor, b *resultBody) {
	b.UDPSent, b.UDPReceived = accountOf(e.exchange)
}

func (udpTest) interval(i *Interval, _ Direction, own, far part) {
	i.ThroughputBitsPerSec = own.bitRate() + far.bitRate()
	i.LostPacketsTotal = uint64(max(0, own.Missing+far.Missing))
	i.PacketsPerSec = perSecond(own.Packets, own.End-own.Start) + perSecond(far.Packets, far.End-far.Start)
}

func (t udpTest) result(r *Result, o outcome) (packets uint64) {
	t.datagrams(r, o.spec, o.near, o.far)
	r.VerifiedBytes = o.near.Verified + o.far.Verified
	return r.UDP.Received
}

// udpSent is what the senders of one end did in the window, all streams together.
type udpSent struct {
	Packets      int64            `json:"packets"`
	Bytes        int64            `json:"bytes"`
	SocketErrors int64            `json:"socket_errors,omitempty"` // of Packets: the kernel took and dropped them
	Gaps         *stats.Latencies `json:"gaps,omitempty"`          // of the stream whose gaps varied most
	Pacing       string           `json:"pacing,omitempty"`
	Batch        string           `json:"batch,omitempty"`
}

// udpReceived is what the receivers of one end counted, all streams together.
type udpReceived struct {
	DatagramCounts
	Bytes       int64   `json:"bytes"`
	Seconds     float64 `json:"seconds"` // from the first to the last arrival
	SocketDrops int64   `json:"socket_drops,omitempty"`
	Implausible int64   `json:"implausible,omitempty"` // datagrams that the sender cannot have sent
	Batch       string  `json:"batch,omitempty"`
}

// accountOf returns the totals of x as they travel; nil where this end does not send, or not
// receive.
func accountOf(x *datagram.Exchange) (*udpSent, *udpReceived) {
	s, r := x.Totals()
	var sent *udpSent
	if s != nil {
		sent = &udpSent{
			Packets: s.Packets, Bytes: s.Bytes, SocketErrors: s.SocketErrors, Gaps: s.Gaps.OrNil(),
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
			JitterSeconds: r.JitterSeconds, DelayVariation: r.DelayVariation.OrNil(),
		},
		Bytes: r.Bytes, Seconds: r.Time.Seconds(), SocketDrops: r.SocketDrops, Implausible: r.Implausible,
		Batch: string(r.Batch),
	}
}

// datagrams fills in what happened to the datagrams of both directions.
func (udpTest) datagrams(r *Result, spec Spec, near, far resultBody) {
	// Not more than the receiving end's time: what queues on the path held back arrived after the
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
	for _, u := range []*udpReceived{near.UDPReceived, far.UDPReceived} {
		if u != nil && u.Implausible > 0 {
			r.Warnings = append(r.Warnings, fmt.Sprintf("%d datagrams arrived that the sender did not send: a fault on the "+
				"path, or forged ones; the counts may be wrong", u.Implausible))
		}
	}
	r.Losses = drops.Merge(
		explain(up, near, far),
		explain(down, far, near),
	)
	var sent []paced
	for _, b := range []resultBody{near, far} {
		if b.UDPSent == nil {
			continue
		}
		sent = append(sent, paced{b.UDPSent.Bytes, b.Seconds, b.UDPSent.Pacing, b.UDPSent.Gaps})
		r.UDP.Batch = cmp.Or(r.UDP.Batch, b.UDPSent.Batch)
		if b.UDPSent.Bytes < spec.Bytes {
			r.Warnings = append(r.Warnings, fmt.Sprintf("only %d of %d bytes were sent within %v", b.UDPSent.Bytes,
				spec.Bytes, spec.Duration))
		}
	}
	r.pace(spec.BitRate(), sent)
}

// counts returns those of one direction; all zero where nothing was received.
func (u *udpReceived) counts() DatagramCounts {
	if u == nil {
		return DatagramCounts{}
	}
	return u.DatagramCounts
}

// with adds the counts of two directions; delays are those of the worse one.
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

// known returns a count that the receiver reported.
func known(n int64) *uint64 {
	u := uint64(n)
	return &u
}

// sumKnown returns nil if one of the counts is not known: the other alone is no total.
func sumKnown(a, b *uint64) *uint64 {
	if a == nil || b == nil {
		return nil
	}
	sum := *a + *b
	return &sum
}

// explain returns where the packets of one direction were lost.
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
