package nuttcp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"time"

	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/datagram"
	"github.com/linerate/linerate/internal/traffic/engine"
	"github.com/linerate/linerate/internal/traffic/service"
)

// sendUDP makes the sender and says the beginning.
func (t *Test) sendUDP(ctx context.Context, spec traffic.Spec, m Means) error {
	s, err := m.Socket(ctx, 0, t.p.port)
	if err != nil {
		return err
	}
	t.socket = s
	// Two, so that one may be lost. The clock of the server starts with the later one.
	for _, mark := range []string{"BOD0", "BOD1"} {
		// The server says OK first and listens then.
		gap := listenDelay
		if mark == "BOD1" {
			gap = beginGap
		}
		if err := service.Rest(ctx, gap); err != nil {
			return err
		}
		// An error may be the network's word on the mark before; then this one was not sent, and
		// the next attempt is the one that tells.
		if s.Send([]byte(mark)) != nil {
			if err := s.Send([]byte(mark)); err != nil {
				return fmt.Errorf("%w: %w", traffic.ErrPeerGone, err)
			}
		}
	}
	w, sender, err := datagram.NewSender(m.Out, s, datagram.SendOptions{
		Bytes: t.p.blockBytes, BitRate: spec.RateBitsPerSec, PacketRate: spec.RatePacketsPerSec,
		Batch:  datagram.Batch(spec.Batch),
		Header: headerOf(t.p), PayloadBytes: t.p.amount(),
	})
	if errors.Is(err, datagram.ErrBadOptions) {
		return fmt.Errorf("%w: %w", traffic.ErrBadSpec, err)
	}
	if err != nil {
		return err
	}
	t.senders, t.sender = []*engine.Worker{w}, sender
	return nil
}

// endUDP says the end.
func (t *Test) endUDP() error {
	var failed error
	for i := range endMarks {
		// The last attempt is the one that tells: an error may be of an earlier datagram, reported
		// by the network.
		failed = t.socket.Send([]byte{'E', 'O', 'D', '0' + byte(i)})
		// Not all at once: what drops the first, a queue that is full of data, would drop the
		// others as well.
		time.Sleep(endGap / endMarks)
	}
	return failed
}

// receiveUDP waits for the server's first mark and makes the receiver of what follows.
func (t *Test) receiveUDP(ctx context.Context, spec traffic.Spec, m Means) error {
	to, ok := t.control.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return errors.New("control connection without an address")
	}
	local, ok := t.control.LocalAddr().(*net.TCPAddr)
	if !ok {
		return errors.New("control connection without an address")
	}
	// On the address of the control connection, because that is where the server sends to.
	here := netip.AddrPortFrom(local.AddrPort().Addr().Unmap(), uint16(t.p.port))
	l, err := datagram.Listen(ctx, "udp", here.String())
	if err != nil {
		return fmt.Errorf("listen for data: %w", err)
	}
	defer l.Close()
	stop := context.AfterFunc(ctx, func() { _ = l.SetReadDeadline(time.Unix(1, 0)) }) // only a closed socket refuses
	defer stop()
	_ = l.SetReadDeadline(time.Now().Add(askPatience)) // as above
	var from netip.AddrPort
	// A mark has four bytes. What is longer is cut, which tells as well that it is none.
	for p := make([]byte, 64); ; {
		n, a, err := l.ReadFromUDPAddrPort(p)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return fmt.Errorf("%w: no datagram of nuttcp: %w", traffic.ErrPeerGone, err)
		}
		from = netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
		// Not from a port that could be known before: the server sends from any. Its address is
		// what the control connection has proved.
		if from.Addr() == to.AddrPort().Addr().Unmap() && begins(p[:n]) {
			break
		}
	}
	// The second mark and the data come a quarter of a second later, to the socket that is
	// connected by then.
	o := datagram.SocketOptions{WindowBytes: spec.WindowBytes, BusyPoll: spec.BusyPoll}
	if o.WindowBytes == 0 {
		o.WindowBytes = service.ReceiveBufferBytes // this end's buffer is no part of what is measured
	}
	s, err := datagram.Connected(here, from, o)
	if err != nil {
		return err
	}
	t.socket = s
	w, receiver, err := datagram.NewReceiver(m.In, s, datagram.ReceiveOptions{
		Bytes: t.p.blockBytes, Batch: datagram.Batch(spec.Batch), Header: headerOf(t.p),
	})
	if err != nil {
		return err
	}
	t.receivers, t.receiver = []*engine.Worker{w}, receiver
	// The first mark of the end is the end, whatever the clock of this side says: the server stops
	// when its own time is over.
	go func() {
		select {
		case <-receiver.Ended():
			m.In.Set(engine.Stopped)
		case <-w.Done():
		}
	}()
	return nil
}

// finishUDP compares what both ends counted.
func (t *Test) finishUDP(f far, r *traffic.Result) {
	u := &traffic.Datagrams{}
	r.UDP = u
	// What only the far end knows is a number of MB with four digits.
	theirs := uint64(math.Round(float64(f.bytes) / float64(t.p.blockBytes)))
	exact := t.p.blockBytes > 2*reportError
	if t.sender != nil {
		sent := t.sender.Sent()
		u.Sent = uint64(sent.AllPackets)
		// The figure is rounded, and rounded up it would tell of datagrams that nobody sent.
		u.Received = min(theirs, u.Sent)
		r.Bytes = int64(u.Received) * int64(t.p.blockBytes)
		r.DurationSeconds = f.seconds
	} else {
		got := t.receiver.Received()
		duplicates, reordered := uint64(got.Duplicates), uint64(got.Reordered)
		u.Received, u.Duplicates, u.Reordered = uint64(got.UniquePackets), &duplicates, &reordered
		// As above, the other way round.
		u.Sent = max(theirs, u.Received)
		if !exact {
			// The counts in the datagrams know better, but for what was lost at the very end.
			u.Sent = max(u.Received, got.HighestSequence+1)
		}
		exact = true
		u.Batch = string(got.Batch)
		r.Bytes = got.Bytes
		r.DurationSeconds = (got.LastAt - got.FirstAt).Seconds()
	}
	// Cannot wrap: the two are held to that above.
	u.Lost = u.Sent - u.Received
	if !exact {
		r.Warnings = append(r.Warnings, fmt.Sprintf(
			"the server reports 0.0001 MB at the finest: with datagrams of %d bytes the loss is known to %d",
			t.p.blockBytes, reportError/t.p.blockBytes+1,
		))
	}
}
