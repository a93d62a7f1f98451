package nuttcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/traffic/admission"
	"github.com/linerate/linerate/internal/traffic/datagram"
	"github.com/linerate/linerate/internal/traffic/engine"
	"github.com/linerate/linerate/internal/traffic/service"
)

// session is one test at the server.
type session struct {
	*Server
	conn  *net.TCPConn // of control
	p     params
	from  netip.Addr
	visit *admission.Visit

	bytes, calls atomic.Int64 // so far, of all connections
	got          figures      // in the end
	introduced   bool         // the client has read who we are, which comes before the first line of whatever kind
}

// run runs the test and sends the report. It returns when everything but the control connection is
// closed.
func (t *session) run(ctx context.Context) error {
	// Around everything, so that the cost is never less than what the test was.
	before := t.sample()
	var err error
	switch {
	case t.p.udp && t.p.transmit:
		err = t.receiveUDP(ctx)
	case t.p.udp:
		err = t.sendUDP(ctx)
	case t.p.transmit:
		err = t.receiveTCP(ctx)
	default:
		err = t.sendTCP(ctx)
	}
	// With data, the client gets a report of what there was, and the log says why it is short.
	if err != nil && t.got.bytes == 0 {
		t.say(fmt.Sprintf("KO\nnuttcp-r: v%s: Error: %v\nKO\n", version, err))
		return err
	}
	t.cost(before, t.sample())
	out := ""
	if !t.introduced {
		out = introduction(t.p)
	}
	if t.p.interval > 0 && t.p.transmit {
		// It ends the lines of intervals. A client that receives counts them by itself.
		out += "DONE\n"
	}
	return errors.Join(err, t.say(out+report(t.p, t.got)))
}

