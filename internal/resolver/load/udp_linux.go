package load

import (
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/resolver/message"
	"github.com/linerate/linerate/internal/resolver/names"
	engines "github.com/linerate/linerate/internal/traffic/engine"
)

// newEngine opens the sockets of a load.
func newEngine(o Options) (engine, error) {
	if o.Transport == UDP {
		return newBatched(o)
	}
	return newLinks(o)
}

// port is one source port: the socket that is connected to the server, and one beside it on the
// same port that receives what other addresses send there.
type port struct {
	fd, stranger int
	table        *table
	departures   departures
}

// batched is an engine that sends and receives many datagrams in one system call.
type batched struct {
	o       Options
	workers []*worker
}

// worker is one thread with ports of its own. Nothing is shared with others except the names.
type worker struct {
	o       Options
	rate    float64 // of this worker
	most    int     // outstanding queries of a closed loop
	queries uint64  // bound on those of this worker; 0: none
	ports   []port
	poller  *sys.Poller
	outbox  *sys.Outbox
	inbox   *sys.Inbox
	slots   [][]byte // memory of the outbox's messages
	lengths [mostBurst]int
	split   bool // the kernel splits messages of several queries
	memory  []byte
	packed  [mostBurst][]byte // messages of one burst
	segment [mostBurst]int    // length of the queries in each
	placed  [mostBurst]uint64 // the queries in each, one bit for each of the burst
	drawer  *names.Drawer
	judge   *judge
	tally   *tally
	hands   reporter // of tally
	waiting int
	lacks   bool // a closed loop has room for further queries
	sent    uint64
	last    int64 // when the newest query left
	turn    int   // port of the next burst
	offset  int64 // of the realtime clock from the monotonic one, nanoseconds
	stepped int64 // when the realtime clock was last seen to be set, monotonic; 0: never
	bursts  uint64
	cost    usualCost
	early   float64 // how late a wake-up usually is, nanoseconds
	reports *sys.Departures
	scratch []byte
}

// Sizes of a worker's system calls.
const (
	// closedBurst is the most queries that a closed loop sends from one port at a time. A server with
	// several threads chooses one by the port, so larger bursts would load them unevenly.
	closedBurst     = 16
	receiveMessages = 64
	answerBytes     = 4096             // longer answers than these, and than the queries allow, are oversize
	shortWait       = time.Millisecond // up to here a worker sleeps without looking for answers
	sweepEvery      = 5 * time.Millisecond
)

func newBatched(o Options) (_ *batched, err error) {
	b := &batched{o: o}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	for n := range o.Workers {
		w := &worker{
			o: o, rate: o.Rate / float64(o.Workers), most: share(o.Outstanding, n, o.Workers),
			queries: (o.Queries + uint64(o.Workers-1-n)) / uint64(o.Workers), // in turn, as drawers draw
			outbox:  sys.NewOutbox(mostBurst),
			inbox:   sys.NewInbox(receiveMessages, max(answerBytes, o.Names.UDPBytes())),
			drawer:  o.Names.Drawer(n, o.Workers, o.Seed, o.FreshFrom), judge: newJudge(o.Names, UDP), tally: newTally(),
			scratch: make([]byte, sys.ErrorScratchBytes), reports: sys.NewDepartures(mostMarks),
		}
		memory := make([]byte, mostBurst*o.Names.Longest())
		w.memory = make([]byte, mostBurst*o.Names.Longest())
		for i := range mostBurst {
			w.slots = append(w.slots, memory[i*o.Names.Longest():(i+1)*o.Names.Longest()])
		}
		sockets := share(o.Sockets, n, o.Workers)
		b.workers = append(b.workers, w)
		if w.poller, err = sys.NewPoller(sockets); err != nil {
			return nil, err
		}
		for i := range sockets {
			p, err := openPort(o, o.inFlight(o.Sockets))
			if err != nil {
				return nil, err
			}
			w.ports = append(w.ports, p)
			w.split = sys.ProbeSegments(p.fd) == nil
			if err := w.poller.Add(p.fd, false, i); err != nil {
				return nil, err
			}
		}
	}
	return b, nil
}

// share returns the part of n-th of several, as even as whole numbers allow.
func share(all, n, of int) int { return all*(n+1)/of - all*n/of }

