package nuttcp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/datagram"
	"github.com/linerate/linerate/internal/traffic/engine"
	"github.com/linerate/linerate/internal/traffic/service"
	"github.com/linerate/linerate/internal/wire"
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
	p       params
	control *net.TCPConn
	in      *bufio.Reader // of control

	senders, receivers []*engine.Worker
	conns              []*engine.Conn // of one sender, or of receivers
	steps              *lockstep      // of several senders
	quota              *engine.Quota
	socket             *datagram.Socket
	sender             *datagram.Sender
	receiver           *datagram.Receiver
}

// Timeouts of a client.
const (
	askPatience    = 10 * time.Second // for each step before the data
	reportPatience = 20 * time.Second // the program's server waits up to 2.5 s for the marks of the end
	maxReport      = 1 << 20          // a line of 100 bytes per interval, of a day in steps of ten seconds
	// The program's server says OK a moment before it listens, so the client repeats a refused
	// connection for this long, at this interval.
	listenPatience = 2 * time.Second
	listenDelay    = 20 * time.Millisecond
)

// Open connects to a nuttcp server at target, its control port; data use dataPort and the following
// ports. A test that the protocol cannot carry returns traffic.ErrBadSpec.
func Open(ctx context.Context, spec traffic.Spec, target string, dataPort int, m Means) (*Test, error) {
	p, err := paramsOf(spec, dataPort)
	if err != nil {
		return nil, err
	}
	t := &Test{p: p}
	// The control connection comes first in either direction: after its OK the server listens for
	// data, or sends them.
	if err := t.begin(ctx, target); err != nil {
		t.Close()
		return nil, err
	}
	switch {
	case p.udp && p.transmit:
		err = t.sendUDP(ctx, spec, m)
	case p.udp:
		err = t.receiveUDP(ctx, spec, m)
	case p.transmit:
		err = t.sendTCP(ctx, spec, m)
	default:
		err = t.receiveTCP(ctx, spec, m)
	}
	if err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// blockBytes is the length of a write of a TCP test, the program's default.
const blockBytes = 64 << 10

// paramsOf expresses a Spec in the protocol, or returns an error.
func paramsOf(spec traffic.Spec, dataPort int) (params, error) {
	bad := func(format string, args ...any) (params, error) {
		return params{}, fmt.Errorf("%w: nuttcp %s", traffic.ErrBadSpec, fmt.Sprintf(format, args...))
	}
	p := params{
		blockBytes: blockBytes, blocks: unlimitedBlock, windowBytes: spec.WindowBytes, streams: spec.Streams,
		rateKbit: unlimitedRate, port: dataPort,
		transmit: spec.Direction == traffic.Up, seconds: spec.Duration.Seconds(), udp: spec.Test == traffic.UDP,
		// No connection comes in from outside: the receiver connects if it is this client.
		reverse: spec.Direction == traffic.Down && spec.Test == traffic.Stream,
		format:  formatDefault, mssBytes: spec.MSSBytes, tos: spec.TOS, noDelay: spec.NoDelay != nil && *spec.NoDelay,
	}
	// The program has one rate and one amount for all streams together, like a Spec.
	if p.udp {
		p.blockBytes = spec.PacketBytes
		// Intervals make datagrams carry their counts. The program ends a test whose first interval
		// has no data, so the interval is long.
		p.interval = max(1, spec.Duration.Seconds())
	}
	switch {
	case spec.Test != traffic.Stream && spec.Test != traffic.UDP:
		return bad("has no test %s, only stream and udp", spec.Test)
	case spec.Direction == traffic.Bidir:
		return bad("moves data in one direction at a time")
	case spec.Streams > maxStreams || p.udp && spec.Streams > 1:
		return bad("takes %d connections of TCP at most, and one stream of UDP, not %d", maxStreams, spec.Streams)
	case p.udp && p.blockBytes < countAt+countBytes:
		return bad("needs datagrams of %d bytes and more to count them, not %d", countAt+countBytes, p.blockBytes)
	}
	// What this end sends may end within a block: the server counts to the end of the stream,
	// whatever nbuf is.
	if spec.Bytes > 0 {
		p.blocks = spec.Bytes / int64(p.blockBytes)
		switch {
		case spec.Bytes%int64(p.blockBytes) != 0 && !p.transmit:
			return bad("servers send whole blocks: the amount must be a multiple of %d bytes", p.blockBytes)
		case p.blocks >= unlimitedBlock:
			return bad("cannot count %d blocks", p.blocks)
		}
		p.blocks = max(1, p.blocks)
		// A test of an amount has no time, because the first bound to be reached would end it.
		p.seconds = 0
	}
	if r := max(spec.RateBitsPerSec, spec.RatePacketsPerSec*float64(p.blockBytes)*8); r > 0 {
		p.rateKbit = int64(math.Round(r / 1000))
		if p.rateKbit < 1 || p.rateKbit >= unlimitedRate {
			return bad("rates are whole kbit/s, which %g bit/s is not", r)
		}
	}
	return p, p.check()
}

// begin connects to the control port, exchanges greetings and sends the parameters.
func (t *Test) begin(ctx context.Context, target string) error {
	d := net.Dialer{Timeout: askPatience}
	conn, err := d.DialContext(ctx, "tcp", target)
	if err != nil {
		return fmt.Errorf("connect to nuttcp: %w", err)
	}
	t.control = conn.(*net.TCPConn)
	// ReadSlice below returns no longer line, so another kind of server cannot make the buffer
	// grow.
	t.in = bufio.NewReaderSize(t.control, 4096)
	// fails only on a closed connection
	stop := context.AfterFunc(ctx, func() { _ = t.control.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	_ = t.control.SetDeadline(time.Now().Add(askPatience)) // as above
	if _, err := io.WriteString(t.control, hello); err != nil {
		return fmt.Errorf("%w: greet nuttcp: %w", traffic.ErrPeerGone, err)
	}
	line, err := t.in.ReadSlice('\n')
	if !strings.HasPrefix(string(line), greets) {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case len(line) > 0:
			return fmt.Errorf("%w: %s speaks %s, not nuttcp", traffic.ErrProtocol, target,
				wire.Dialect(line[:min(len(line), 64)]))
		case errors.Is(err, os.ErrDeadlineExceeded):
			return fmt.Errorf("%w: %s does not answer a nuttcp client", traffic.ErrPeerGone, target)
		}
		return fmt.Errorf("%w: %s closes the connection of a nuttcp client: %w", traffic.ErrPeerGone, target, err)
	}
	if _, err := io.WriteString(t.control, t.p.line()); err != nil {
		return fmt.Errorf("%w: ask nuttcp: %w", traffic.ErrPeerGone, err)
	}
	line, err = t.in.ReadSlice('\n')
	switch {
	case strings.HasPrefix(string(line), "OK"):
		return nil
	case strings.HasPrefix(string(line), "KO"):
		var f far
		// The reason and the second KO, with room for versions that send more.
		for range 4 {
			line, err := t.in.ReadSlice('\n')
			if err != nil {
				break
			}
			f.read(strings.TrimSpace(string(line)))
		}
		if f.refusal == "" {
			f.refusal = "the server gave no reason"
		}
		return fmt.Errorf("%w: nuttcp: %s", traffic.ErrRefused, f.refusal)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("%w: nuttcp did not accept the test: %w", traffic.ErrPeerGone, err)
	}
	return fmt.Errorf("%w: nuttcp says %q", traffic.ErrProtocol, clip(string(line)))
}

// dial opens a data connection. The program's server says OK first and listens afterwards.
func (t *Test) dial(ctx context.Context, index int, m Means) (*net.TCPConn, error) {
	for until := time.Now().Add(listenPatience); ; {
		conn, err := m.Dial(ctx, index, t.p.port+index)
		if !errors.Is(err, syscall.ECONNREFUSED) || time.Now().After(until) {
			return conn, err
		}
		if err := service.Rest(ctx, listenDelay); err != nil {
			return nil, err
		}
	}
}

func (t *Test) sendTCP(ctx context.Context, spec traffic.Spec, m Means) error {
	var conns []*net.TCPConn
	for i := range t.p.streams {
		c, err := t.dial(ctx, i, m)
		if err != nil {
			for _, c := range conns {
				_ = c.Close() // the first error is the one to return
			}
			return err
		}
		conns = append(conns, c)
	}
	// One connection gets the fastest available sender. Several are fed in turn: the program's
	// server ends with the first one that ends, so faster streams would lose their lead.
	if len(conns) > 1 {
		links, err := adoptAll(conns, t.p)
		if err != nil {
			return err
		}
		t.steps = newLockstep(links, t.p)
		t.steps.amount, t.steps.bitsPerSecond = spec.Bytes, spec.RateBitsPerSec
		w := engine.New(engine.Sender, m.Out, t.steps)
		// The result names the method: it is slower, and the figure must not be taken for that of
		// the fast one.
		w.Method = "copy, in turn"
		t.senders = []*engine.Worker{w}
		return nil
	}
	c, err := m.Adopt(conns[0], true)
	if err != nil {
		return err
	}
	t.conns = []*engine.Conn{c}
	if spec.Bytes > 0 {
		// nbuf bounds a server that sends. A receiving server takes everything, so this end
		// enforces the amount.
		t.quota = engine.NewQuota(spec.Bytes)
	}
	w, err := engine.NewStreamSender(m.Out, c, engine.StreamOptions{Send: spec.SendMethod, Limit: t.quota})
	if err != nil {
		return err
	}
	t.senders = []*engine.Worker{w}
	return nil
}

func (t *Test) receiveTCP(ctx context.Context, spec traffic.Spec, m Means) error {
	// The server sends in turn. This end receives on all connections at once, so the server never
	// waits for one that is not read.
	for i := range t.p.streams {
		conn, err := t.dial(ctx, i, m)
		if err != nil {
			return err
		}
		c, err := m.Adopt(conn, false)
		if err != nil {
			return err
		}
		t.conns = append(t.conns, c)
		// Foreign, because the program fills its blocks with a text: there is no pattern of ours to
		// compare with.
		w, err := engine.NewStreamReceiver(m.In, c, engine.StreamOptions{Receive: spec.ReceiveMethod, Foreign: true})
		if err != nil {
			return err
		}
		t.receivers = append(t.receivers, w)
	}
	return nil
}

// Senders returns the workers that send.
func (t *Test) Senders() []*engine.Worker { return t.senders }

// Receivers returns the workers that receive until the server ends the streams.
func (t *Test) Receivers() []*engine.Worker { return t.receivers }

// Datagrams returns the bodies of the senders of a UDP test.
func (t *Test) Datagrams() []*datagram.Sender {
	if t.sender == nil {
		return nil
	}
	return []*datagram.Sender{t.sender}
}

// Arrivals returns the bodies of its receivers.
func (t *Test) Arrivals() []*datagram.Receiver {
	if t.receiver == nil {
		return nil
	}
	return []*datagram.Receiver{t.receiver}
}

// Done is closed once the kernel has the whole amount of the test; nil if a time ends the test.
func (t *Test) Done() <-chan struct{} {
	switch {
	case t.quota != nil:
		return t.quota.Done()
	case t.steps != nil && t.steps.amount > 0:
		return t.steps.done
	case t.sender != nil:
		// Without an amount it is closed when the time is over, which ends the test anyway.
		return t.sender.Idle()
	}
	return nil
}

// EndSending marks the end of the data. The senders must have returned.
func (t *Test) EndSending() error {
	switch {
	case t.sender != nil:
		return t.endUDP()
	case t.steps != nil:
		return t.steps.closeWrite()
	case len(t.senders) > 0:
		return t.conns[0].CloseWrite()
	}
	return nil
}

// Finish reads the server's report and adds it to the result.
func (t *Test) Finish(ctx context.Context, r *traffic.Result) error {
	// A server that has sent waits until the connections close before it reports. They stay half
	// open for the reading of their TCP_INFO; one that is gone already needs no FIN.
	for _, w := range t.receivers {
		if w.Conn != nil {
			_ = w.Conn.CloseWrite()
		}
	}
	f, err := t.readReport(ctx)
	if err != nil {
		return err
	}
	if t.p.udp {
		t.finishUDP(f, r)
		return nil
	}
	if t.p.transmit {
		r.DurationSeconds = f.seconds
		r.Bytes = f.bytes
		// The report has four digits; this end's acknowledged bytes are exact.
		var sent int64
		for _, w := range t.senders {
			sent += w.Bytes.Load()
		}
		// Within the rounding error, both ends mean the same bytes.
		if d := sent - f.bytes; d >= -reportError && d <= reportError {
			r.Bytes = sent
		} else {
			r.Warnings = append(r.Warnings, fmt.Sprintf("%d bytes were sent and the server counted %d", sent, f.bytes))
		}
		// The receiver's time is better, because it excludes opening and closing. Two digits of a
		// second are too few for short tests, which use the conductor's time.
		if r.DurationSeconds < 1 {
			r.DurationSeconds = 0
		}
		return nil
	}
	// Only a sender knows its retransmissions, and not every server can read them.
	if f.retrans >= 0 {
		n := uint64(f.retrans)
		r.RetransmitsTotal = &n
	}
	return nil
}

// reportError is the rounding error of a report: half of the last digit of a MB.
const reportError = megabyte/20_000 + 1

// readReport reads the server's report to its end.
func (t *Test) readReport(ctx context.Context) (far, error) {
	// fails only on a closed connection
	stop := context.AfterFunc(ctx, func() { _ = t.control.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	_ = t.control.SetReadDeadline(time.Now().Add(reportPatience)) // as above
	f := far{retrans: -1}
	// The report has no length and no last line: the server closes the connection after it.
	for left := maxReport; left > 0; {
		line, err := t.in.ReadSlice('\n')
		left -= len(line)
		f.read(strings.TrimSpace(string(line)))
		if errors.Is(err, io.EOF) {
			break
		}
		if ctx.Err() != nil {
			return f, context.Cause(ctx)
		}
		if err != nil {
			return f, fmt.Errorf("%w: report of nuttcp: %w", traffic.ErrPeerGone, err)
		}
	}
	switch {
	case f.refusal != "":
		return f, fmt.Errorf("%w: nuttcp: %s", traffic.ErrFar, f.refusal)
	case !f.known:
		return f, fmt.Errorf("%w: no report of nuttcp", traffic.ErrPeerGone)
	}
	return f, nil
}

// Close closes all connections.
func (t *Test) Close() {
	for _, w := range t.senders {
		w.Close()
	}
	for _, w := range t.receivers {
		w.Close()
	}
	for _, c := range t.conns {
		c.Close()
	}
	if t.socket != nil {
		t.socket.Close()
	}
	if t.control != nil {
		_ = t.control.Close() // the error of a second close does not matter
	}
}

// Over reports whether a receiver that ended with err has received all data of the server.
func Over(err error) bool { return errors.Is(err, io.EOF) }
