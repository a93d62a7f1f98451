package load

import (
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/resolver/message"
	"github.com/linerate/linerate/internal/resolver/names"
)

// channel carries queries and answers between this process and the server. One goroutine sends,
// another receives.
type channel interface {
	// send sends packed queries.
	send(queries [][]byte) error
	// receive returns the next answer, which is valid until the next call.
	receive() ([]byte, error)
	close() error
}

// dial opens a channel of the options' transport.
func dial(ctx context.Context, o Options) (channel, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTime(o))
	defer cancel()
	switch o.Transport {
	case UDP:
		return dialUDP(ctx, o)
	case TLS:
		return dialTLS(ctx, o)
	case HTTPS:
		return dialHTTPS(ctx, o)
	}
	return dialTCP(ctx, o)
}

// connectTime is how long the opening of a connection may take.
func connectTime(o Options) time.Duration { return max(o.Timeout, time.Second) }

// links is an engine with one goroutine that sends and one for each connection that receives.
type links struct {
	o      Options
	links  []*link
	drawer *names.Drawer
	turn   int
	sent   uint64
	last   int64
	// ended has room for all tokens of a closed loop: one for each query that may be sent.
	ended chan struct{}
}

// link is one connection, and those that replace it.
type link struct {
	o       Options
	mu      sync.Mutex // guards everything below
	channel channel    // nil: to be opened
	carried int        // queries on this channel
	table   *table
	judge   *judge
	tally   *tally
	readers sync.WaitGroup
	ended   chan<- struct{}
	batch   [][]byte
	memory  []byte
}

func newLinks(o Options) (*links, error) {
	e := &links{o: o, drawer: o.Names.Drawer(0, 1, o.Seed), ended: make(chan struct{}, o.Outstanding)}
	for range o.Sockets {
		var secret [2]byte
		if _, err := crand.Read(secret[:]); err != nil {
			return nil, fmt.Errorf("choose query ids: %w", err)
		}
		e.links = append(e.links, &link{o: o, table: newTable(o.inFlight(o.Sockets), binary.BigEndian.Uint16(secret[:])),
			judge: newJudge(o.Names, o.Transport), tally: newTally(), ended: e.ended,
			memory: make([]byte, mostBurst*o.Names.Longest())})
	}
	return e, nil
}

func (e *links) method() string {
	switch e.o.Transport {
	case TLS:
		return "tls over tcp"
	case HTTPS:
		return "http/2 over tls"
	case UDP:
		return "write, read"
	}
	return "tcp"
}

func (e *links) reporters() int { return 1 }

func (e *links) close() {
	for _, l := range e.links {
		l.mu.Lock()
		if l.channel != nil {
			_ = l.channel.close() // every answer has been counted
		}
		l.mu.Unlock()
	}
	for _, l := range e.links {
		l.readers.Wait()
	}
}

// run sends until the end of the load and of the wait for its last answers.
func (e *links) run(ctx context.Context, c clock) (int64, error) {
	stop := make(chan struct{})
	var swept sync.WaitGroup
	swept.Go(func() { e.sweep(stop, c) })
	err := e.sendAll(ctx, c)
	for err == nil && e.waiting() > 0 {
		time.Sleep(time.Millisecond)
	}
	close(stop)
	swept.Wait()
	return max(e.last, c.start), err
}

// sendAll sends on one connection after the other.
func (e *links) sendAll(ctx context.Context, c clock) error {
	pace := newPacer(e.o.Rate, c.start)
	for range e.o.Outstanding {
		e.ended <- struct{}{}
	}
	over := time.NewTimer(time.Duration(c.end - int64(sys.Monotonic())))
	defer over.Stop()
	for ctx.Err() == nil && (e.o.Queries == 0 || e.sent < e.o.Queries) {
		n, due := 1, int64(0)
		if e.o.Mode == Closed {
			select {
			case <-e.ended:
			case <-over.C:
				return nil
			case <-ctx.Done():
				return nil
			}
			if int64(sys.Monotonic()) >= c.end {
				return nil
			}
			n += e.endedToo()
		} else {
			if n, due = pace.burst, pace.due(); due >= c.end {
				return nil
			}
			if !sleepUntil(ctx, due) {
				return nil
			}
			pace.count++
		}
		if err := e.send(ctx, n, due); err != nil {
			return err
		}
	}
	return nil
}

