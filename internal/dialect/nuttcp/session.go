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

	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/traffic/admission"
	"github.com/linerate/linerate/internal/traffic/datagram"
	"github.com/linerate/linerate/internal/traffic/engine"
	"github.com/linerate/linerate/internal/traffic/service"
)

// session is one test at the server.
type session struct {
	*Server
	conn  *net.TCPConn // the control connection
	p     params
	from  netip.Addr
	visit *admission.Visit

	bytes, calls atomic.Int64 // so far, of all connections
	path         path         // of the first connection that this end made
	got          figures      // final figures
	kept         bool         // the client did not close its connections after it had read everything
	introduced   bool         // the client has received the introduction, which precedes the first line of any kind
}

// run runs the test and sends the report. When it returns, everything but the control connection is
// closed.
func (t *session) run(ctx context.Context) error {
	// Read around everything, so that the cost is never less than that of the test.
	before := readCPUTimes()
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
	// If data came, the client gets a report of them, and the log has the reason why they are
	// short.
	if err != nil && t.got.bytes == 0 {
		t.say(fmt.Sprintf("KO\nnuttcp-r: v%s: Error: %v\nKO\n", version, err))
		return err
	}
	t.cost(before, readCPUTimes())
	out := ""
	if !t.introduced {
		out = introduction(t.p, t.path)
	}
	if t.p.interval > 0 && t.p.transmit {
		// Ends the lines of intervals. A receiving client counts intervals itself.
		out += "DONE\n"
	}
	return errors.Join(err, t.say(out+report(t.p, t.got)))
}

// say writes to the client.
func (t *session) say(text string) error {
	// Lines have some hundred bytes: a client whose socket has no room for one no longer reads.
	// Setting the deadline fails only on a closed connection, as the write then does.
	_ = t.conn.SetWriteDeadline(time.Now().Add(t.timing.ask))
	if _, err := t.conn.Write([]byte(text)); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// cpuTimes is the CPU time that this process has used at one moment.
type cpuTimes struct{ user, system time.Duration }

func readCPUTimes() cpuTimes {
	user, system := sys.ProcessTimes()
	return cpuTimes{user, system}
}

// cost records the CPU time of this process, as the program reports its own. That of the host would
// include every other program on it.
func (t *session) cost(before, after cpuTimes) {
	t.got.user, t.got.system = (after.user - before.user).Seconds(), (after.system - before.system).Seconds()
	t.got.cpu = t.got.user + t.got.system
}

// sentence describes the test for the log.
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
	if t.kept {
		s += fmt.Sprintf("; the client kept them open for %v", t.timing.silent)
	}
	if t.p.udp && t.p.transmit && t.got.sentBytes > 0 {
		missing, sent := t.got.drops(t.p.blockBytes)
		s += fmt.Sprintf(", %d of %d datagrams missing", missing, sent)
	}
	return s
}

// bitsPerSecond returns the rate at which this end sends, all streams together: the requested one,
// at most what the gate allows; 0: unlimited.
func (t *session) bitsPerSecond() float64 {
	asked, most := t.p.bitsPerSecond(), t.o.Gate.Limits().BitsPerSecond
	// A bound above any link is no bound; requesting a rate at all would enable pacing.
	if most < 1e15 && (asked == 0 || asked > most) {
		return most
	}
	return asked
}

// okay lets the client begin.
func (t *session) okay() error { return t.say("OK v" + version + "\n") }

// connections opens the data connections: this end listens or connects, as the client requests. It
// sends OK at the right moment.
func (t *session) connections(ctx context.Context, listen bool) (conns []*engine.Blocking, err error) {
	// The turn comes first, so that a client that waited for it still has all of the time for its
	// connections.
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
			// Connections opened before the error belong to no test.
			closeAll(conns)
			conns = nil
		}
	}()
	// The end that is connected to must listen first. The client opens its sockets when it reads
	// OK, so OK is sent before this end connects, and after it listens.
	if !listen {
		if err := t.okay(); err != nil {
			return nil, err
		}
		for i := range t.p.streams {
			c, err := t.connect(ctx, t.p.port+i)
			if err == nil {
				conns, err = t.adopt(conns, c)
			}
			if err != nil {
				return conns, err
			}
		}
		return conns, nil
	}
	arrived := make([]chan *net.TCPConn, t.p.streams)
	for i := range arrived {
		// An arrival takes one connection, so handing over never blocks.
		arrived[i] = make(chan *net.TCPConn, 1)
		forget, err := t.expect(ctx, t.p.port+i, &arrival{from: t.from, silent: !t.p.transmit,
			conn: func(c *net.TCPConn) { arrived[i] <- c }})
		if err != nil {
			return nil, err
		}
		defer func() {
			forget()
			// The connection may have come after the wait ended.
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
			if conns, err = t.adopt(conns, c); err != nil {
				return conns, err
			}
		case <-ctx.Done():
			return conns, context.Cause(ctx)
		}
	}
	return conns, nil
}