// openPort opens the two sockets of a port.
func openPort(o Options, inFlight int) (_ port, err error) {
	p := port{fd: -1, stranger: -1}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	any := netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
	if !o.Server.Addr().Unmap().Is4() {
		any = netip.AddrPortFrom(netip.IPv6Unspecified(), 0)
	}
	// The kernel delivers to the connected socket what the server sends, and everything else to the
	// other one, see sys.DatagramOptions.
	shared := sys.DatagramOptions{Shared: true}
	if p.stranger, err = sys.OpenDatagram(any, netip.AddrPort{}, shared); err != nil {
		return p, err
	}
	local, err := sys.LocalAddress(p.stranger)
	if err != nil {
		return p, err
	}
	if p.fd, err = sys.OpenDatagram(local, o.Server, shared); err != nil {
		return p, err
	}
	if err = sys.SetSendTimes(p.fd); err == nil {
		p.departures = departures{on: true, ring: make([]marked, mostMarks)}
	} else if err = sys.SetReceiveTimes(p.fd, true); err != nil {
		return p, err
	}
	// As much as the host allows: a burst of answers must wait for the worker to wake up.
	_ = sys.SetReceiveBufferBytes(p.fd, 4<<20)
	var secret [2]byte
	if _, err = crand.Read(secret[:]); err != nil {
		return p, fmt.Errorf("choose query ids: %w", err)
	}
	p.table = newTable(inFlight, binary.BigEndian.Uint16(secret[:]))
	return p, nil
}

func (p port) close() {
	for _, fd := range []int{p.fd, p.stranger} {
		if fd >= 0 {
			_ = sys.Close(fd) // nothing is unwritten
		}
	}
}

func (b *batched) method() string {
	if b.workers[0].split {
		return "sendmmsg with gso, recvmmsg"
	}
	return "sendmmsg, recvmmsg"
}

func (b *batched) reporters() int { return len(b.workers) }

func (b *batched) warnings() []string { return nil }

func (b *batched) close() {
	for _, w := range b.workers {
		for _, p := range w.ports {
			p.close()
		}
		if w.poller != nil {
			w.poller.Close()
		}
	}
}

// run starts all workers and waits for them.
func (b *batched) run(ctx context.Context, c clock) (last int64, err error) {
	var group sync.WaitGroup
	errs := make([]error, len(b.workers))
	// The workers keep their logical processors while they sleep, so there must be more of them.
	defer engines.LendProcessors(len(b.workers))()
	for i, w := range b.workers {
		group.Go(func() {
			runtime.LockOSThread()   // the thread ends with the goroutine, and with it the timer slack
			_ = sys.SetExactTimers() // else the wake-ups are some 50 µs late, which the send delay shows
			errs[i] = w.run(ctx, c, i)
		})
	}
	group.Wait()
	for _, w := range b.workers {
		last = max(last, w.last)
	}
	return last, errors.Join(errs...)
}

// run sends and receives until the end of the load and of the wait for its last answers.
func (w *worker) run(ctx context.Context, c clock, number int) error {
	w.last = c.start
	pace := newPacer(w.rate, c.start+int64(float64(number)*1e9/w.o.Rate))
	sweep := c.start
	sending := true
	w.hands = reporter{clock: c, number: number, from: c.start}
	for {
		now := int64(sys.Monotonic())
		if sending && (ctx.Err() != nil || now >= c.end && (w.o.Mode == Closed || pace.due() >= c.end) ||
			w.queries > 0 && w.sent >= w.queries) {
			sending = false
			w.lacks = false
			w.hand(w.sendEnd(c, &pace), sent)
		}
		if !sending && (w.waiting == 0 || ctx.Err() != nil) {
			break
		}
		if sending && w.o.Mode == Open {
			if err := w.sendDue(&pace, now, c.end); err != nil {
				return err
			}
		}
		got, err := w.drain()
		if err != nil {
			return err
		}
		if sending && w.o.Mode == Closed { // before the rest, which lasts until the next answer
			if err := w.refill(); err != nil {
				return err
			}
		}
		if now-sweep >= int64(sweepEvery) {
			sweep = now
			w.sweep(now)
			if w.hands.due(now) {
				w.hand(int64(sys.Monotonic()), sends)
			}
		}
		if err := w.rest(&pace, now, got, sending); err != nil {
			return err
		}
	}
	if w.waiting > 0 { // the load was interrupted: what has arrived still counts
		if _, err := w.drain(); err != nil {
			return err
		}
		w.tally.Interrupted += uint64(w.waiting)
	}
	w.strangers()
	for _, p := range w.ports {
		if n, err := sys.SocketDrops(p.fd); err == nil {
			w.tally.drops += uint64(n)
		}
	}
	w.hand(int64(sys.Monotonic()), waits)
	return nil
}

