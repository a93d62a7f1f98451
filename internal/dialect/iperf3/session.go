package iperf3

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net"
	"net/netip"
	"time"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/traffic/admission"
	"github.com/linerate/linerate/internal/traffic/datagram"
)

// session is one test at the server.
type session struct {
	server *Server
	// admitted is called once the gate has let the client in.
	admitted func()
	c        control
	cookie   cookie
	from     netip.AddrPort
	p        params
	load     load
	visit    *admission.Visit
	spent    int64       // payload bytes, charged to visit
	next     <-chan step // the client's next state
	before   *host.Counters
	text     output
	// What the client has opened and has no workers yet.
	arrived []arrival
	socks   []*datagram.Socket

	// Protected by the server's lock.
	opening   bool                    // streams may come
	missing   int                     // how many are still to come
	conns     chan arrival            // TCP streams that came
	greetings chan netip.AddrPort     // UDP streams that said hello
	greeted   map[netip.AddrPort]bool // the same addresses, kept until the end of the test
}

// step is the next message of the other end.
type step struct {
	state state
	err   error
}

// listen reads one state in the background. At most one such read runs at a time; closing the
// connection ends it.
func (c control) listen(within time.Duration) <-chan step {
	next := make(chan step, 1)
	go func() {
		s, err := c.readState(within)
		next <- step{s, err}
	}()
	return next
}

// Errors of a session that need no code: the client knows the reason.
var (
	errClientGone = errors.New("the client went away")
	errTerminated = errors.New("the client was stopped")
	errClosing    = errors.New("the server stops")
)

