package iperf3

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"time"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/datagram"
	"github.com/linerate/linerate/internal/traffic/engine"
	"github.com/linerate/linerate/internal/wire"
)

// Timeouts of the client.
const (
	connectWithin = 10 * time.Second
	// for each step before and after the run; another client's test may have to end first
	answerWithin = 10 * time.Second
	helloEvery   = 300 * time.Millisecond
	helloTries   = 10
	// readWithin is the pause between the last byte and TEST_END, on which the program closes its
	// sockets and discards unread data: it has to wake up and read. TEST_END itself takes the way of
	// the data, behind them. The server's clock runs meanwhile, so a longer pause makes its rate too
	// low.
	readWithin = 20 * time.Millisecond
	// underWay is how long a datagram may be on its way at the end without being lost: TEST_END can
	// overtake it where queues are fair.
	underWay = 100 * time.Millisecond
	// quietDatagrams is how long a receiver waits for late datagrams after the server has
	// announced, over a path of the same length, that it stopped.
	quietDatagrams = 150 * time.Millisecond
)

// ClientOptions say what a result contains about this host.
type ClientOptions struct {
	Sample   func() (*host.Counters, error) // counters of this host; nil: none
	HostName string                         // of this host

	helloWait time.Duration // tests only; 0: by the path
}

// helloWait returns the time between two hellos to a server that has answered the cookie in trip.
// Lost segments and a busy server only make it longer.
func helloWait(trip time.Duration) time.Duration { return max(helloEvery, 3*trip) }

// client is one test at the near end.
type client struct {
	spec     traffic.Spec // normalized
	o        ClientOptions
	progress func(traffic.Interval) // never nil
	c        control
	cookie   cookie
	load     load
	quota    *engine.Quota // of a TCP test of an amount
	silent   int           // UDP streams whose hello was not answered

	helloWait time.Duration
	next      <-chan step // the next state from the server during the run

	startedAt     time.Time
	before, after *host.Counters // of this host; nil: not read
	intervals     []traffic.Interval
	last, marked  reading       // start of the current interval and of the measured part
	recent        sentRecently  // what UDP senders had sent a moment ago
	end           reading       // at the end of the measured part
	settled       time.Duration // when the far kernels had everything, since the start
	final         []tally       // of the streams, including late data
	far           results       // what the server reported
	warnings      []string
	local, remote netip.Addr // of the control connection, and so of the data
}

// Run runs a test against an iperf3 server, or a compatible one, at HOST or HOST:PORT; the default
// port is 5201. The tests are stream and udp; a Spec that the protocol cannot express returns
// [traffic.ErrBadSpec]. A warm-up is rounded up to whole seconds, and is 1 s where the caller asks
// for the steady state, because both ends of the protocol omit it by their own clocks.
//
// The throughput is what the receiving end counted. progress, when not nil, is called with every
// finished interval, in order, from the goroutine of Run; data sent from here appear in it once the
// far kernel has acknowledged them. Cancelling ctx ends the test at both ends. Errors wrap one of
// package traffic or the context's cause.
func Run(
	ctx context.Context, target string, spec traffic.Spec, o ClientOptions, progress func(traffic.Interval),
) (*traffic.Result, error) {
	spec, err := spec.Normalize()
	if err != nil {
		return nil, err
	}
	p, err := paramsOf(spec)
	if err != nil {
		return nil, err
	}
	if progress == nil {
		progress = func(traffic.Interval) {}
	}
	c := &client{spec: spec, o: o, progress: progress, cookie: newCookie(), recent: sentRecently{span: underWay}}
	c.load.p = p
	r, err := c.run(ctx, address(target))
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("iperf3 test with %s: %w", target, err)
	}
	return r, nil
}

// address adds the default port to a target without one.
func address(target string) string {
	if _, _, err := net.SplitHostPort(target); err == nil {
		return target
	}
	name := target
	if len(name) > 1 && name[0] == '[' && name[len(name)-1] == ']' {
		name = name[1 : len(name)-1]
	}
	return net.JoinHostPort(name, strconv.Itoa(DefaultPort))
}

