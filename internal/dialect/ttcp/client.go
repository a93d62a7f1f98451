package ttcp

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/datagram"
	"github.com/linerate/linerate/internal/traffic/engine"
)

// Means are the functions with which a client opens its connections.
type Means struct {
	Out, In *engine.Phase // phases of the workers that send and that receive
	// Dial opens data connection index over TCP; Adopt wraps it for workers.
	Dial  func(ctx context.Context, index, port int) (*net.TCPConn, error)
	Adopt func(conn *net.TCPConn, sends bool) (*engine.Conn, error)
	// Socket opens the UDP socket of a stream.
	Socket func(ctx context.Context, index, port int) (*datagram.Socket, error)
}

// Test is one test at the sender, ready to run.
type Test struct {
	senders   []*engine.Worker
	conn      *engine.Conn
	quota     *engine.Quota
	socket    *datagram.Socket
	datagrams []*datagram.Sender

	packetBytes int
}

// Open connects to a receiver at port. A test that needs a protocol returns traffic.ErrBadSpec.
func Open(ctx context.Context, spec traffic.Spec, port int, m Means) (*Test, error) {
	if err := check(spec); err != nil {
		return nil, err
	}
	t := &Test{}
	var err error
	if spec.Test == traffic.UDP {
		err = t.openUDP(ctx, spec, port, m)
	} else {
		err = t.openTCP(ctx, spec, port, m)
	}
	if err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// check returns an error if spec needs more than a receiver without a protocol.
func check(spec traffic.Spec) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: ttcp %s", traffic.ErrBadSpec, fmt.Sprintf(format, args...))
	}
	switch {
	case spec.Test != traffic.Stream && spec.Test != traffic.UDP:
		return bad("has no test %s, only stream and udp", spec.Test)
	case spec.Direction != traffic.Up:
		return bad("receivers only receive, so the direction is up")
	case spec.Streams != 1:
		return bad("receivers take one stream, not %d", spec.Streams)
	case spec.Test == traffic.UDP && spec.PacketBytes <= edgeBytes:
		return bad("takes datagrams of %d bytes and less for the end", edgeBytes)
	}
	return nil
}

func (t *Test) openTCP(ctx context.Context, spec traffic.Spec, port int, m Means) error {
	if spec.Bytes > 0 {
		t.quota = engine.NewQuota(spec.Bytes)
	}
	conn, err := m.Dial(ctx, 0, port)
	if err != nil {
		return err
	}
	if t.conn, err = m.Adopt(conn, true); err != nil {
		return err
	}
	w, err := engine.NewStreamSender(m.Out, t.conn, engine.StreamOptions{Send: spec.SendMethod, Limit: t.quota})
	if err != nil {
		return err
	}
	t.senders = []*engine.Worker{w}
	return nil
}

// bare is an empty header: a datagram is all payload. Its length is that of the shortest datagram
// that is no edge.
type bare struct{}

// Bytes returns the length of the shortest datagram.
func (bare) Bytes() int { return edgeBytes + 1 }

// Put does nothing.
func (bare) Put([]byte, datagram.Mark) {}

// Parse reports whether a datagram is data and not an edge.
func (bare) Parse(p []byte) (datagram.Mark, bool) {
	return datagram.Mark{Measured: true, End: len(p) <= edgeBytes}, true
}

func (t *Test) openUDP(ctx context.Context, spec traffic.Spec, port int, m Means) error {
	s, err := m.Socket(ctx, 0, port)
	if err != nil {
		return err
	}
	t.socket, t.packetBytes = s, spec.PacketBytes
	if err := t.edge(1); err != nil {
		return err
	}
	o := datagram.SendOptions{
		Bytes: spec.PacketBytes, BitRate: spec.RateBitsPerSec, PacketRate: spec.RatePacketsPerSec,
		Batch: datagram.Batch(spec.Batch), Header: bare{}, PayloadBytes: spec.Bytes,
	}
	w, sender, err := datagram.NewSender(m.Out, s, o)
	if errors.Is(err, datagram.ErrBadOptions) {
		return fmt.Errorf("%w: %w", traffic.ErrBadSpec, err)
	}
	if err != nil {
		return err
	}
	t.senders, t.datagrams = []*engine.Worker{w}, []*datagram.Sender{sender}
	return nil
}

// edge marks the beginning or the end, several times in case some are lost.
func (t *Test) edge(times int) error {
	var failed error
	for range times {
		// The last attempt decides: the network may report the error of an earlier datagram.
		failed = t.socket.Send(make([]byte, edgeBytes))
	}
	return failed
}

// Senders returns the one worker that sends.
func (t *Test) Senders() []*engine.Worker { return t.senders }

// Receivers returns nil.
func (t *Test) Receivers() []*engine.Worker { return nil }

// Datagrams returns the body of the sender of a UDP test.
func (t *Test) Datagrams() []*datagram.Sender { return t.datagrams }

// Arrivals returns nil: this client receives no datagrams.
func (t *Test) Arrivals() []*datagram.Receiver { return nil }

// Done is closed once the kernel has the whole amount of the test; nil if a time ends the test.
func (t *Test) Done() <-chan struct{} {
	switch {
	case t.quota != nil:
		return t.quota.Done()
	case len(t.datagrams) > 0:
		// Without an amount it is closed when the time is over, which ends the test anyway.
		return t.datagrams[0].Idle()
	}
	return nil
}

// endTimes is how often ttcp marks the end.
const endTimes = 5

// EndSending marks the end of the data. The sender must have returned.
func (t *Test) EndSending() error {
	if t.socket != nil {
		return t.edge(endTimes)
	}
	return t.conn.CloseWrite()
}

// Finish adds a warning about what is unknown: a receiver reports nothing, and over UDP neither do
// the kernels.
func (t *Test) Finish(_ context.Context, r *traffic.Result) error {
	for _, d := range t.datagrams {
		sent := d.Sent()
		r.Warnings = append(r.Warnings, fmt.Sprintf(
			"%d datagrams of %d bytes were sent; a ttcp receiver does not report what arrived", sent.AllPackets,
			t.packetBytes,
		))
	}
	return nil
}

// Close closes the connection.
func (t *Test) Close() {
	for _, w := range t.senders {
		w.Close()
	}
	if t.conn != nil {
		t.conn.Close()
	}
	if t.socket != nil {
		t.socket.Close()
	}
}