// serve runs the test and logs its outcome.
func (t *session) serve(ctx context.Context) {
	// The deadline ends a waiting read; later reads watch ctx in their select, or have a short
	// deadline of their own.
	stop := context.AfterFunc(ctx, func() { _ = t.c.conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	err := t.run(ctx)
	// Workers end first, so that nothing uses what is closed below.
	t.load.halt()
	for _, s := range t.socks {
		s.Close()
	}
	for _, a := range t.arrived {
		_ = a.conn.Close() // nothing was sent on it
	}
	t.close()
	if t.visit != nil {
		t.visit.Leave()
	}
	if err != nil && ctx.Err() != nil {
		err = errClosing
	}
	// The client receives the program's code, so that it prints a sentence; the log has this
	// server's own sentence.
	log := t.server.turn // anyone can cause any number of refusals
	if t.visit != nil {
		log = t.server.log
	}
	var no *refusal
	var busy *admission.BusyError
	switch {
	case err == nil:
	case errors.As(err, &busy):
		_ = t.c.writeState(accessDenied, time.Second) // best effort: it is refused either way
		t.server.turn(t.from, "turned away: %s", busy.Reason)
	case errors.As(err, &no):
		t.c.writeError(no.code)
		log(t.from, "refused: %v", no)
	case errors.Is(err, errClosing):
		_ = t.c.writeState(serverTerminate, time.Second) // best effort
		log(t.from, "broken off: %v", err)
	default:
		log(t.from, "broken off: %v", err)
	}
	_ = t.c.conn.Close() // nothing more will be sent
	if t.next != nil {
		<-t.next
	}
}

// run runs the test from the cookie to the end.
func (t *session) run(ctx context.Context) error {
	_ = t.c.conn.(*net.TCPConn).SetNoDelay(true) // Go's default; explicit because the protocol needs it
	if err := t.c.writeState(paramExchange, writeWithin); err != nil {
		return err
	}
	body, err := t.c.readMessage(maxParamsBytes, paramsWithin)
	if err != nil {
		return fmt.Errorf("read parameters: %w", err)
	}
	if t.p, err = decodeParams(body); err != nil {
		return err
	}
	if err := t.enter(); err != nil {
		return err
	}
	t.load.p = t.p
	if err := t.openStreams(ctx); err != nil {
		return err
	}
	t.before = t.sample()
	if err := t.say(testStart, testRunning); err != nil {
		return err
	}
	t.load.start(t.p.places(nil))
	if err := t.play(ctx); err != nil {
		return err
	}
	return t.finish(ctx)
}

func (t *session) say(states ...state) error {
	for _, s := range states {
		if err := t.c.writeState(s, writeWithin); err != nil {
			return err
		}
	}
	return nil
}

// enter requests admission and refuses in advance what exceeds the limits.
func (t *session) enter() error {
	gate := t.server.options.Gate
	visit, err := gate.Enter(t.from.Addr())
	if err != nil {
		return err
	}
	t.visit = visit
	visit.OnLoss(func() { _ = t.c.conn.Close() })
	t.admitted()
	// A refusal now reaches the client as a sentence; later it would break the test off.
	limits, p := gate.Limits(), t.p
	// The visit's deadline alone bounds a test without a time.
	if d := p.Omit + p.Time; d > limits.Duration {
		return refuse(codeDuration, "a test of %v is longer than the %v this host allows", d, limits.Duration)
	}
	if rate := p.BitsPerSec * float64(p.all()); rate > limits.BitsPerSecond {
		return refuse(codeTotalRate, "%.3g b/s are more than the %.3g b/s this host allows", rate, limits.BitsPerSecond)
	}
	if left := visit.Left(); p.Bytes > left {
		return refuse(codeTotalRate, "%d bytes are more than the %d this host still allows", p.Bytes, left)
	}
	// This end's sending keeps the limit by pacing; incoming data are only counted.
	if share := limits.BitsPerSecond / float64(p.all()); p.BitsPerSec == 0 && !math.IsInf(share, 1) {
		t.p.BitsPerSec = share
	}
	return nil
}

// openStreams asks the client for its streams and creates their workers, in the order in which the
// streams arrive.
func (t *session) openStreams(ctx context.Context) error {
	t.next = t.c.listen(24 * time.Hour) // the run has its own end; this is only a bound
	pass, err := t.takeTurn(ctx)
	if err != nil {
		return err
	}
	defer pass()
	s := t.server
	s.mu.Lock()
	t.missing, t.opening = t.p.all(), true
	// Room for all that may come, so that handing over never blocks while the server's lock is
	// held.
	t.conns = make(chan arrival, t.missing)
	t.greetings, t.greeted = make(chan netip.AddrPort, t.missing), make(map[netip.AddrPort]bool)
	s.mu.Unlock()
	defer t.close()
	if err := t.say(createStreams); err != nil {
		return err
	}
	patience := streamsWithin
	if t.p.UDP {
		patience = helloWithin
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for n := 0; n < t.p.all(); n++ {
		select {
		case <-ctx.Done():
			return errClosing
		case st := <-t.next:
			t.next = nil
			return st.unexpected()
		case <-late.C:
			return fmt.Errorf("only %d of %d streams came within %v", n, t.p.all(), patience)
		case a := <-t.conns:
			t.arrived = append(t.arrived, a)
		case from := <-t.greetings:
			if err := t.greet(from); err != nil {
				return refuse(codeStreamSetup, "stream %d: %v", streamID(n), err)
			}
			late.Reset(patience)
		case <-again.C:
			t.greetAgain()
			n--
		}
	}
	return t.makeWorkers()
}

// takeTurn waits until no other test of the client's address opens UDP streams; TCP streams carry
// their test's cookie. The next test's turn comes after close has refused late streams.
func (t *session) takeTurn(ctx context.Context) (pass func(), err error) {
	if !t.p.UDP {
		return func() {}, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, turnWithin,
		fmt.Errorf("other tests of this address were opening their streams for %v", turnWithin))
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	heard := make(chan error, 1)
	go func() {
		select {
		case st := <-t.next: // the only possible message now is that the client leaves
			t.next = nil
			err := st.unexpected()
			stop(err)
			heard <- err
		case <-ctx.Done():
			heard <- nil
		}
	}()
	pass, err = t.server.openers.Take(ctx, t.from.Addr())
	stop(nil)
	if left := <-heard; left != nil && err == nil {
		pass()
		return nil, left
	}
	return pass, err
}

// makeWorkers converts what the client has opened to streams.
func (t *session) makeWorkers() error {
	// The client defines directions by the order in which it connects, which is that of accept.
	// Cookies may be read in another order.
	sorting.Func(t.arrived, func(a, b arrival) int { return cmp.Compare(a.number, b.number) })
	quota := t.p.quota()
	for i := range t.p.all() {
		var err error
		if t.p.UDP {
			err = t.load.addUDP(t.socks[0], !t.p.clientSends(i), udpOptions{every: t.p.burst()})
			t.socks = t.socks[1:]
		} else {
			err = t.load.addTCP(t.arrived[0].conn, !t.p.clientSends(i), t.server.options.tcp(quota))
			t.arrived = t.arrived[1:]
		}
		code := codeStreamSetup
		if t.p.Congestion != "" && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)) {
			code = codeCongestion // not in this kernel, or not allowed to this user
		}
		if err != nil {
			return refuse(code, "stream %d: %v", streamID(i), err)
		}
	}
	return nil
}

// close refuses further connections with the cookie of this test.
func (t *session) close() {
	t.server.mu.Lock()
	defer t.server.mu.Unlock()
	t.opening = false
	for len(t.conns) > 0 {
		_ = (<-t.conns).conn.Close() // no test will use it
	}
}

// greet creates a socket for a UDP stream, connected to the client and bound to the server's port,
// and answers the hello through it.
func (t *session) greet(from netip.AddrPort) error {
	// The address that the client uses for this host: on a host with several addresses, the kernel
	// might choose another one.
	local := t.c.conn.LocalAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()
	sock, err := datagram.Connected(netip.AddrPortFrom(local, t.server.Addr().Port()), from, datagram.SocketOptions{
		WindowBytes: t.p.WindowBytes, TOS: t.p.TOS, DontFragment: t.p.DontFragment,
	})
	if err != nil {
		return err
	}
	t.socks = append(t.socks, sock)
	return sock.Send(reply)
}

// greetAgain answers hellos that the client repeated because the first answer was lost.
func (t *session) greetAgain() {
	var p [64]byte
	for _, sock := range t.socks {
		if n, err := sock.Receive(p[:], 0); err == nil && isHello(p[:n]) {
			_ = sock.Send(reply) // the client repeats the hello if this one is lost too
		}
	}
}

// unexpected converts a state out of place to an error.
func (s step) unexpected() error {
	switch {
	case s.err != nil && errors.Is(s.err, io.EOF):
		return errClientGone
	case s.err != nil:
		return fmt.Errorf("%w: %w", errClientGone, s.err)
	case s.state == clientTerminate:
		return errTerminated
	}
	return fmt.Errorf("the client sent %s at the wrong time", s.state)
}

// play lets the data flow until the client ends the test.
func (t *session) play(ctx context.Context) error {
	l := &t.load
	// Charged ten times a second, or a fast client would exceed its bytes by far before it is
	// stopped; one line of output per second, as in the program.
	nextSpend, nextLine := 100*time.Millisecond, time.Second
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return errClosing
		case st := <-t.next:
			t.next = nil
			if st.err == nil && st.state == testEnd {
				return nil
			}
			return st.unexpected()
		case broken := <-l.failed:
			if errors.Is(broken, io.EOF) {
				continue // the stream was closed; the control connection shows whether that is right
			}
			return t.explain(broken)
		case <-timer.C:
		}
		// Everything that is due, in the order of importance; the timer only wakes this loop.
		now := l.now()
		if !l.measuring && now >= l.p.Omit {
			l.measure()
			t.text.line(l, now)
		}
		if now >= nextLine {
			nextLine += time.Second
			l.observe()
			t.text.line(l, now)
		}
		if now >= nextSpend {
			nextSpend = now + 100*time.Millisecond
			if err := t.spend(); err != nil {
				return err
			}
			// The workers do not pause for the visit, so a debt of more than a second will not be
			// paid.
			if t.visit.Pause() > time.Second {
				return refuse(codeTotalRate, "it is faster than the %.3g b/s this host allows",
					t.server.options.Gate.Limits().BitsPerSecond)
			}
		}
		// The client ends the test. One that forgets to would hold its place for as long as the
		// gate allows.
		if l.p.Time > 0 && now > l.p.Omit+l.p.Time+overtime {
			return refuse(codeDuration, "it did not end %v after its time", overtime)
		}
		due := min(nextSpend, nextLine)
		if !l.measuring {
			due = min(due, l.p.Omit)
		}
		timer.Reset(due - l.now())
	}
}

