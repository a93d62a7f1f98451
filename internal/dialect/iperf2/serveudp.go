package iperf2

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/kernel/incoming"
	"github.com/linerate/linerate/internal/traffic/service"
)

// maxFlows is how many UDP tests a server follows at a time. A new test that finds the table full
// replaces the one that has received least: forged addresses, which send one datagram each, only
// displace one another.
const maxFlows = 256

// firstIDs bounds the number with which a bare datagram may begin a test; the ones before it may
// have been lost.
const firstIDs = 1 << 16

// flow is one UDP test at the server.
type flow struct {
	count
	heard  time.Duration // arrival of its last datagram of any kind
	credit int           // bytes of packets that came from its address, less those sent there
	ended  bool
	trip   bool // the report contains one-way delays
	old    bool // see report
	report report
	// the client wants datagrams from here: at least half of its test is refused
	reverse bool
	// where the client waits for datagrams (-d and -r); 0: nowhere
	listens uint16
	atOnce  bool // it waits while it sends (-d)
	// how many ends were sent there, when the next one is due, and their socket: the program keeps
	// the streams of one client (-P) apart by the port that they come from
	backEnds int
	backNext time.Duration
	back     *net.UDPConn
	taken    atomic.Bool // the client has confirmed one of them
	// it wants nothing else: it repeats its first datagram, and is logged once
	refused bool
}

// flowTable holds the UDP tests of a server by client address.
type flowTable struct {
	mu    sync.Mutex
	flows map[netip.AddrPort]*flow
	log   func(string, ...any)
	wall  time.Duration // wall clock at the zero of the clock of arrivals
}

func newFlowTable(log func(string, ...any), wall time.Duration) *flowTable {
	return &flowTable{flows: make(map[netip.AddrPort]*flow), log: log, wall: wall}
}

// answer is what a datagram is due.
type answer int

const (
	noAnswer answer = iota
	theReport
	// theEnd is the end of a stream of no datagrams: the client stops waiting for them, and counts
	// this one. Nothing proves that its address is its own, so it gets no others.
	theEnd
)

// Answers to an unproven address. They go to a forged one too, so they are never more than what
// came from it, and the gate bounds those to one source.
const (
	// ends of a stream, in case some are lost
	mostEnds = 10
	// The same at the port where a client waits while it sends: with its second and third datagram,
	// and then 10, 20, 40 ms and so on after the first, up to 5 s. The program sends from one thread
	// and opens the port in another, which a busy host may run much later. What comes after it has
	// confirmed one makes it warn, so none is sent then.
	mostBackEnds = 12
	backEndsGap  = 10 * time.Millisecond
	// packetHeaders are those of IPv4 and UDP.
	packetHeaders = 28
	// backBytes is what the end of a stream at that port takes, two packets.
	backBytes = 2 * (markBytes + packetHeaders)
	// lowestPort is that of the first client. Below it are services, which a forged request would
	// make answer in turn.
	lowestPort = 1024
)

// ServePacket processes one datagram and answers it where an answer is due.
func (s *Server) ServePacket(d service.Datagram) {
	p, from := d.Payload, d.From
	r, due := s.flows.take(p, from, d.At.Sub(s.started))
	defer s.endBack(d, due)
	if due == noAnswer || from.Port() < lowestPort {
		return
	}
	size := s.flows.pay(from, due)
	if size == 0 || !s.o.Gate.Allow(from.Addr(), 1, size) {
		return
	}
	out := make([]byte, size)
	if due == theReport {
		if r.put(out); r.old {
			out = cut(out)
		}
	} else {
		mark{id: -1, sent: s.now() + s.flows.wall}.put(out)
	}
	_ = d.Answer(out) // the client repeats its request if the answer is lost
}

// endBack ends the half of a test with -d or -r for which the client waits at a port of its own: a
// first datagram, and the end of a stream. The program would wait for ever.
func (s *Server) endBack(d service.Datagram, due answer) {
	port := s.flows.listener(d.From, due)
	if port < lowestPort || d.From.Port() < lowestPort || !s.o.Gate.Allow(d.From.Addr(), 2, 2*markBytes) {
		return
	}
	conn := s.flows.backSocket(d.From, s.Addr().Addr())
	if conn == nil {
		return
	}
	now := s.now() + s.flows.wall
	for _, id := range []int64{1, -2} {
		var out [markBytes]byte
		mark{id: id, sent: now}.put(out[:])
		// repeated with the next datagrams
		_, _ = conn.WriteToUDPAddrPort(out[:], netip.AddrPortFrom(d.From.Addr(), port))
	}
}