// closedBatch is the most queries that a closed loop writes to one connection at a time.
const closedBatch = 16

// endedToo returns how many further queries of a closed loop have ended and can be sent in the same
// call. A connection that is replaced after some queries carries exactly those.
func (e *links) endedToo() (n int) {
	most := closedBatch - 1
	if e.o.PerConnection > 0 {
		return 0
	}
	if e.o.Queries > 0 {
		most = int(min(uint64(most), e.o.Queries-e.sent-1))
	}
	for ; n < most; n++ {
		select {
		case <-e.ended:
		default:
			return n
		}
	}
	return n
}

// sleepUntil sleeps until the monotonic clock reads at, and reports whether ctx still lasts.
func sleepUntil(ctx context.Context, at int64) bool {
	wait := time.Duration(at - int64(sys.Monotonic()))
	if wait > 10*time.Millisecond {
		t := time.NewTimer(wait - time.Millisecond)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return false
		}
	}
	if int64(sys.Monotonic()) < at {
		sys.SleepUntil(time.Duration(at)) // finer than a timer of Go
	}
	return ctx.Err() == nil
}

// send sends n queries on the next connection that has room for them. Without any the oldest query
// of one must end first; an open loop keeps the time at which the new ones were due.
func (e *links) send(ctx context.Context, n int, due int64) error {
	for ctx.Err() == nil {
		for range e.links {
			l := e.links[e.turn]
			e.turn = (e.turn + 1) % len(e.links)
			ok, err := l.send(ctx, e.drawer, n, due)
			if err != nil {
				return err
			}
			if ok {
				e.sent += uint64(n)
				e.last = int64(sys.Monotonic())
				return nil
			}
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

func (e *links) waiting() (n int) {
	for _, l := range e.links {
		l.mu.Lock()
		n += l.table.waiting
		l.mu.Unlock()
	}
	return n
}

// sweep marks lost queries, and hands the tallies to the collector once an interval, until stop.
func (e *links) sweep(stop <-chan struct{}, c clock) {
	tick := time.NewTicker(sweepLinks)
	defer tick.Stop()
	number := 0
	for {
		ended := false
		select {
		case <-tick.C:
		case <-stop:
			ended = true
		}
		now := int64(sys.Monotonic())
		n := c.number(now)
		for _, l := range e.links {
			l.mu.Lock()
			l.lose(l.table.expire(now - int64(e.o.Timeout)))
			l.mu.Unlock()
		}
		if n > number || ended {
			sum := newTally()
			for _, l := range e.links {
				l.mu.Lock()
				sum.merge(l.tally)
				l.tally.reset()
				l.mu.Unlock()
			}
			c.report(part{number, sum})
			number = n
		}
		if ended {
			return
		}
	}
}

const sweepLinks = 5 * time.Millisecond

// lose counts n queries as lost.
func (l *link) lose(n int) {
	l.tally.Lost += uint64(n)
	for range n {
		l.release()
	}
}

// release lets a closed loop send another query.
func (l *link) release() {
	select {
	case l.ended <- struct{}{}:
	default: // an open loop takes none out
	}
}

// send sends n queries; false: there is no room. The lock is not held while the connection is
// written to: the reader needs it to go on, and a server that waits for its reader reads nothing
// itself.
func (l *link) send(ctx context.Context, d *names.Drawer, n int, due int64) (bool, error) {
	ch, err := l.prepare(ctx, d, n, due)
	if ch == nil || err != nil {
		return false, err
	}
	if err := ch.send(l.batch); err != nil {
		// The reader sees the end of the connection too, and marks what was waiting as lost.
		_ = ch.close()
	}
	return true, nil
}

// prepare packs n queries into l.batch and returns the channel that carries them; nil: there is no
// room.
func (l *link) prepare(ctx context.Context, d *names.Drawer, n int, due int64) (channel, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.table.room() < n {
		return nil, nil
	}
	if l.channel != nil && l.o.PerConnection > 0 && l.carried >= l.o.PerConnection {
		// Its last answers may still be on the way.
		if l.table.waiting > 0 {
			return nil, nil
		}
		_ = l.channel.close() // every answer has arrived
		l.channel = nil
	}
	if l.channel == nil {
		if err := l.open(ctx); err != nil {
			if ctx.Err() != nil {
				return nil, nil
			}
			return nil, err
		}
	}
	now := int64(sys.Monotonic())
	l.batch = l.batch[:0]
	longest := l.o.Names.Longest()
	for i := range n {
		index, serial := d.Next()
		id := l.table.add(due, now, index, serial)
		slot := l.memory[i*longest : (i+1)*longest]
		l.batch = append(l.batch, slot[:l.o.Names.Compose(slot, index, serial, id)])
	}
	l.tally.Queries += uint64(n)
	l.carried += n
	return l.channel, nil
}

// open opens a channel and starts its reader.
func (l *link) open(ctx context.Context) error {
	ch, err := dial(ctx, l.o)
	if err != nil {
		if errors.Is(err, syscall.ECONNREFUSED) {
			return fmt.Errorf("ask %s over %s: %w: the host reports that the port is closed", l.o.Server, l.o.Transport,
				ErrNoServer)
		}
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
			return fmt.Errorf("ask %s over %s: %w: no connection within %v: %w", l.o.Server, l.o.Transport, ErrNoServer,
				connectTime(l.o), err)
		}
		return fmt.Errorf("ask %s over %s: %w", l.o.Server, l.o.Transport, err)
	}
	l.channel, l.carried = ch, 0
	l.tally.opened++
	l.readers.Go(func() { l.read(ch) })
	return nil
}

// read counts answers until the channel ends.
func (l *link) read(ch channel) {
	for {
		m, err := ch.receive()
		arrived := int64(sys.Monotonic())
		l.mu.Lock()
		switch {
		case err == nil:
			if l.judge.receive(m, arrived, l.table, l.tally) {
				l.release()
			}
		case l.o.Transport == UDP && errors.Is(err, syscall.ECONNREFUSED):
			l.tally.refused++
			err = nil
		case errors.Is(err, errTooLong):
			l.tally.wrong(message.Oversize)
			err = nil
		case l.channel == ch:
			// The server, or a failed send, has ended it: no answer can arrive any more.
			l.channel = nil
			l.lose(l.table.expire(arrived + 1))
		}
		l.mu.Unlock()
		if err != nil {
			_ = ch.close() // it has ended
			return
		}
	}
}

// errTooLong is an answer that does not fit the buffer.
var errTooLong = errors.New("answer longer than the buffer")

// udpChannel sends single datagrams through package net.
type udpChannel struct {
	conn   net.Conn
	buffer []byte
}

func dialUDP(ctx context.Context, o Options) (channel, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "udp", o.Server.String())
	if err != nil {
		return nil, err
	}
	return &udpChannel{conn, make([]byte, 1<<16)}, nil
}

func (u *udpChannel) send(queries [][]byte) error {
	for _, q := range queries {
		// A datagram that this host drops is lost like one that the network drops.
		if _, err := u.conn.Write(q); errors.Is(err, net.ErrClosed) {
			return err
		}
	}
	return nil
}

func (u *udpChannel) receive() ([]byte, error) {
	n, err := u.conn.Read(u.buffer)
	return u.buffer[:n], err
}

func (u *udpChannel) close() error { return u.conn.Close() }
