package iperf2

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"time"

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

// Test is one test at the client, ready to run.
type Test struct {
	senders, receivers []*engine.Worker
	conns              []*engine.Conn
	quota              *engine.Quota
	datagrams          []*datagram.Sender
	sockets            []*datagram.Socket
	header             *datagramHeader
	down               []*downStream // of datagrams that the server sends
	packetBytes        int           // of a datagram, the last one included
	done               chan struct{} // closed when all amounts were sent; nil: there are none
	stop               chan struct{} // ends the wait for done
}

// Open connects to an iperf 2 server at port. A test that the protocol cannot carry returns
// traffic.ErrBadSpec.
func Open(ctx context.Context, spec traffic.Spec, port int, m Means) (*Test, error) {
	if err := check(spec); err != nil {
		return nil, err
	}
	t := &Test{stop: make(chan struct{})}
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

// check returns an error if the protocol cannot express spec.
func check(spec traffic.Spec) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: iperf2 %s", traffic.ErrBadSpec, fmt.Sprintf(format, args...))
	}
	// Amounts of the protocol are per stream, in a word of 32 bits whose negative half holds times.
	each := spec.Bytes / int64(spec.Streams)
	switch {
	case spec.Test != traffic.Stream && spec.Test != traffic.UDP:
		return bad("has no test %s, only stream and udp", spec.Test)
	case spec.Test == traffic.UDP && spec.Direction == traffic.Bidir:
		return bad("sends datagrams in one direction")
	case spec.Test == traffic.UDP && spec.Direction == traffic.Down && spec.RateBitsPerSec+spec.RatePacketsPerSec == 0:
		return bad("needs a rate for datagrams from the server, as in --rate 100M")
	case spec.Test == traffic.UDP && spec.PacketBytes < markBytes+settingsBytes:
		return bad("needs datagrams of %d bytes and more, not %d", markBytes+settingsBytes, spec.PacketBytes)
	case spec.Bytes > 0 && spec.Direction != traffic.Up && each > math.MaxInt32:
		return bad("cannot ask a server for more than %d bytes per stream", math.MaxInt32)
	case spec.Bytes > 0 && spec.Test == traffic.Stream && each < settingsBytes:
		return bad("streams have %d bytes at least", settingsBytes)
	}
	return nil
}

// settingsOf expresses a Spec in the protocol, where amounts and rates are per stream.
func settingsOf(spec traffic.Spec, port int) settings {
	return settings{
		streams: spec.Streams, port: port, writeBytes: spec.PacketBytes,
		bytes: spec.Bytes / int64(spec.Streams), duration: spec.Duration,
		reverse: spec.Direction == traffic.Down, duplex: spec.Direction == traffic.Bidir,
		rateBitsSec: spec.RateBitsPerSec / float64(spec.Streams),
	}
}

func (t *Test) openTCP(ctx context.Context, spec traffic.Spec, port int, m Means) error {
	// The streams share the amount, so a fast one sends more than a slow one; the program gives
	// each stream the same.
	if spec.Direction != traffic.Down && spec.Bytes > 0 {
		t.quota = engine.NewQuota(spec.Bytes - int64(spec.Streams)*settingsBytes)
	}
	raw, err := dialAll(ctx, spec.Streams, port, m)
	if err != nil {
		return err
	}
	var head [settingsBytes]byte
	settingsOf(spec, port).put(head[:], false)
	for i, conn := range raw {
		if err := t.addStream(conn, head[:], spec, m); err != nil {
			closeAll(raw[i+1:])
			return err
		}
	}
	return nil
}