// listener returns the port at which the client of a datagram waits for the end of a stream; 0: at
// none, or not now.
func (t *flowTable) listener(from netip.AddrPort, due answer) uint16 {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.flows[from]
	if f == nil || f.listens == 0 || f.credit < backBytes || due != theReport && !f.backEndDue() {
		return 0
	}
	f.credit -= backBytes
	return f.listens
}

// pay returns the length of an answer and takes it from the credit of the flow; 0: that is too
// little, and the client asks again.
func (t *flowTable) pay(from netip.AddrPort, due answer) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.flows[from]
	if f == nil {
		return 0
	}
	size, rest := markBytes, f.credit-packetHeaders
	if due == theReport {
		if f.listens > 0 && !f.atOnce {
			rest -= backBytes // the end for which it waits goes with the report: it asks no more
		}
		if size = longReportBytes; rest < size {
			size = reportBytes
		}
	}
	if rest < size {
		return 0
	}
	f.credit -= size + packetHeaders
	return size
}

// backSocket returns the socket of a client's flow to the port where the client waits; nil if the
// flow is gone, or if none can be opened. The table closes it with the flow.
func (t *flowTable) backSocket(from netip.AddrPort, local netip.Addr) *net.UDPConn {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.flows[from]
	if f == nil {
		return nil
	}
	if f.back == nil {
		conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(local, 0)))
		if err != nil {
			return nil
		}
		f.back = conn
		go f.awaitTaken(conn, from.Addr())
	}
	return f.back
}

// awaitTaken waits for the report with which a client confirms an end, until the socket is closed.
func (f *flow) awaitTaken(conn *net.UDPConn, client netip.Addr) {
	var report [2048]byte
	var retry incoming.Retry
	for {
		_, from, err := conn.ReadFromUDPAddrPort(report[:])
		if err != nil {
			if retry.After(context.Background(), err) != nil {
				return
			}
			continue
		}
		retry.Done()
		if from.Addr().Unmap() == client {
			f.taken.Store(true)
			return
		}
	}
}

// backEndDue reports whether the latest datagram of a client that waits while it sends is answered
// at its port, and counts that answer.
func (f *flow) backEndDue() bool {
	if !f.atOnce || f.ended || f.received <= 1 || f.backEnds >= mostBackEnds || f.heard < f.backNext ||
		f.taken.Load() {
		return false
	}
	f.backEnds++
	if f.backEnds > 1 {
		f.backNext = f.first + backEndsGap<<(f.backEnds-2)
	}
	return true
}