// say writes to the client.
func (t *session) say(text string) error {
	// Lines are some hundred bytes: a client whose socket has no room for one does not read any
	// more.
	// only a closed connection refuses, as the write then does
	_ = t.conn.SetWriteDeadline(time.Now().Add(t.timing.ask))
	if _, err := t.conn.Write([]byte(text)); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

func (t *session) sample() *host.Counters {
	if t.o.Sample == nil {
		return nil
	}
	c, err := t.o.Sample()
	if err != nil {
		return nil // the report then says 0, which is what it says where nobody counts
	}
	return c
}

// cost is the CPU time of the whole host.
func (t *session) cost(before, after *host.Counters) {
	if before == nil || after == nil {
		return
	}
	for _, c := range host.Sub(before, after).CPUs {
		// The sum of all processors. Interrupts are system time here: receiving is done in them for
		// the most part.
		if c.CPU == -1 {
			t.got.user, t.got.system = c.User, c.System+c.SoftIRQ+c.IRQ
			t.got.cpu = t.got.user + t.got.system
		}
	}
}

// sentence tells what the test was.
func (t *session) sentence() string {
	verb, proto := "sent", "tcp"
	if t.p.transmit {
		verb = "received"
	}
	if t.p.udp {
		proto = "udp"
	}
	s := fmt.Sprintf("%s %d bytes by %s in %.2f s, %s", verb, t.got.bytes, proto, t.got.elapsed.Seconds(),
		rate(t.got.bytes, t.got.elapsed))
	if t.p.streams > 1 {
		s += fmt.Sprintf(", on %d connections", t.p.streams)
	}
	if t.p.udp && t.p.transmit && t.got.sentBytes > 0 {
		missing, sent := t.got.drops(t.p.blockBytes)
		s += fmt.Sprintf(", %d of %d datagrams missing", missing, sent)
	}
	return s
}

// bitsPerSecond is what this end sends at, all together: what was asked for, and no more than the
// gate allows; 0: as fast as it goes.
func (t *session) bitsPerSecond() float64 {
	asked, most := t.p.bitsPerSecond(), t.o.Gate.Limits().BitsPerSecond
	// Above any link there is, the bound is infinite or as good as that; asking for a rate at all
	// would pace.
	if most < 1e15 && (asked == 0 || asked > most) {
		return most
	}
	return asked
}

// okay tells the client to begin.
func (t *session) okay() error { return t.say("OK v" + version + "\n") }

// connections brings the data connections about, this end listening or connecting as the client has
// it, and says OK when it is time to.
func (t *session) connections(ctx context.Context, listen bool) (conns []*net.TCPConn, err error) {
	// The turn first: who got it late has all of the time for its connections still.
	if listen {
		done, err := t.takeTurn(ctx, turnKey{t.from, t.p.port})
		if err != nil {
			return nil, err
		}
		defer done()
	}
	ctx, cancel := context.WithTimeoutCause(ctx, t.timing.arrive,
		fmt.Errorf("no data connection within %v", t.timing.arrive))
	defer cancel()
	defer func() {
		if err != nil {
			// Those that came before the error are of no test.
			closeAll(conns)
			conns = nil
		}
	}()
	// Who is connected to listens first: the client begins with its sockets when it reads OK, and
	// so it is told before this end connects and after it listens.
	if !listen {
		if err := t.okay(); err != nil {
			return nil, err
		}
		for i := range t.p.streams {
			c, err := t.connect(ctx, t.p.port+i)
			if err != nil {
				return conns, err
			}
			conns = append(conns, c)
		}
		return conns, nil
	}
	arrived := make([]chan *net.TCPConn, t.p.streams)
	for i := range arrived {
		// One connection is all that an arrival takes, so handing over never blocks.
		arrived[i] = make(chan *net.TCPConn, 1)
		forget, err := t.expect(ctx, t.p.port+i, &arrival{from: t.from, conn: func(c *net.TCPConn) { arrived[i] <- c }})
		if err != nil {
			return nil, err
		}
		defer func() {
			forget()
			// It may have come too late for us.
			select {
			case c := <-arrived[i]:
				_ = c.Close()
			default:
			}
		}()
	}
	if err := t.okay(); err != nil {
		return nil, err
	}
	for i := range arrived {
		select {
		case c := <-arrived[i]:
			conns = append(conns, c)
			t.prepare(c)
		case <-ctx.Done():
			return conns, context.Cause(ctx)
		}
	}
	return conns, nil
}

// expect waits on a data port, together with whoever listens there already.
func (t *session) expect(ctx context.Context, port int, w *arrival) (forget func(), err error) {
	if t.o.Shared != nil {
		// The kernel gives a port to one listener, so on one that somebody has already the data
		// come from there.
		if a := t.o.Shared(port); a != nil {
			return a.expect(w), nil
		}
	}
	a, leave, err := t.ports.use(ctx, portKey{port, w.packet != nil})
	if err != nil {
		return nil, err
	}
	unexpect := a.expect(w)
	return sync.OnceFunc(func() {
		unexpect()
		leave()
	}), nil
}

// prepare sets the socket options that the client asked for.
func (t *session) prepare(c *net.TCPConn) {
	// Best effort, as the program does it: what the kernel grants is its affair.
	_ = c.SetNoDelay(t.p.noDelay)
	if t.p.windowBytes > 0 {
		_ = c.SetReadBuffer(t.p.windowBytes)
		_ = c.SetWriteBuffer(t.p.windowBytes)
	}
}

// connect connects to a port of the client, which begins to listen only after it was told OK.
func (t *session) connect(ctx context.Context, port int) (*net.TCPConn, error) {
	o := engine.ConnOptions{WindowBytes: t.p.windowBytes, MSSBytes: t.p.mssBytes, TOS: t.p.tos}
	// Some options must be set before the handshake, which says them: the window scale and the
	// segment size.
	d := net.Dialer{Control: engine.DialControl(o)}
	for {
		c, err := d.DialContext(ctx, "tcp", net.JoinHostPort(t.from.String(), strconv.Itoa(port)))
		if err == nil {
			tcp := c.(*net.TCPConn)
			t.prepare(tcp)
			return tcp, nil
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		// Any other error will not go by: there is no way, or somebody refuses for good.
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return nil, err
		}
		if over := service.Rest(ctx, 20*time.Millisecond); over != nil {
			return nil, fmt.Errorf("%w: %w", over, err)
		}
	}
}

// receiveTCP receives until all connections have ended.
func (t *session) receiveTCP(ctx context.Context) error {
	// Who sends connects, so this end listens, unless the client has turned it round.
	conns, err := t.connections(ctx, !t.p.reverse)
	if err != nil {
		return err
	}
	defer closeAll(conns)
	stop := context.AfterFunc(ctx, func() { wakeAll(conns) })
	defer stop()
	// One goroutine per connection instead of one for all in turn: a connection that is held up
	// does not hold up the others, and when all have ended everything that was sent has been
	// counted.
	start := time.Now()
	// Room for all, so that none of them is left behind waiting to tell.
	ended := make(chan error, len(conns))
	for _, c := range conns {
		go func() { ended <- t.sink(ctx, c) }()
	}
	err = t.reportUntil(start, func() figures {
		return figures{bytes: t.bytes.Load(), calls: t.calls.Load(), elapsed: time.Since(start)}
	}, func(tick <-chan time.Time, line func() error) error {
		var failed error
		for left := len(conns); left > 0; {
			select {
			case err := <-ended:
				left--
				if err != nil && failed == nil {
					failed = err
					wakeAll(conns)
				}
			case <-tick:
				if err := line(); err != nil && failed == nil {
					failed = err
					wakeAll(conns)
				}
			}
		}
		return failed
	})
	return err
}

// reportUntil runs a wait with a line to the client per interval, and takes the figures at its end.
func (t *session) reportUntil(start time.Time, now func() figures,
	wait func(tick <-chan time.Time, line func() error) error) error {
	var tick <-chan time.Time
	if t.p.interval > 0 {
		ticker := time.NewTicker(time.Duration(t.p.interval * float64(time.Second)))
		defer ticker.Stop()
		tick = ticker.C
	}
	var last figures
	err := wait(tick, func() error {
		// Differences of running totals, so that the intervals add up to the total whatever the
		// clock of the ticker does.
		total := now()
		part := total
		part.bytes -= last.bytes
		part.packets -= last.packets
		part.sentBytes -= last.sentBytes
		part.elapsed = total.elapsed - last.elapsed
		last = total
		out := intervalLine(t.p, part, total)
		if !t.introduced {
			out = introduction(t.p) + out
			t.introduced = true
		}
		return t.say(out)
	})
	// Whatever ended the wait: a test that broke off is reported for as far as it came.
	t.got = now()
	return err
}

// callBytes is how much one system call moves: it keeps the copy inside a second-level cache.
const callBytes = 128 << 10

// sink reads to the end of a connection.
func (t *session) sink(ctx context.Context, conn *net.TCPConn) error {
	p := make([]byte, callBytes)
	var renewed time.Time
	for {
		// Renewed once a second and not for every read, so the connection may be idle for up to a
		// second less than it is told.
		if now := time.Now(); now.Sub(renewed) > time.Second {
			renewed = now
			_ = conn.SetReadDeadline(now.Add(t.timing.idle)) // only a closed connection refuses, as the read then does
		}
		n, err := conn.Read(p)
		t.calls.Add(1)
		t.bytes.Add(int64(n))
		if err := t.visit.Spend(int64(n)); err != nil {
			return err
		}
		if err := service.Rest(ctx, t.visit.Pause()); err != nil {
			return err
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			return fmt.Errorf("no data for %v", t.timing.idle)
		case err != nil:
			return err
		}
	}
}

// wakeAll ends blocked and later calls on connections.
func wakeAll(conns []*net.TCPConn) {
	for _, c := range conns {
		_ = c.SetDeadline(time.Unix(1, 0)) // only a closed connection refuses, and that is awake
		_ = c.CloseRead()                  // for good, whatever deadline comes next
	}
}

// sendTCP sends what was asked for.
func (t *session) sendTCP(ctx context.Context) error {
	// As in receiveTCP, with the roles exchanged.
	conns, err := t.connections(ctx, t.p.reverse)
	if err != nil {
		return err
	}
	defer closeAll(conns)
	body := newLockstep(conns, t.p)
	body.bitsPerSecond = t.bitsPerSecond()
	var phase engine.Phase
	w := engine.New(engine.Sender, &phase, body)
	start := time.Now()
	err = t.drive(ctx, &phase, w, body.done)
	if err == nil {
		err = body.closeWrite()
	}
	// The other end closes when it has read everything, so the time up to then is what the bytes
	// took, and not what it took to queue them.
	for _, c := range conns {
		_ = c.SetReadDeadline(time.Now().Add(t.timing.silent)) // as in sink
		_, _ = io.Copy(io.Discard, io.LimitReader(c, callBytes))
	}
	t.got = figures{bytes: w.Bytes.Load(), calls: body.calls, elapsed: time.Since(start), retrans: -1}
	return err
}

// drive runs a sending worker until its time or its amount is over, and charges the visit for what
// it sends.
func (t *session) drive(ctx context.Context, phase *engine.Phase, w *engine.Worker, done <-chan struct{}) error {
	// A test without an end would be a gift to whoever wants to load this host; the gate's own
	// limit comes on top of all. An amount alone may take as long as the gate allows, because the
	// path sets its pace.
	limit := t.p.duration()
	if limit == 0 && t.p.amount() == 0 {
		limit = t.timing.longest
	}
	if limit == 0 {
		limit = t.o.Gate.Limits().Duration
	}
	over := time.NewTimer(limit)
	defer over.Stop()
	// Often enough that a fast sender is not far over its bytes when it is stopped: at 100 Gbit/s a
	// quarter of a GB.
	charge := time.NewTicker(20 * time.Millisecond)
	defer charge.Stop()
	// There is no warm-up in the protocol: everything counts.
	phase.Set(engine.Measured)
	result := make(chan error, 1)
	// On no processor in particular: a server does not know who else needs one.
	go func() { result <- w.Run(-1) }()
	var charged int64
	spend := func() error {
		n := w.Bytes.Load()
		defer func() { charged = n }()
		return t.visit.Spend(n - charged)
	}
	var failed error
	for {
		select {
		case <-ctx.Done():
			failed = context.Cause(ctx)
		case <-charge.C:
			failed = spend()
		case <-over.C:
			phase.Set(engine.Stopped)
		// The worker would see that it has nothing to send; nil, so that a closed channel is not
		// taken again and again.
		case <-done:
			done = nil
			phase.Set(engine.Stopped)
		case err := <-result:
			// What was sent since the last look is charged as well, or many short tests would be
			// free.
			return errors.Join(failed, err, spend())
		}
		if failed != nil {
			phase.Set(engine.Stopped)
			return errors.Join(failed, <-result)
		}
	}
}

// receiveUDP counts datagrams from the first mark of the test to its last.
func (t *session) receiveUDP(ctx context.Context) error {
	done, err := t.takeTurn(ctx, turnKey{t.from, t.p.port})
	if err != nil {
		return err
	}
	defer done()
	got := newTally(t.p)
	// The socket is there before OK is said: the program sends its first mark at once.
	forget, err := t.expect(ctx, t.p.port, &arrival{from: t.from, packet: got.take})
	if err != nil {
		return err
	}
	defer forget()
	if err := t.okay(); err != nil {
		return err
	}
	select {
	case <-got.begun:
		done() // from here on they are known by their port, and the next test of this address may begin
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(t.timing.arrive):
		return fmt.Errorf("no datagram within %v", t.timing.arrive)
	}
	// The end may be lost, all five of it, or the client may be gone: silence ends a test, too.
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	var charged int64
	return t.reportUntil(time.Now(), func() figures {
		f, _ := got.now()
		return f
	}, func(tick <-chan time.Time, line func() error) error {
		for {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-got.ended:
				return nil
			case <-tick:
				if err := line(); err != nil {
					return err
				}
			case <-look.C:
				f, last := got.now()
				if err := t.visit.Spend(f.bytes - charged); err != nil {
					return err
				}
				charged = f.bytes
				if time.Since(last) > t.timing.silent {
					return fmt.Errorf("no datagram for %v, and no end of the test", t.timing.silent)
				}
			}
		}
	})
}