// sendEnd returns until when the rates of a worker count that sends no more.
func (w *worker) sendEnd(c clock, pace *pacer) int64 {
	if w.o.Mode == Closed {
		return c.sendEnd(w.last, 0)
	}
	return c.sendEnd(w.last, pace.due())
}

// hand gives the tally of the time until a moment to the collector and begins a new one.
func (w *worker) hand(to int64, s stage) {
	w.hands.hand(w.tally, to, s)
	w.tally = newTally()
}

// rest sleeps until something may be due.
func (w *worker) rest(pace *pacer, now int64, got int, sending bool) error {
	until := sweepEvery
	if sending && w.o.Mode == Open {
		at := pace.due() - w.cost.of(0)
		wake := at - int64(w.early)
		until = time.Duration(wake - int64(sys.Monotonic()))
		if until <= shortWait {
			if until > 0 {
				// Answers wait in the socket meanwhile, with the time of their arrival.
				sys.SleepUntilKept(time.Duration(wake))
				w.wokeUp(int64(sys.Monotonic())-wake, pace.gap)
			}
			for int64(sys.Monotonic()) < at { // a wake-up that was less late than usual
			}
			return nil
		}
		until -= shortWait / 2 // the last part is a sleep as above
	} else if w.lacks || got > 0 && w.o.Mode == Closed && sending && w.most <= gatherAbove {
		return nil
	}
	ready, err := w.poller.Await(min(until, sweepEvery))
	if err == nil && ready && (!sending || w.o.Mode == Closed) && w.most > gatherAbove {
		// The first of several answers: the others of its burst follow at once, and one call for all of
		// them costs this host, and often the server on it, a fraction of one for each.
		sys.SleepUntilKept(sys.Monotonic() + w.gather())
	}
	return err
}

// A closed loop with more queries than gatherAbove waits after an answer, to receive several at a
// time. If the mean latency is well above the least one, queries queue at the server, and a wait of
// half of it leaves half of them there: it costs no rate. Otherwise the path is the
// limit, and the wait is a twentieth.
const (
	gatherAbove  = 8
	leastGather  = 20 * time.Microsecond
	mostGather   = 300 * time.Microsecond
	queuedFactor = 3
)

// gather returns how long to wait for further answers after the first.
func (w *worker) gather() time.Duration {
	share := time.Duration(20)
	if w.judge.recent > queuedFactor*w.judge.least {
		share = 2
	}
	return min(max(time.Duration(w.judge.recent)/share, leastGather), mostGather)
}

// sendDue sends the bursts that are due. A burst that finds no room in its table stays due.
func (w *worker) sendDue(pace *pacer, now, end int64) error {
	for range len(w.ports) {
		due := pace.due()
		if due-w.cost.of(0) > now || due >= end || w.queries > 0 && w.sent >= w.queries {
			return nil
		}
		n := pace.burst
		if w.queries > 0 {
			n = int(min(uint64(n), w.queries-w.sent))
		}
		p := w.nextPort(n)
		if p == nil {
			return nil
		}
		if err := w.send(p, n, due); err != nil {
			return err
		}
		pace.count++
		now = w.last
	}
	return nil
}

// refill sends as many queries as a closed loop lacks.
func (w *worker) refill() error {
	w.lacks = false
	for range 2 * len(w.ports) {
		n := min(w.most-w.waiting, closedBurst)
		if w.queries > 0 {
			n = int(min(uint64(n), w.queries-w.sent))
		}
		if n <= 0 {
			return nil
		}
		p := w.nextPort(n)
		if p == nil {
			return nil
		}
		if err := w.send(p, n, 0); err != nil {
			return err
		}
	}
	w.lacks = w.waiting < w.most // the rest follows when what has arrived is read
	return nil
}