// expect waits on a data port, together with the tests that already listen there.
func (t *session) expect(ctx context.Context, port int, w *arrival) (forget func(), err error) {
	if t.o.Shared != nil {
		// The kernel gives a port to one listener. On a port that another listener has, the data
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

// adopt adds a connection to those of the test, with the socket options that the client requested.
func (t *session) adopt(conns []*engine.Blocking, c *net.TCPConn) ([]*engine.Blocking, error) {
	// Best effort, like the program: the kernel decides what it grants.
	if t.p.windowBytes > 0 {
		_ = c.SetReadBuffer(t.p.windowBytes)
		_ = c.SetWriteBuffer(t.p.windowBytes)
	}
	b, err := engine.AdoptBlocking(c, engine.ConnOptions{NoDelay: t.p.noDelay})
	if err != nil {
		return conns, err
	}
	return append(conns, b), nil
}

// connect connects to a port of the client, which listens only after it has read OK.
func (t *session) connect(ctx context.Context, port int) (*net.TCPConn, error) {
	o := engine.ConnOptions{WindowBytes: t.p.windowBytes, MSSBytes: t.p.mssBytes, TOS: t.p.tos}
	// The window scale and the segment size are part of the handshake, so they must be set before
	// it.
	d := net.Dialer{Control: engine.DialControl(o)}
	for {
		c, err := d.DialContext(ctx, "tcp", net.JoinHostPort(t.from.String(), strconv.Itoa(port)))
		if err == nil {
			return c.(*net.TCPConn), nil
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		// Other errors do not pass: there is no route, or the connection is refused for good.
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
	// The sending end connects, so this end listens, unless the client requested reverse.
	conns, err := t.connections(ctx, !t.p.reverse)
	if err != nil {
		return err
	}
	defer closeAll(conns)
	stop := context.AfterFunc(ctx, func() { wakeAll(conns) })
	defer stop()
	// One goroutine per connection, instead of one that reads them in turn: a stalled connection
	// does not stall the others, and when all have ended every byte has been counted.
	start := time.Now()
	// Room for all, so that no goroutine waits to report its end.
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

// reportUntil runs wait, sends the client a line per interval, and records the final figures.
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
		// Differences of running totals, so that the intervals add up to the total however late the
		// ticker is.
		total := now()
		part := total
		part.bytes -= last.bytes
		part.packets -= last.packets
		part.sentBytes -= last.sentBytes
		part.elapsed = total.elapsed - last.elapsed
		last = total
		out := intervalLine(t.p, part, total)
		if !t.introduced {
			out = introduction(t.p, t.path) + out
			t.introduced = true
		}
		return t.say(out)
	})
	// After any end: a test that broke off is reported as far as it came.
	t.got = now()
	return err
}

// callBytes is how much one system call moves: it keeps the copy inside a second-level cache.
const callBytes = 128 << 10

// sink reads to the end of a connection.
func (t *session) sink(ctx context.Context, conn *engine.Blocking) error {
	defer engine.Stay()()
	p := make([]byte, callBytes)
	var renewed time.Time
	for {
		// Renewed once a second and not for every read, so the connection may be idle for up to a
		// second less than timing.idle.
		if now := time.Now(); now.Sub(renewed) > time.Second {
			renewed = now
			conn.SetReadDeadline(now.Add(t.timing.idle))
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

// sendTCP sends what the client requested.
func (t *session) sendTCP(ctx context.Context) error {
	// Like receiveTCP, with the roles exchanged.
	conns, err := t.connections(ctx, t.p.reverse)
	if err != nil {
		return err
	}
	defer closeAll(conns)
	if !t.p.reverse {
		t.path = pathTo(t.from, conns[0])
	}
	body := newLockstep(conns, t.p)
	body.bitsPerSecond = t.bitsPerSecond()
	var phase engine.Phase
	w := engine.New(engine.Sender, &phase, body)
	start := time.Now()
	err = t.drive(ctx, &phase, w, body.done)
	if err == nil {
		err = service.Rest(ctx, t.lastBlock(w.Bytes.Load(), time.Since(start)))
	}
	if err == nil {
		err = body.closeWrite()
	}
	// The other end closes when it has read everything, so this is the time that the bytes took,
	// and not the time to queue them. The wait for one that does not close is no part of it.
	elapsed := time.Since(start)
	if t.kept = !closed(conns, t.timing.silent); !t.kept {
		elapsed = time.Since(start)
	}
	t.got = figures{bytes: w.Bytes.Load(), calls: body.calls, elapsed: elapsed, retrans: retransmitted(conns)}
	return err
}

// lastBlock returns how long the last block of a stream with a rate goes on after the time of the
// test: the program ends with the block, too. Otherwise eight blocks at 1 Mb/s, 0.52 s apart, would
// count for 4.0 s instead of 4.2 s.
func (t *session) lastBlock(bytes int64, elapsed time.Duration) time.Duration {
	rate := t.bitsPerSecond()
	if t.p.amount() > 0 || rate <= 0 {
		return 0
	}
	over := func(n int64) time.Duration { return time.Duration(min(float64(n)*8e9/rate, float64(mostOvertime))) }
	return max(0, min(over(bytes)-elapsed, over(int64(t.p.blockBytes))))
}

// mostOvertime bounds the time of a last block, which at a few bits a second would take for ever.
const mostOvertime = 10 * time.Second

// drive runs a sending worker until its time or its amount is reached, and charges its bytes to the
// visit.
func (t *session) drive(ctx context.Context, phase *engine.Phase, w *engine.Worker, done <-chan struct{}) error {
	// A test without an end would let anyone load this host, so it is bounded; the gate's own limit
	// applies to all. A test of an amount may take as long as the gate allows, because the path
	// sets its pace.
	limit := t.p.duration()
	if limit == 0 && t.p.amount() == 0 {
		limit = t.timing.longest
	}
	if limit == 0 {
		limit = t.o.Gate.Limits().Duration
	}
	over := time.NewTimer(limit)
	defer over.Stop()
	// Often enough that a fast sender does not exceed its bytes by much before it is stopped: at
	// 100 Gbit/s by a quarter of a GB.
	charge := time.NewTicker(20 * time.Millisecond)
	defer charge.Stop()
	// The protocol has no warm-up: everything counts.
	phase.Set(engine.Measured)
	result := make(chan error, 1)
	defer engine.LendProcessors(1)()
	// Unpinned: a server does not know which other tests need a CPU.
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
		// The worker stops when it sees its phase. done becomes nil, so that select does not choose
		// the closed channel again.
		case <-done:
			done = nil
			phase.Set(engine.Stopped)
		case err := <-result:
			// Bytes sent since the last charge count too, or many short tests would be free.
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
	// The socket exists before OK is sent, because the program sends its first mark at once.
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
		done() // from now on the port identifies the data, and the next test of this address may begin
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(t.timing.arrive):
		return fmt.Errorf("no datagram within %v", t.timing.arrive)
	}
	// All five end marks may be lost, or the client may be gone, so silence also ends a test.
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
				// A port that closes at the first end mark refuses the others, which older clients
				// of linerate took for a server that is gone.
				return service.Rest(ctx, endGap)
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
	// Only to the address of the control connection, where a handshake has proved the client to be.
	s, err := datagram.Dial(netip.AddrPortFrom(t.from, uint16(t.p.port)),
		datagram.SocketOptions{WindowBytes: t.p.windowBytes, TOS: t.p.tos})
	if err != nil {
		return err
	}
	defer s.Close()
	// The client opens its socket after it has read OK; the program waits some ten milliseconds
	// too. The pause comes before each mark and not after the last: the data follow it at once.
	for _, mark := range []string{"", "BOD0", "BOD1"} {
		if mark != "" {
			_ = s.Send([]byte(mark)) // if a mark is lost or refused, the next one counts
		}
		if mark != "BOD1" {
			if err := service.Rest(ctx, beginGap/2); err != nil {
				return err
			}
		}
	}
	// From here on a worker with pacing and batches, as in linerate's own tests.
	h := headerOf(t.p)
	var phase engine.Phase
	w, sender, err := datagram.NewSender(&phase, s, datagram.SendOptions{
		Bytes: max(t.p.blockBytes, h.Bytes()), BitRate: t.bitsPerSecond(), Header: h, PayloadBytes: t.p.amount(),
		Every: time.Millisecond, // a server has other tests to serve: no CPU for itself
	})
	if err != nil {
		return err
	}
	start := time.Now()
	err = t.drive(ctx, &phase, w, sender.Idle())
	sent := sender.Sent()
	t.got = figures{
		// Datagrams that the kernel refused never left, and the client counts the difference to
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
