package iperf2

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/linerate/linerate/internal/traffic/admission"
	"github.com/linerate/linerate/internal/traffic/engine"
	"github.com/linerate/linerate/internal/traffic/service"
	"github.com/linerate/linerate/internal/wire"
)

// callBytes is how much one system call moves: it keeps the copy inside a second-level cache.
const callBytes = 128 << 10

// ServeConn serves one TCP connection to its end, closes it, and logs it.
func (s *Server) ServeConn(ctx context.Context, conn *net.TCPConn) {
	from := service.From(conn)
	// The connection is closed instead of getting an expired deadline, because the loops below set
	// deadlines and could overwrite it.
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	defer conn.Close()
	start := time.Now()
	head, err := s.head(conn)
	log := s.away
	if err == nil {
		log = s.log
		err = s.transfer(ctx, conn, from, start, head)
	}
	if err != nil && ctx.Err() == nil {
		log("iperf2 tcp from %s: ended early: %v", from, err)
	}
}

// transfer is one TCP connection of a client.
type transfer struct {
	*Server
	conn  *engine.Blocking
	from  netip.AddrPort
	visit *admission.Visit // shared with the other connections of its party
}

// errDialect reports a client that speaks another protocol.
var errDialect = errors.New("another dialect")

// head reads the first bytes of a connection. Until they arrive, the client takes no place of the
// gate, so silent connections keep no client out; it takes one of the places for waiting.
func (s *Server) head(conn *net.TCPConn) ([]byte, error) {
	leave, ok := s.waiting.Enter(service.From(conn).Addr(), func() { _ = conn.Close() })
	if !ok {
		return nil, errors.New("too many silent connections of this source are waiting already")
	}
	defer leave()
	// fails only on a closed connection, as the read then does
	_ = conn.SetReadDeadline(time.Now().Add(s.timing.settings))
	head := make([]byte, 0, settingsBytes)
	for len(head) < settingsBytes {
		n, err := conn.Read(head[len(head):settingsBytes])
		head = head[:len(head)+n]
		// A client of another protocol waits for an answer that will never come. The closed
		// connection ends its wait, and the log names the protocol.
		if name := wire.Dialect(head); len(head) >= tellingBytes && foreign(name) {
			return nil, fmt.Errorf("%w: the client speaks %s, not iperf2", errDialect, name)
		}
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded) && len(head) == 0:
			return nil, fmt.Errorf("nothing came for %v", s.timing.settings)
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil, fmt.Errorf("only %d bytes came in %v", len(head), s.timing.settings)
		case err != nil && len(head) == 0:
			return nil, errors.New("closed before anything came")
		case err != nil:
			return head, nil // a stream may be shorter than the settings
		}
		if n, ok := bounceBytes(head); ok && len(head) >= n {
			return head, nil // the client waits for this message to come back
		}
	}
	return head, nil
}

// tellingBytes is how many bytes are enough to recognize a protocol.
const tellingBytes = 16

// foreign reports whether a protocol is certainly not iperf 2. An unknown one may be: older
// versions begin with payload.
func foreign(dialect string) bool {
	switch dialect {
	case "iperf2", "something unknown", "nothing but zeros":
		return false
	}
	return true
}

// transfer does what the client requests.
func (s *Server) transfer(ctx context.Context, conn *net.TCPConn, from netip.AddrPort, start time.Time,
	head []byte) error {
	asked := parseSettings(head)
	visit, leave, err := s.parties.join(s.o.Gate, from.Addr(), asked.streams)
	if err != nil {
		return err
	}
	defer leave()
	// Data need no option: with it, the end of each call would leave as a segment of its own.
	sends := asked.reverse || asked.duplex
	local := service.Local(conn)
	link, err := engine.AdoptBlocking(conn, engine.ConnOptions{NoDelay: !sends})
	if err != nil {
		return err
	}
	defer link.Close()
	defer context.AfterFunc(ctx, func() { _ = link.Close() })() // as in ServeConn
	visit.OnLoss(func() { _ = link.Close() })
	t := &transfer{Server: s, conn: link, from: from, visit: visit}
	switch {
	case asked.bounce:
		return t.bounce(ctx, start, head)
	case asked.reverse && !asked.duplex:
		return t.send(ctx, asked, "")
	case asked.duplex:
		sent := make(chan error, 1)
		// Both directions run at once on one connection, each half with its own end.
		go func() { sent <- t.send(ctx, asked, "") }()
		return errors.Join(t.receive(ctx, start, len(head)), <-sent)
	}
	if asked.extended {
		t.conn.SetWriteDeadline(start.Add(t.timing.settings))
		if _, err := t.conn.Write(greeting()); err != nil {
			return fmt.Errorf("greet: %w", err)
		}
	}
	if asked.connect {
		return t.bothWays(ctx, asked, local, start, len(head))
	}
	return t.receive(ctx, start, len(head))
}

// receive reads to the end of the stream. The bytes read before count as payload, as in the
// program.
func (t *transfer) receive(ctx context.Context, start time.Time, before int) error {
	defer engine.Stay()()
	total, err := t.sink(ctx, int64(before))
	seconds := time.Since(start).Seconds()
	t.log("iperf2 tcp from %s: received %d bytes in %.2f s, %s", t.from, total, seconds, rate(total, seconds))
	return err
}