// addStream sends the settings on a connection, takes it over, and makes its workers.
func (t *Test) addStream(conn *net.TCPConn, head []byte, spec traffic.Spec, m Means) error {
	sends, receives := spec.Direction != traffic.Down, spec.Direction != traffic.Up
	// The settings are payload; the server waits for them before it does anything.
	if _, err := conn.Write(head); err != nil {
		_ = conn.Close() // the error of the write is the one to return
		return fmt.Errorf("send settings: %w", err)
	}
	c, err := m.Adopt(conn, sends)
	if err != nil {
		return err
	}
	t.conns = append(t.conns, c)
	if sends {
		w, err := engine.NewStreamSender(m.Out, c, engine.StreamOptions{Send: spec.SendMethod, Limit: t.quota})
		if err != nil {
			return err
		}
		// The server counts them, and the kernel acknowledges them like other data.
		w.Bytes.Add(settingsBytes)
		t.senders = append(t.senders, w)
	}
	if receives {
		w, err := engine.NewStreamReceiver(m.In, c, engine.StreamOptions{Receive: spec.ReceiveMethod, Foreign: true})
		if err != nil {
			return err
		}
		t.receivers = append(t.receivers, w)
	}
	return nil
}

// dialAll opens all connections before anything is sent on one of them: the server's clock of a
// connection starts with its first byte.
func dialAll(ctx context.Context, n, port int, m Means) (conns []*net.TCPConn, err error) {
	for i := range n {
		conn, err := m.Dial(ctx, i, port)
		if err != nil {
			closeAll(conns)
			return nil, err
		}
		conns = append(conns, conn)
	}
	return conns, nil
}

func closeAll(conns []*net.TCPConn) {
	for _, c := range conns {
		_ = c.Close() // nothing was sent that could be lost
	}
}

// datagramHeader writes the front of datagrams: a mark, and settings that never change.
type datagramHeader struct {
	front [markBytes + settingsBytes]byte
	wall  time.Duration // wall clock minus the monotonic clock of the marks
}

func newDatagramHeader(s settings, wall time.Duration) *datagramHeader {
	h := &datagramHeader{wall: wall}
	s.put(h.front[markBytes:], true)
	return h
}

// Bytes returns the length of mark and settings.
func (h *datagramHeader) Bytes() int { return markBytes + settingsBytes }

// Put writes both.
func (h *datagramHeader) Put(p []byte, m datagram.Mark) {
	copy(p, h.front[:])
	mark{id: int64(m.Sequence), sent: m.Sent + h.wall}.put(p)
}

// Parse reads the mark of a datagram. The protocol does not mark the measured window.
func (h *datagramHeader) Parse(p []byte) (datagram.Mark, bool) {
	m, ok := parseMark(p)
	if !ok || m.id == 0 {
		return datagram.Mark{}, false
	}
	out := datagram.Mark{Sequence: uint64(m.id), Sent: m.sent - h.wall, Measured: true}
	if m.id < 0 {
		out.Sequence, out.End = uint64(-m.id), true
	}
	return out, true
}

// Senders returns the workers that send.
func (t *Test) Senders() []*engine.Worker { return t.senders }

// Receivers returns the workers that receive until the server ends the stream.
func (t *Test) Receivers() []*engine.Worker { return t.receivers }

// Datagrams returns the bodies of the senders of a UDP test.
func (t *Test) Datagrams() []*datagram.Sender { return t.datagrams }

// Arrivals returns the bodies of the receivers of a UDP test.
func (t *Test) Arrivals() []*datagram.Receiver {
	var all []*datagram.Receiver
	for _, s := range t.down {
		all = append(all, s.receiver)
	}
	return all
}

// Done is closed once the kernel has the whole amount of the test; nil if a time ends the test.
func (t *Test) Done() <-chan struct{} {
	if t.quota != nil {
		return t.quota.Done()
	}
	return t.done
}

// EndSending announces the end of the data on streams. The senders must have returned.
func (t *Test) EndSending() error {
	if len(t.datagrams) > 0 || len(t.senders) == 0 {
		return nil
	}
	var failed error
	for _, c := range t.conns {
		failed = errors.Join(failed, c.CloseWrite())
	}
	return failed
}

// Close closes all connections.
func (t *Test) Close() {
	select {
	case <-t.stop:
	default:
		close(t.stop)
	}
	for _, w := range t.senders {
		w.Close()
	}
	for _, w := range t.receivers {
		w.Close()
	}
	for _, c := range t.conns {
		c.Close()
	}
	for _, s := range t.sockets {
		s.Close()
	}
}

// Over reports whether a receiver that ended with err has received all data of the server.
func Over(err error) bool { return errors.Is(err, io.EOF) }