// paramsOf expresses a normalized Spec in the protocol.
func paramsOf(s traffic.Spec) (params, error) {
	bad := func(format string, args ...any) (params, error) {
		return params{}, fmt.Errorf("%w: %s", traffic.ErrBadSpec, fmt.Sprintf(format, args...))
	}
	// Rounded up: the client ends the test by its own clock, and the server must not give up
	// earlier.
	whole := func(d time.Duration) time.Duration { return (d + time.Second - 1).Truncate(time.Second) }
	warm := whole(s.WarmUp)
	if s.WarmUp < 0 {
		warm = time.Second
	}
	switch {
	case s.Test != traffic.Stream && s.Test != traffic.UDP:
		return bad("iperf3 has no %s test, only stream and udp", s.Test)
	case s.Streams > maxStreams:
		return bad("iperf3 runs at most %d streams, not %d", maxStreams, s.Streams)
	case warm > maxOmitSeconds*time.Second:
		return bad("iperf3 omits at most %d s, not %v", maxOmitSeconds, s.WarmUp)
	case s.WindowBytes > maxBufferBytes:
		return bad("iperf3 sets a window of at most %d bytes, not %d", maxBufferBytes, s.WindowBytes)
	case s.ProbeGap != 0:
		return bad("iperf3 answers no pings beside the load")
	case len(s.FarCPUs) > 0:
		return bad("the CPUs of iperf3's workers cannot be chosen")
	}
	// The protocol's rate is per stream, a Spec's rate is for the whole direction.
	p := params{
		UDP: s.Test == traffic.UDP, Omit: warm, Time: whole(s.Duration), Bytes: s.Bytes, Streams: s.Streams,
		Reverse: s.Direction == traffic.Down, Bidir: s.Direction == traffic.Bidir, BlockBytes: defaultBlock,
		BitsPerSec: s.RateBitsPerSec / float64(s.Streams), WindowBytes: s.WindowBytes, MSSBytes: s.MSSBytes,
		NoDelay: s.NoDelay != nil && *s.NoDelay, TOS: s.TOS, Congestion: s.Congestion, DontFragment: s.DontFragment,
	}
	// An amount has no time. It counts from its first byte, so nothing is omitted.
	if s.Bytes > 0 {
		p.Time, p.Omit = 0, 0
	}
	if p.UDP {
		p.BlockBytes, p.WideCounters = s.PacketBytes, true // every version since 3.1 has them
		if s.RatePacketsPerSec > 0 {
			p.BitsPerSec = s.RatePacketsPerSec * float64(8*s.PacketBytes) / float64(s.Streams)
		}
	}
	return p, nil
}

// run runs the test from the first connection to the result.
func (c *client) run(ctx context.Context, to string) (*traffic.Result, error) {
	d := net.Dialer{Timeout: connectWithin}
	if from := c.near(); from.IsValid() {
		d.LocalAddr = &net.TCPAddr{IP: from.AsSlice(), Zone: from.Zone()}
	}
	conn, err := d.DialContext(ctx, "tcp", to)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", traffic.ErrPeerGone, err)
	}
	c.c = control{conn, ctx.Done()}
	c.local = conn.LocalAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()
	c.remote = conn.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	defer func() {
		if err != nil || ctx.Err() != nil {
			// This keeps the server from waiting for our results. It may be gone, so an error does
			// not matter. Before the streams end: unannounced, that looks like a failure.
			_ = c.c.writeState(clientTerminate, time.Second)
		}
		c.load.halt()
		_ = conn.Close()
		if c.next != nil {
			<-c.next
		}
	}()
	if err = c.prepare(ctx); err != nil {
		return nil, err
	}
	if err = c.play(ctx); err != nil {
		return nil, err
	}
	if err = c.finish(ctx); err != nil {
		return nil, err
	}
	return c.result(), nil
}

