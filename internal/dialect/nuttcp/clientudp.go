package nuttcp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/linerate/linerate/internal/kernel/incoming"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/datagram"
	"github.com/linerate/linerate/internal/traffic/engine"
	"github.com/linerate/linerate/internal/traffic/service"
)

// sendUDP creates the sender and marks the beginning.
func (t *Test) sendUDP(ctx context.Context, spec traffic.Spec, m Means) error {
	s, err := m.Socket(ctx, 0, t.p.port)
	if err != nil {
		return err
	}
	t.socket = s
	// Two, so that one may be lost. The server's clock starts with the later one.
	for _, mark := range []string{"BOD0", "BOD1"} {
		// The server says OK first and listens afterwards.
		gap := listenDelay
		if mark == "BOD1" {
			gap = beginGap
		}
		if err := service.Rest(ctx, gap); err != nil {
			return err
		}
		// The error may belong to the previous mark; then this one was not sent, and the next
		// attempt decides.
		if s.Send([]byte(mark)) != nil {
			if err := s.Send([]byte(mark)); err != nil {
				return fmt.Errorf("%w: %w", traffic.ErrPeerGone, err)
			}
		}
	}
	w, sender, err := datagram.NewSender(m.Out, s, datagram.SendOptions{
		Bytes: t.p.blockBytes, BitRate: spec.RateBitsPerSec, PacketRate: spec.RatePacketsPerSec,
		Batch: datagram.Batch(spec.Batch), Every: datagram.BurstTime,
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

// endUDP marks the end. A server that has read the first mark may close its port, which refuses the
// later ones, so one mark that was sent suffices.
func (t *Test) endUDP() error {
	var failed error
	sent := false
	for i := range endMarks {
		if err := t.socket.Send([]byte{'E', 'O', 'D', '0' + byte(i)}); err != nil {
			failed = err
		} else {
			sent = true
		}
		// Not all at once: a queue full of data that drops the first mark would drop the others
		// too.
		time.Sleep(endGap / endMarks)
	}
	if sent {
		return nil
	}
	return failed
}

// receiveUDP waits for the server's first mark and creates the receiver of the data.
func (t *Test) receiveUDP(ctx context.Context, spec traffic.Spec, m Means) error {
	to, ok := t.control.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return errors.New("control connection without an address")
	}
	local, ok := t.control.LocalAddr().(*net.TCPAddr)
	if !ok {
		return errors.New("control connection without an address")
	}
	// On the address of the control connection, because the server sends to it.
	here := netip.AddrPortFrom(local.AddrPort().Addr().Unmap(), uint16(t.p.port))
	l, err := datagram.Listen(ctx, "udp", here.String())
	if err != nil {
		return fmt.Errorf("listen for data: %w", err)
	}
	defer l.Close()
	stop := context.AfterFunc(ctx, func() { _ = l.SetReadDeadline(time.Unix(1, 0)) }) // fails only on a closed socket
	defer stop()
	_ = l.SetReadDeadline(time.Now().Add(askPatience)) // as above
	var from netip.AddrPort
	// A mark has four bytes. A longer datagram is truncated, which still shows that it is no mark.
	var retry incoming.Retry
	for p := make([]byte, 64); ; {
		n, a, err := l.ReadFromUDPAddrPort(p)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) || retry.After(ctx, err) != nil {
				return fmt.Errorf("%w: no datagram of nuttcp: %w", traffic.ErrPeerGone, err)
			}
			continue
		}
		from = netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
		// The server sends from an unknown port. The control connection has proved its address.
		if from.Addr() == to.AddrPort().Addr().Unmap() && begins(p[:n]) {
			break
		}
	}
	// The second mark and the data come a quarter of a second later, to the socket that is
	// connected by then.
	o := datagram.SocketOptions{WindowBytes: spec.WindowBytes, BusyPoll: spec.BusyPoll}
	if o.WindowBytes == 0 {
		o.WindowBytes = service.ReceiveBufferBytes // this end's buffer is not what is measured
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
	// The first end mark ends the test, whatever this end's clock shows: the server stops by its
	// own clock.
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
	// The far end's count is derived from MB with four digits.
	theirs := uint64(math.Round(float64(f.bytes) / float64(t.p.blockBytes)))
	exact := t.p.blockBytes > 2*reportError
	if t.sender != nil {
		sent := t.sender.Sent()
		u.Sent = uint64(sent.AllPackets)
		// The figure is rounded, and could otherwise exceed the datagrams that were sent.
		u.Received = min(theirs, u.Sent)
		r.Bytes = int64(u.Received) * int64(t.p.blockBytes)
		r.DurationSeconds = f.seconds
	} else {
		got := t.receiver.Received()
		duplicates, reordered := uint64(got.Duplicates), uint64(got.Reordered)
		u.Received, u.Duplicates, u.Reordered = uint64(got.UniquePackets), &duplicates, &reordered
		// Like above, in the other direction.
		u.Sent = max(theirs, u.Received)
		if !exact {
			// The counts in the datagrams are exact, except for losses at the very end.
			u.Sent = max(u.Received, got.HighestSequence+1)
		}
		exact = true
		u.Batch = string(got.Batch)
		r.Bytes = got.Bytes
		r.DurationSeconds = (got.LastAt - got.FirstAt).Seconds()
	}
	// Cannot underflow: the counts are clamped above.
	u.Lost = u.Sent - u.Received
	if !exact {
		r.Warnings = append(r.Warnings, fmt.Sprintf(
			"the server reports 0.0001 MB at the finest: with datagrams of %d bytes the loss is known to %d",
			t.p.blockBytes, reportError/t.p.blockBytes+1,
		))
	}
}