// sendUDP sends datagrams to the address of the control connection.
func (t *session) sendUDP(ctx context.Context) error {
	if err := t.okay(); err != nil {
		return err
	}
	// To the address of the control connection and no other: a handshake has proved that whoever
	// asked is there.
	s, err := datagram.Dial(netip.AddrPortFrom(t.from, uint16(t.p.port)),
		datagram.SocketOptions{WindowBytes: t.p.windowBytes, TOS: t.p.tos})
	if err != nil {
		return err
	}
	defer s.Close()
	// The client opens its socket only after it was told OK; the program gives it some ten
	// milliseconds, too. A rest before each mark and none behind the last: the data follow it at
	// once.
	for _, mark := range []string{"", "BOD0", "BOD1"} {
		if mark != "" {
			_ = s.Send([]byte(mark)) // lost or refused, what counts is the next one
		}
		if mark != "BOD1" {
			if err := service.Rest(ctx, beginGap/2); err != nil {
				return err
			}
		}
	}
	// From here on a worker with its pacing and batches, as in a test of our own.
	h := headerOf(t.p)
	var phase engine.Phase
	w, sender, err := datagram.NewSender(&phase, s, datagram.SendOptions{
		Bytes: max(t.p.blockBytes, h.Bytes()), BitRate: t.bitsPerSecond(), Header: h, PayloadBytes: t.p.amount(),
	})
	if err != nil {
		return err
	}
	start := time.Now()
	err = t.drive(ctx, &phase, w, sender.Idle())
	sent := sender.Sent()
	t.got = figures{
		// What the kernel refused was never on the wire, and the client counts the difference to
		// what it received as loss.
		bytes: (sent.AllPackets - sent.SocketErrors) * int64(t.p.blockBytes), packets: sent.AllPackets,
		calls:   sent.AllPackets,
		elapsed: time.Since(start), retrans: -1,
	}
	if err != nil {
		return err
	}
	for i := range endMarks {
		_ = s.Send([]byte{'E', 'O', 'D', '0' + byte(i)}) // as above
		if err := service.Rest(ctx, endGap); err != nil {
			return err
		}
	}
	return nil
}