// take counts a datagram and returns what it is due.
func (t *flowTable) take(p []byte, from netip.AddrPort, now time.Duration) (r report, due answer) {
	m, ok := parseMark(p)
	if !ok {
		return report{}, noAnswer
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.flows[from]
	switch {
	case f == nil && m.id < 0:
		return report{}, noAnswer // of a test that ended long ago or never existed
	case f == nil && isReport(p):
		return report{}, noAnswer // of a client, about what endBack sent
	case f == nil || f.ended && m.id == 1:
		// Without settings, only a low number marks a beginning: any other datagram may be
		// unrelated.
		if !m.wide && m.id > firstIDs {
			return report{}, noAnswer
		}
		f = t.begin(p, from)
	}
	f.heard = now
	f.credit += len(p) + packetHeaders
	switch {
	case f.refused:
		return report{}, theEnd
	case f.ended && m.id < 0:
		return f.report, theReport
	case f.ended:
		return report{}, noAnswer // overtaken by the end of its test
	case m.id >= 0:
		f.add(m, len(p), now)
		// Not for the first datagram: both threads of the program (--full-duplex) then wait for
		// each other, and one that ends meanwhile leaves the other waiting for seconds and sending
		// nothing.
		if f.reverse && f.received > 1 && f.received <= 1+mostEnds {
			return report{}, theEnd
		}
		return report{}, noAnswer
	}
	// The program counts the first datagram that marks the end as one of the test. Its number is
	// the count of all datagrams, including itself. The number grows when it is repeated, so a lost
	// first one is in the total and in the loss.
	total := -m.id
	f.add(mark{id: total, sent: m.sent}, len(p), now)
	f.ended, f.report = true, f.count.report(total)
	f.report.old = f.old
	if f.trip {
		f.report.trips = f.trips(t.wall)
	}
	t.logFlow(from, f)
	return f.report, theReport
}

// isReport reports whether a datagram is a report and not the first one of a test.
func isReport(p []byte) bool {
	_, ok := parseReport(p)
	return ok && !looksLikeSettings(p[markBytes:])
}

// begin makes the flow of a client whose first datagram is p. Each client is logged once, although
// it repeats its request until an answer comes.
func (t *flowTable) begin(p []byte, from netip.AddrPort) *flow {
	f := &flow{}
	if len(p) >= markBytes {
		at := settingsAt(p)
		s := parseSettings(p[at:])
		f.old = at == bareMarkBytes
		f.trip, f.reverse, f.refused = s.trip, s.reverse || s.duplex, s.reverse && !s.duplex
		if s.connect && s.port <= 65535 {
			f.listens, f.atOnce = uint16(s.port), s.atOnce
		}
	}
	t.insert(from, f)
	switch {
	case f.refused:
		t.log("iperf2 udp from %s: turned away: it requests datagrams (-R), and nothing proves that the address is "+
			"its own", from)
	case f.listens > 0:
		t.log("iperf2 udp from %s: gets no datagrams (-d or -r), because nothing proves that the address is its own; "+
			"its own are counted", from)
	case f.reverse:
		t.log("iperf2 udp from %s: gets no datagrams (--full-duplex), because nothing proves that the address is its "+
			"own; its own are counted", from)
	}
	return f
}

// insert adds a flow to the table, replacing another one if it is full. The caller holds the lock.
func (t *flowTable) insert(from netip.AddrPort, f *flow) {
	if len(t.flows) >= maxFlows {
		var victim netip.AddrPort
		var least *flow
		for a, o := range t.flows {
			if least == nil || o.received < least.received {
				victim, least = a, o
			}
		}
		t.forget(victim)
	}
	t.forget(from) // an earlier test of it
	t.flows[from] = f
}

// forget removes the flow of an address, if there is one. The caller holds the lock.
func (t *flowTable) forget(from netip.AddrPort) {
	if f := t.flows[from]; f != nil && f.back != nil {
		_ = f.back.Close()
	}
	delete(t.flows, from)
}

// sweep forgets flows that have been silent for the given time, and logs those that never ended.
func (t *flowTable) sweep(now, silent time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for a, f := range t.flows {
		if now-f.heard < silent {
			continue
		}
		t.forget(a)
		// A single datagram without a successor is noise, or forged.
		if !f.ended && f.received > 1 {
			f.report = f.count.report(f.highest)
			t.logFlow(a, f)
			t.log("iperf2 udp from %s: went silent without marking the end", a)
		}
	}
}

// logFlow logs a test.
func (t *flowTable) logFlow(from netip.AddrPort, f *flow) {
	r := f.report
	seconds := r.duration.Seconds()
	t.log("iperf2 udp from %s: received %d of %d datagrams, %d bytes in %.2f s, %s, lost %s, %d reordered, jitter %s",
		from,
		r.datagrams-r.lost, r.datagrams, r.bytes, seconds, rate(r.bytes, seconds),
		unit.FormatPercent(ratio(r.lost, r.datagrams)), r.reordered,
		unit.FormatSeconds(r.jitter.Seconds()))
}

// rate returns the rate of n bytes in a time, for display; 0 for a time of 0 or less.
func rate(n int64, seconds float64) unit.BitRate {
	if seconds <= 0 {
		return 0
	}
	return unit.BitRate(float64(n) * 8 / seconds)
}

func ratio(a, b int64) float64 {
	if b <= 0 {
		return 0
	}
	return float64(a) / float64(b)
}
