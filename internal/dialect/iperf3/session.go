package iperf3

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/traffic/admission"
	"github.com/linerate/linerate/internal/traffic/datagram"
)

// session is one test at the server.
type session struct {
	server *Server
	// admitted is to be called when the gate has let the client in.
	admitted func()
	c        control
	cookie   cookie
	from     netip.AddrPort
	p        params
	load     load
	visit    *admission.Visit
	spent    int64       // payload bytes, of what visit allows
	next     <-chan step // the client's next state
	before   *host.Counters
	text     output
	// What the client has opened, until it has workers:
	arrived []arrival
	socks   []*datagram.Socket

	// Of the server's lock:
	opening   bool                    // streams may come
	missing   int                     // how many have still to come
	conns     chan arrival            // TCP streams that came
	greetings chan netip.AddrPort     // UDP streams that said hello
	greeted   map[netip.AddrPort]bool // the same, kept to the end of the test
}

// step is what the other end said next.
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

// errors of a session that need no code: the client knows.
var (
	errClientGone = errors.New("the client went away")
	errTerminated = errors.New("the client was stopped")
	errClosing    = errors.New("the server stops")
)

// serve runs the test and says how it went.
func (t *session) serve(ctx context.Context) {
	// The deadline reaches a read that is already waiting; reads to come look at ctx in their
	// select, or have a short deadline of their own.
	stop := context.AfterFunc(ctx, func() { _ = t.c.conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	err := t.run(ctx)
	// In this order: workers first, so that nothing uses what is closed below.
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
	// What the client hears is the program's word for it, so that it prints a sentence; the log has
	// ours.
	tell := t.server.turn // who was not let in is one of any number
	if t.visit != nil {
		tell = t.server.log
	}
	var no *refusal
	var busy *admission.BusyError
	switch {
	case err == nil:
	case errors.As(err, &busy):
		_ = t.c.writeState(accessDenied, time.Second) // best effort: it is turned away either way
		t.server.turn(t.from, "turned away: %s", busy.Reason)
	case errors.As(err, &no):
		t.c.writeError(no.code)
		tell(t.from, "refused: %v", no)
	case errors.Is(err, errClosing):
		_ = t.c.writeState(serverTerminate, time.Second) // best effort
		tell(t.from, "broken off: %v", err)
	default:
		tell(t.from, "broken off: %v", err)
	}
	_ = t.c.conn.Close() // everything was said
	if t.next != nil {
		<-t.next
	}
}

// run is the test from the cookie to the end.
func (t *session) run(ctx context.Context) error {
	_ = t.c.conn.(*net.TCPConn).SetNoDelay(true) // Go's default; said because the protocol needs it
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
	t.load.start(allowedCPUs(nil))
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

// enter asks for admission and refuses in advance what the limits will not let through.
func (t *session) enter() error {
	gate := t.server.options.Gate
	visit, err := gate.Enter(t.from.Addr())
	if err != nil {
		return err
	}
	t.visit = visit
	t.admitted()
	// What is refused now the client is told in a sentence; what is found out later breaks its test
	// off.
	limits, p := gate.Limits(), t.p
	// Without a time of its own a test is bounded by the visit's deadline alone.
	if d := p.Omit + p.Time; d > limits.Duration {
		return refuse(codeDuration, "a test of %v is longer than the %v this host allows", d, limits.Duration)
	}
	if rate := p.BitsPerSec * float64(p.all()); rate > limits.BitsPerSecond {
		return refuse(codeTotalRate, "%.3g b/s are more than the %.3g b/s this host allows", rate, limits.BitsPerSecond)
	}
	if left := visit.Left(); p.Bytes > left {
		return refuse(codeTotalRate, "%d bytes are more than the %d this host still allows", p.Bytes, left)
	}
	// What is sent from here keeps to the limit by itself; what comes in is only counted.
	if share := limits.BitsPerSecond / float64(p.all()); p.BitsPerSec == 0 && !math.IsInf(share, 1) {
		t.p.BitsPerSec = share
	}
	return nil
}

// openStreams asks the client for its streams and makes workers of them, in the order in which they
// come.
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
	// Room for all that may come, so that who hands over never waits with the lock of the server
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

// takeTurn waits until no other test of the client's address opens UDP streams; those of TCP say in
// their cookies whose they are. The next in turn comes after close has shut the door on what is
// late.
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
		case st := <-t.next: // the only thing to say now is that it leaves
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

// makeWorkers turns what the client has opened into streams.
func (t *session) makeWorkers() error {
	// The client tells directions by the order in which it connects, which is that of accept.
	// Cookies may be read in another one.
	slices.SortFunc(t.arrived, func(a, b arrival) int { return cmp.Compare(a.number, b.number) })
	for i := range t.p.all() {
		var err error
		if t.p.UDP {
			err = t.load.addUDP(t.socks[0], !t.p.clientSends(i), udpOptions{})
			t.socks = t.socks[1:]
		} else {
			err = t.load.addTCP(t.arrived[0].conn, !t.p.clientSends(i), tcpOptions{})
			t.arrived = t.arrived[1:]
		}
		if err != nil {
			return refuse(codeStreamSetup, "stream %d: %v", streamID(i), err)
		}
	}
	return nil
}

// close turns away what else comes with the cookie of this test.
func (t *session) close() {
	t.server.mu.Lock()
	defer t.server.mu.Unlock()
	t.opening = false
	for len(t.conns) > 0 {
		_ = (<-t.conns).conn.Close() // nobody will use it
	}
}

// greet makes a socket for a UDP stream, connected to the client and at the server's port, and
// answers the hello from it.
func (t *session) greet(from netip.AddrPort) error {
	// The address that the client knows us by: on a host with several the kernel might choose
	// another one.
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

// greetAgain answers hellos that were said twice because the first answer was lost.
func (t *session) greetAgain() {
	var p [64]byte
	for _, sock := range t.socks {
		if n, err := sock.Receive(p[:], 0); err == nil && isHello(p[:n]) {
			_ = sock.Send(reply) // the client asks again if this is lost as well
		}
	}
}

// unexpected makes an error of a state that does not fit.
func (s step) unexpected() error {
	switch {
	case s.err != nil && errors.Is(s.err, io.EOF):
		return errClientGone
	case s.err != nil:
		return fmt.Errorf("%w: %w", errClientGone, s.err)
	case s.state == clientTerminate:
		return errTerminated
	}
	return fmt.Errorf("the client says %s at the wrong time", s.state)
}

// play lets the data flow until the client says that the test is over.
func (t *session) play(ctx context.Context) error {
	l := &t.load
	// Ten times a second, or a fast client would be far over its bytes before it is stopped; a line
	// per second, as the program writes them.
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
				continue // it was closed; the control connection tells whether that is right
			}
			return t.explain(broken)
		case <-timer.C:
		}
		// Whatever is due, in the order in which it matters; the timer is only the hint that
		// something is.
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
			// The workers do not rest for the visit, so a debt of more than a second is not paid
			// any more.
			if t.visit.Pause() > time.Second {
				return refuse(codeTotalRate, "it goes faster than the %.3g b/s this host allows",
					t.server.options.Gate.Limits().BitsPerSecond)
			}
		}
		// The end is the client's to say, and one that forgets it would hold its place for as long
		// as the gate lets it.
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

// spend takes what was moved since the last time from what the client may move.
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

// explain waits a moment for what the client itself says of a stream that broke: it may just have
// been killed.
func (t *session) explain(broken streamError) error {
	select {
	case st := <-t.next:
		t.next = nil
		if st.err == nil && st.state == testEnd {
			return nil // it closed its streams a moment too early
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
		l.measure() // over before it began: nothing was measured
	}
	// A client that receives reads on until it sees the end of its streams, ours at least; that of
	// the program is told by the state alone.
	l.stopSending()
	l.shut()
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
	arrived := l.drain(ctx, quietAfter, func(f *flow) (int64, int64, bool) { return l.expected(f, far) })
	t.spend() // it cannot be refused any more, but counts for the source's next test
	own := l.report(ended, max(ended, arrived), func(f *flow) int64 { return far.Streams[f.index].Packets })
	// Versions before 3.14 have no words for the losses of the omitted seconds, see forOld.
	told := own
	if !far.TellsOmitted {
		told = own.forOld()
	}
	if t.p.ServerOutput {
		t.text.line(l, max(ended, arrived))
		told.Output = t.text.finish(t, own, far)
	}
	if body, err = told.encode(); err != nil {
		return err
	}
	if err := t.c.writeMessage(body, writeWithin); err != nil {
		return fmt.Errorf("send results: %w", err)
	}
	if err := t.say(displayResults); err != nil {
		return err
	}
	// Programs say IPERF_DONE; some only close. The results are with them either way.
	_, _ = t.c.readState(doneWithin)
	t.server.log(t.from, "%s%s", summary(t.p, own, far), t.drops())
	return nil
}
