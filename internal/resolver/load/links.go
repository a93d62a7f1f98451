package load

import (
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
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
	// abort closes at once, also while a write waits for the server.
	abort() error
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
	reach  *reach
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
	trying  bool       // a goroutine opens it
	reach   *reach
	table   *table
	judge   *judge
	tally   *tally
	readers sync.WaitGroup
	ended   chan<- struct{}
	batch   [][]byte
	memory  []byte
}

func newLinks(o Options) (*links, error) {
	e := &links{o: o, reach: newReach(), drawer: o.Names.Drawer(0, 1, o.Seed, o.FreshFrom),
		ended: make(chan struct{}, o.Outstanding)}
	for range o.Sockets {
		var secret [2]byte
		if _, err := crand.Read(secret[:]); err != nil {
			return nil, fmt.Errorf("choose query ids: %w", err)
		}
		e.links = append(e.links, &link{o: o, table: newTable(o.inFlight(o.Sockets), binary.BigEndian.Uint16(secret[:])),
			judge: newJudge(o.Names, o.Transport), tally: newTally(), ended: e.ended, reach: e.reach,
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

func (e *links) warnings() []string { return e.reach.warnings() }

func (e *links) close() {
	e.reach.close()
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
	stop, all := make(chan struct{}), make(chan int64)
	var swept sync.WaitGroup
	swept.Go(func() { e.sweep(all, stop, c) })
	interrupted := make(chan struct{})
	proceed := context.AfterFunc(ctx, func() {
		defer close(interrupted)
		for _, l := range e.links {
			l.interrupt()
		}
	})
	due, err := e.sendAll(ctx, c)
	all <- c.sendEnd(e.last, due)
	for err == nil && e.waiting() > 0 {
		time.Sleep(time.Millisecond)
	}
	if !proceed() {
		<-interrupted // its counts are in the result
	}
	close(stop)
	swept.Wait()
	return max(e.last, c.start), err
}

// sendAll sends on one connection after the other. It returns when the next query would have been
// due.
func (e *links) sendAll(ctx context.Context, c clock) (next int64, err error) {
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
				return next, nil
			case <-ctx.Done():
				return next, nil
			}
			if int64(sys.Monotonic()) >= c.end {
				return next, nil
			}
			n += e.endedToo()
		} else {
			if n, due = pace.burst, pace.due(); due >= c.end {
				return next, nil
			}
			if !sleepUntil(ctx, due) {
				return next, nil
			}
			pace.count++
			next = pace.due()
		}
		if err := e.send(ctx, n, due); err != nil {
			return next, err
		}
	}
	return next, nil
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

// sweep marks lost queries, and hands the tallies to the collector once an interval, when all
// queries have left, and at the end.
func (e *links) sweep(all <-chan int64, stop <-chan struct{}, c clock) {
	tick := time.NewTicker(sweepLinks)
	defer tick.Stop()
	r := reporter{clock: c, from: c.start}
	for {
		until, next := int64(0), r.stage
		select {
		case <-tick.C:
		case until = <-all:
			next = sent
		case <-stop:
			next = waits
		}
		now := int64(sys.Monotonic())
		for _, l := range e.links {
			l.mu.Lock()
			l.lose(l.table.expire(now - int64(e.o.Timeout)))
			l.mu.Unlock()
		}
		if next == r.stage && !r.due(now) {
			continue
		}
		sum := newTally()
		for _, l := range e.links {
			l.mu.Lock()
			sum.merge(l.tally)
			l.tally.reset()
			l.mu.Unlock()
		}
		if next != sent {
			until = now
		}
		r.hand(sum, until, next)
		if next == waits {
			return
		}
	}
}

const sweepLinks = 5 * time.Millisecond

// interrupt gives up what waits, and ends the connection: a write to a server that reads nothing
// would otherwise last until the timeout.
func (l *link) interrupt() {
	l.mu.Lock()
	ch := l.channel
	l.channel = nil
	l.tally.Interrupted += uint64(l.table.expire(math.MaxInt64))
	l.mu.Unlock()
	if ch != nil {
		_ = ch.abort() // nothing more is to be written
	}
}

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
	ch, ok, err := l.prepare(ctx, d, n, due)
	if ch == nil || err != nil {
		return ok, err
	}
	if err := ch.send(l.batch); err != nil {
		// The reader sees the end of the connection too, and marks what was waiting as lost.
		_ = ch.close()
	}
	return true, nil
}

// prepare packs n queries into l.batch and returns the channel that carries them; nil: the server
// accepts none, and the queries wait in vain. It is not ok if there is no room.
func (l *link) prepare(ctx context.Context, d *names.Drawer, n int, due int64) (ch channel, ok bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.table.room() < n || ctx.Err() != nil {
		return nil, false, nil
	}
	if l.channel != nil && l.o.PerConnection > 0 && l.carried >= l.o.PerConnection {
		// Its last answers may still be on the way.
		if l.table.waiting > 0 {
			return nil, false, nil
		}
		_ = l.channel.close() // every answer has arrived
		l.channel = nil
	}
	if h, ok := l.channel.(*httpsChannel); ok {
		if _, leaving := h.left(); leaving {
			l.channel = nil // its reader ends with its last answer
		}
	}
	if l.channel == nil {
		if err := l.open(ctx); err != nil || l.channel == nil && !l.trying {
			return nil, false, err
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
	if l.channel == nil {
		l.reach.unsent.Add(uint64(n))
	}
	return l.channel, true, nil
}

// open opens a channel. The load ends if the server never accepted one. Later the result shows that
// it accepts none, and a goroutine tries again: the schedule does not wait for it.
func (l *link) open(ctx context.Context) error {
	if l.trying {
		return nil
	}
	if !l.reach.down.Load() {
		ch, err := dial(ctx, l.o)
		if err == nil {
			l.use(ch)
			return nil
		}
		if ctx.Err() != nil {
			return nil // the load ends
		}
		if fatal := l.reach.failed(err); fatal {
			return l.noServer(err)
		}
	}
	l.trying = true
	l.readers.Go(l.retry)
	return nil
}

// use takes a channel into use.
func (l *link) use(ch channel) {
	l.channel, l.carried = ch, 0
	l.tally.opened++
	l.reach.succeeded()
	l.readers.Go(func() { l.read(ch) })
}

// retry opens a channel as soon as the server accepts one again.
func (l *link) retry() {
	for {
		select {
		case <-l.reach.ctx.Done():
			return
		case <-time.After(retryAfter):
		}
		ch, err := dial(l.reach.ctx, l.o)
		if err != nil {
			l.reach.failed(err)
			continue
		}
		l.mu.Lock()
		l.trying = false
		l.use(ch)
		closed := l.reach.ctx.Err() != nil
		l.mu.Unlock()
		if closed {
			_ = ch.close() // the load has ended meanwhile
		}
		return
	}
}

// noServer returns the error of a load that no connection could be opened for.
func (l *link) noServer(err error) error {
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

// read counts answers until the channel ends.
func (l *link) read(ch channel) {
	var status statusError
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
		case errors.As(err, &status):
			l.reach.refuse(status)
			err = nil
		case errors.Is(err, errTooLong):
			l.tally.wrong(message.Oversize)
			err = nil
		case l.channel == ch:
			// The server, or a failed send, has ended it: no answer can arrive any more.
			l.channel = nil
			n := l.table.expire(arrived + 1)
			l.lose(n)
			l.reach.cut(n)
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

func (u *udpChannel) abort() error { return u.conn.Close() }