// nextPort returns the port of the next burst, or nil if no table has room for it.
func (w *worker) nextPort(n int) *port {
	for range w.ports {
		p := &w.ports[w.turn]
		if w.turn++; w.turn == len(w.ports) {
			w.turn = 0
		}
		if p.table.room() >= n {
			return p
		}
	}
	return nil
}

// drain receives what has arrived and returns how many queries ended.
func (w *worker) drain() (ended int, err error) {
	ready, err := w.poller.Check()
	if err != nil {
		return 0, err
	}
	for i := range ready {
		p := &w.ports[w.poller.Ready(i)]
		readable, failed := w.poller.Events(i)
		if failed && w.collectDepartures(p) && !readable {
			continue
		}
		for range 16 { // so that a flood of answers cannot hold up the schedule
			n, err := w.inbox.Receive(p.fd, receiveMessages, false)
			if errors.Is(err, sys.ErrTimeout) {
				break
			}
			if err != nil {
				if again, fatal := w.refusal(p.fd, err); fatal != nil {
					return ended, fatal
				} else if again {
					continue
				}
				break
			}
			now, _ := w.clocks()
			for k := range n {
				m := w.inbox.Message(k)
				if m.Truncated {
					w.tally.wrong(message.Oversize)
					continue
				}
				arrived, known := w.arrival(m.ArrivedNanos, now)
				if known {
					w.expire(p, arrived) // before a sweep, if this thread stood still
				}
				if w.judge.receive(m.Payload, arrived, p.table, w.tally) {
					ended++
				}
			}
			if n < receiveMessages {
				break
			}
		}
	}
	w.waiting -= ended
	return ended, nil
}

// clocks reads the monotonic clock, and by how much the realtime clock of arrival times is ahead of
// it. A thread that is suspended between the two readings would shift all latencies, so a reading
// that took long is replaced by the one before.
func (w *worker) clocks() (now, offset int64) {
	for range 3 {
		before := int64(sys.Monotonic())
		real := time.Now().UnixNano()
		now = int64(sys.Monotonic())
		if now-before < closeReading {
			w.compare(now, real)
			return now, w.offset
		}
	}
	if w.offset == 0 {
		w.offset = time.Now().UnixNano() - now
	}
	return now, w.offset
}

// clockStep is by how many nanoseconds the realtime clock moves against the monotonic one from one
// reading to the next when it is set, and not only made faster or slower.
const clockStep = 10_000_000

// compare notes a reading of both clocks.
func (w *worker) compare(now, real int64) {
	if change := real - now - w.offset; w.offset != 0 && (change > clockStep || change < -clockStep) {
		w.stepped = now
	}
	w.offset = real - now
}

// arrival returns when a message arrived, from its time on the realtime clock; 0: it has none. The
// message may have waited for as long as this process stood still. What arrived before the clock
// was set counts as arrived now, and its time is not known: a step of the clock would be measured
// otherwise.
func (w *worker) arrival(at, now int64) (arrived int64, known bool) {
	if arrived = at - w.offset; at != 0 && arrived <= now && arrived >= w.stepped {
		return arrived, true
	}
	return now, false
}

// closeReading is how long three readings of clocks take at most, in nanoseconds, without an
// interruption; usually it is a tenth of a microsecond.
const closeReading = 2000

// sweep ends the wait for queries whose timeout has passed.
func (w *worker) sweep(now int64) {
	for i := range w.ports {
		p := &w.ports[i]
		w.expire(p, now)
		w.overdue(p, now)
	}
}

// expire ends the wait for queries of a port whose timeout has passed at a moment.
func (w *worker) expire(p *port, at int64) {
	n := p.table.expire(at - int64(w.o.Timeout))
	w.waiting -= n
	w.tally.Lost += uint64(n)
}

// strangers counts what other addresses and ports sent to ours: what waits in their sockets, and
// what did not fit.
func (w *worker) strangers() {
	for _, p := range w.ports {
		all, _ := sys.SocketDrops(p.stranger) // without them (before Linux 4.12) it counts what waits
		for range strangerCalls {
			n, err := w.inbox.Receive(p.stranger, receiveMessages, false)
			if err != nil {
				break
			}
			all += uint32(n)
		}
		w.tally.kinds[message.OtherServer] += uint64(all)
		w.tally.WrongTotal += uint64(all)
	}
}

// strangerCalls empty a socket of the default size. A flood may fill it meanwhile.
const strangerCalls = 32