// sink reads until the other end closes its half.
func (t *transfer) sink(ctx context.Context, total int64) (int64, error) {
	if err := t.visit.Spend(total); err != nil {
		return total, err
	}
	p := make([]byte, callBytes)
	var renewed time.Time
	for {
		// Renewed once a second and not for every read, so the connection may be idle for up to a
		// second less than timing.idle.
		if now := time.Now(); now.Sub(renewed) > time.Second {
			renewed = now
			t.conn.SetReadDeadline(now.Add(t.timing.idle))
		}
		n, err := t.conn.Read(p)
		total += int64(n)
		if err := t.spend(ctx, n); err != nil {
			return total, err
		}
		switch {
		case errors.Is(err, io.EOF):
			return total, nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			return total, fmt.Errorf("nothing came for %v", t.timing.idle)
		case err != nil:
			return total, err
		}
	}
}

// spend charges bytes to the visit and pauses as long as it demands.
func (t *transfer) spend(ctx context.Context, n int) error {
	if err := t.visit.Spend(int64(n)); err != nil {
		return err
	}
	return service.Rest(ctx, t.visit.Pause())
}

// send writes what the client requested, with head at its beginning, and closes its half.
func (t *transfer) send(ctx context.Context, asked settings, head string) error {
	defer engine.Stay()()
	duration := asked.duration
	if duration == 0 && asked.bytes == 0 {
		duration = t.timing.reverse
	}
	start := time.Now()
	total, err := t.source(ctx, head, asked, duration)
	seconds := time.Since(start).Seconds()
	if err == nil {
		err = t.conn.CloseWrite()
	}
	t.log("iperf2 tcp from %s: sent %d bytes in %.2f s, %s", t.from, total, seconds, rate(total, seconds))
	if err != nil || asked.duplex {
		return err
	}
	// If unread data were left at the close, the kernel would reset the connection and drop what is
	// queued.
	t.conn.SetReadDeadline(time.Now().Add(t.timing.idle))
	_, err = io.Copy(io.Discard, io.LimitReader(t.conn, callBytes))
	return err
}

// source sends head and a pattern until the amount or the time is reached, whichever is not zero.
// With trip times the pattern is cut into bursts, each of which begins with its time.
func (t *transfer) source(ctx context.Context, head string, asked settings, duration time.Duration) (total int64,
	err error) {
	amount, bitsPerSecond := asked.bytes, asked.rateBitsSec
	out, err := t.conn.Outflow(bitsPerSecond > 0)
	if err != nil {
		return 0, err
	}
	defer out.Close()
	most := math.MaxInt
	if bitsPerSecond > 0 {
		// Each call hands over about ten milliseconds, so that a low rate is smooth.
		most = max(1, int(min(bitsPerSecond/8/100, callBytes)))
	}
	start := time.Now()
	if amount > 0 {
		head = head[:min(int64(len(head)), amount)]
	}
	if err := t.spend(ctx, len(head)); err != nil {
		return 0, err
	}
	t.conn.SetWriteDeadline(start.Add(t.timing.idle))
	n, err := t.conn.Write([]byte(head))
	if total = int64(n); err != nil {
		return total, err
	}
	trips := newBursts(asked, start)
	if trips != nil {
		// The program counts them as payload, beyond the amount.
		n, err := t.conn.Write(trips.settings())
		if total += int64(n); err != nil {
			return total, err
		}
		if amount > 0 {
			amount += int64(n)
		}
	}
	moved := start // when the client last took something
	owed := 0      // paid for, and not sent yet
	for ctx.Err() == nil {
		now := time.Now()
		switch {
		// The client waits for the rest of a burst.
		case duration > 0 && now.Sub(start) >= duration && (trips == nil || owed == 0):
			return total, nil
		case now.Sub(moved) > t.timing.idle:
			return total, fmt.Errorf("the client took nothing for %v", t.timing.idle)
		}
		if owed == 0 {
			owed = min(out.CallBytes(), most)
			if amount > 0 {
				owed = int(min(int64(owed), amount-total))
			}
			if owed == 0 {
				return total, nil
			}
			if trips != nil {
				owed = trips.next(amount - total)
			}
			if err := t.spend(ctx, owed); err != nil {
				return total, err
			}
			if trips != nil {
				n, err := t.conn.Write(trips.head(owed, time.Now()))
				total += int64(n)
				if owed -= n; err != nil {
					return total, err
				}
			}
		}
		n, err := out.Send(min(owed, out.CallBytes()))
		total += int64(n)
		owed -= n
		if n > 0 {
			moved = now
		}
		if err != nil {
			return total, err
		}
		if bitsPerSecond > 0 {
			due := time.Duration(float64(total) * 8e9 / bitsPerSecond)
			if duration > 0 {
				due = min(due, duration)
			}
			if err := service.Rest(ctx, due-time.Since(start)); err != nil {
				return total, err
			}
		}
	}
	return total, context.Cause(ctx)
}