// prepare goes through the steps until the test runs.
func (c *client) prepare(ctx context.Context) error {
	asked := time.Now()
	if err := c.c.write(c.cookie[:], writeWithin); err != nil {
		return gone(err)
	}
	if err := c.greeting(); err != nil {
		return err
	}
	c.helloWait = cmp.Or(c.o.helloWait, helloWait(time.Since(asked)))
	body, err := c.load.p.encode()
	if err != nil {
		return err
	}
	if err := c.c.writeMessage(body, writeWithin); err != nil {
		return gone(err)
	}
	if err := c.expect(createStreams); err != nil {
		return err
	}
	// Before the streams exist: the server's clock starts with the last of them, and must not run
	// while this end is busy with itself.
	if c.load.p.UDP {
		datagram.Probe()
	} else {
		engine.ProbeStream()
	}
	c.before = c.sample()
	if err := c.openStreams(ctx); err != nil {
		return err
	}
	if err := c.expect(testStart); err != nil {
		return c.unheard(err)
	}
	return c.expect(testRunning)
}

// greeting waits for the server's first state, and names the protocol of a server that is no
// iperf3.
func (c *client) greeting() error {
	s, err := c.c.readState(answerWithin)
	switch {
	case errors.Is(err, io.EOF): // a server that expects 37 other bytes does this
		return fmt.Errorf("%w: connection closed without an answer to the cookie of iperf3", traffic.ErrPeerGone)
	case errors.Is(err, os.ErrDeadlineExceeded): // a server that only listens does this
		return fmt.Errorf("%w: no answer to the cookie of iperf3 within %v", traffic.ErrPeerGone, answerWithin)
	case err != nil:
		return gone(err)
	case s == paramExchange:
		return nil
	case s == accessDenied || s == serverError || s == serverTerminate:
		return c.refused(s)
	}
	// A server of another protocol usually sends more than one byte, all at once.
	head := [64]byte{byte(s)}
	n := 1
	if c.c.readBy(500*time.Millisecond) == nil {
		k, _ := c.c.conn.Read(head[1:]) // whatever has arrived is enough
		n += k
	}
	return fmt.Errorf("%w: no iperf3 server: %s answers there", traffic.ErrProtocol, wire.Dialect(head[:n]))
}

// expect waits for one state.
func (c *client) expect(want state) error {
	s, err := c.c.readState(answerWithin)
	if err != nil {
		return gone(err)
	}
	if s != want {
		return c.refused(s)
	}
	return nil
}

// refused converts a refusal, or a state out of place, to an error.
func (c *client) refused(s state) error {
	switch s {
	case accessDenied:
		return fmt.Errorf("%w: the server is busy with another test", traffic.ErrRefused)
	case serverTerminate:
		return fmt.Errorf("%w: the server was stopped", traffic.ErrFar)
	case serverError:
		code, errno, err := c.c.readError(answerWithin)
		if err != nil {
			return gone(err)
		}
		if errno != 0 {
			return fmt.Errorf("%w: %v (errno %d there)", traffic.ErrFar, code, errno)
		}
		return fmt.Errorf("%w: %v", traffic.ErrRefused, code)
	}
	return fmt.Errorf("%w: the server sent %s at the wrong time", traffic.ErrProtocol, s)
}

// gone marks an error of the control connection as the disappearance of the far end.
func gone(err error) error { return fmt.Errorf("%w: %w", traffic.ErrPeerGone, err) }

// openStreams opens the data connections one after another: the server derives their directions
// from their order.
func (c *client) openStreams(ctx context.Context) error {
	if c.spec.Bytes > 0 && !c.load.p.UDP {
		c.quota = engine.NewQuota(c.spec.Bytes)
	}
	to := netip.AddrPortFrom(c.remote, c.c.conn.RemoteAddr().(*net.TCPAddr).AddrPort().Port())
	for i := range c.load.p.all() {
		sends := c.load.p.clientSends(i)
		open := c.openTCP
		if c.load.p.UDP {
			open = c.openUDP
		}
		if err := open(ctx, to, i, sends); err != nil {
			return fmt.Errorf("open stream %d: %w", streamID(i), err)
		}
	}
	return nil
}

// near returns the source address of the test; the zero value: the route chooses.
func (c *client) near() netip.Addr {
	a, _ := netip.ParseAddr(c.spec.SourceAddress) // Normalize refuses what is none
	return a
}