// spend charges the bytes moved since the last call to the visit.
func (t *session) spend() error {
	moved := t.load.moved()
	err := t.visit.Spend(moved - t.spent)
	t.spent = moved
	var over *admission.BudgetError
	if errors.As(err, &over) {
		return refuse(codeTotalRate, "%s", over.Reason)
	}
	return err
}

// explain waits a moment for the client's own reason for a broken stream: it may just have been
// killed.
func (t *session) explain(broken streamError) error {
	select {
	case st := <-t.next:
		t.next = nil
		if st.err == nil && st.state == testEnd {
			return nil // the client closed its streams a moment too early
		}
		return st.unexpected()
	case <-time.After(quietAfter):
	}
	code := codeStreamRead
	if broken.flow.sends {
		code = codeStreamWrite
	}
	return refuse(code, "%v", broken)
}

// finish exchanges the results.
func (t *session) finish(ctx context.Context) error {
	l := &t.load
	ended := l.now()
	if !l.measuring {
		l.measure() // the test ended before its measured part: nothing was measured
	}
	// The window closes before the senders stop, which takes as long as a call of theirs is blocked
	// by a client that no longer reads.
	l.shut()
	counted, at := l.tallies(), l.now()
	// A receiving client reads until the end of its streams, at least a linerate does; the program
	// relies on the state alone.
	l.stopSending()
	l.endStreams()
	if err := t.say(exchangeResults); err != nil {
		return err
	}
	body, err := t.c.readMessage(maxClientResultsBytes, resultsWithin)
	if err != nil {
		return fmt.Errorf("read results: %w", err)
	}
	far, err := decodeResults(body, t.p.all())
	if err != nil {
		return refuse(codeResults, "%v", err)
	}
	if !l.p.timedStream(ended) {
		arrived := l.drain(ctx, quietAfter, func(f *flow) (int64, int64, bool) { return l.expected(f, far) })
		counted = l.tallies()
		at = max(ended, l.lastArrival(counted, arrived))
	}
	t.spend() // it is too late to refuse, but the bytes count for the source's next test
	own := l.report(counted, ended, at, func(f *flow) int64 { return far.Streams[f.index].Packets })
	l.concede(own, far)
	// Versions before 3.14 cannot express the losses of the omitted seconds, see forOld.
	sent := own
	if !far.TellsOmitted {
		sent = own.forOld()
	}
	if t.p.ServerOutput {
		t.text.line(l, at)
		sent.Output = t.text.finish(t, own, far)
	}
	if body, err = sent.encode(); err != nil {
		return err
	}
	if err := t.c.writeMessage(body, writeWithin); err != nil {
		return fmt.Errorf("send results: %w", err)
	}
	if err := t.say(displayResults); err != nil {
		return err
	}
	// The program sends IPERF_DONE; some clients only close. Either way they have the results.
	_, _ = t.c.readState(doneWithin)
	t.server.log(t.from, "%s%s", summary(t.p, own, far, l.ways()), t.drops())
	return nil
}