func (c *client) openTCP(ctx context.Context, to netip.AddrPort, i int, sends bool) error {
	o := engine.ConnOptions{MSSBytes: c.spec.MSSBytes, WindowBytes: c.spec.WindowBytes, TOS: c.spec.TOS,
		From: c.near()}
	if c.spec.SourcePort != 0 {
		o.LocalPort = c.spec.SourcePort + i
	}
	d := net.Dialer{Timeout: connectWithin, Control: engine.DialControl(o)}
	conn, err := d.DialContext(ctx, "tcp", to.String())
	if err != nil {
		return gone(err)
	}
	if _, err := conn.Write(c.cookie[:]); err != nil { // 37 bytes fit an empty send buffer
		_ = conn.Close() // the first error is the one to return
		return gone(err)
	}
	return c.load.addTCP(conn.(*net.TCPConn), sends, tcpOptions{send: c.spec.SendMethod, receive: c.spec.ReceiveMethod,
		quota: c.quota})
}

func (c *client) openUDP(ctx context.Context, to netip.AddrPort, i int, sends bool) error {
	o := datagram.SocketOptions{WindowBytes: c.spec.WindowBytes, TOS: c.spec.TOS, DontFragment: c.spec.DontFragment,
		BusyPoll: c.spec.BusyPoll, From: c.near()}
	if c.spec.SourcePort != 0 {
		o.LocalPort = c.spec.SourcePort + i
	}
	sock, err := datagram.Dial(to, o)
	if err != nil {
		return err
	}
	answered, err := greet(ctx, sock, c.helloWait)
	if !answered {
		c.silent++
	}
	// One answer may be lost; two missing ones mean a firewall, and each further stream would take
	// three seconds more.
	if err == nil && c.silent == 2 {
		err = c.unheard(traffic.ErrPeerGone)
	}
	if err != nil {
		sock.Close()
		return err
	}
	u := udpOptions{batch: datagram.Batch(c.spec.Batch), packets: c.spec.RatePacketsPerSec / float64(c.spec.Streams)}
	if c.spec.Bytes > 0 {
		// The first streams send the remainder of the division.
		n := int64(c.spec.Streams)
		u.bytes = c.spec.Bytes / n
		if int64(i%c.spec.Streams) < c.spec.Bytes%n {
			u.bytes++
		}
	}
	return c.load.addUDP(sock, sends, u)
}

// unheard adds to an error that datagrams were not answered, which is usually the cause.
func (c *client) unheard(err error) error {
	if c.silent == 0 {
		return err
	}
	return fmt.Errorf("%w: %d hellos over UDP were not answered: a firewall may let only TCP through", err, c.silent)
}

// greet sends hello until the server answers. The program answers once: if that answer is lost, no
// other comes, and only the progress of the control connection shows that the hello arrived. So one
// stream without an answer is no error yet. Wait is the time between two hellos.
//
// The program counts a hello that arrives after the one it has answered as data: hundreds of
// millions of datagrams are then missing. So an answer has the time of its path.
func greet(ctx context.Context, sock *datagram.Socket, wait time.Duration) (answered bool, err error) {
	// Larger than an answer, so that overtaking data are not mistaken for one.
	var p [64]byte
	for range helloTries {
		// An error here usually belongs to an earlier datagram: port unreachable. The next tries
		// decide.
		err := sock.Send(hello)
		for until := time.Now().Add(wait); err == nil && time.Now().Before(until); {
			var n int
			if n, err = sock.Receive(p[:], time.Until(until)); err == nil && isReply(p[:n]) {
				return true, nil
			}
		}
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		if err != nil && !errors.Is(err, sys.ErrTimeout) && !sleep(ctx, helloEvery/10) {
			return false, ctx.Err()
		}
	}
	return false, nil
}

// sample reads the counters of this host. A failure is a warning, because the test has a result
// without them.
func (c *client) sample() *host.Counters {
	if c.o.Sample == nil {
		return nil
	}
	counters, err := c.o.Sample()
	if err != nil {
		c.warnings = append(c.warnings, fmt.Sprintf("host counters not read: %v", err))
		return nil
	}
	return counters
}
