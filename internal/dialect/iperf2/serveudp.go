package iperf2

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/linerate/linerate/internal/base/unit"
)

// maxFlows is how many UDP tests a server follows at a time. A newcomer that finds the table full
// takes the place of the one that has received least: forged addresses, which send one datagram
// each, only take places from one another.
const maxFlows = 256

// firstIDs bounds the number that a bare datagram may begin a test with; those before it may have
// been lost.
const firstIDs = 1 << 16

// flow is one UDP test at the server.
type flow struct {
	count
	heard  time.Duration // its last datagram, of whatever kind
	ended  bool
	report report
	// refused is a client that was turned away. It says the same first datagram again and again,
	// and is told of once.
	refused bool
}

// flowTable holds the UDP tests of a server by their addresses.
type flowTable struct {
	mu    sync.Mutex
	flows map[netip.AddrPort]*flow
	log   func(string, ...any)
}

func newFlowTable(log func(string, ...any)) *flowTable {
	return &flowTable{flows: make(map[netip.AddrPort]*flow), log: log}
}

// ServePacket takes one datagram that was received by pc; a report is sent back from there.
func (s *Server) ServePacket(pc *net.UDPConn, p []byte, from netip.AddrPort) {
	r, due := s.flows.take(p, from, s.now())
	// The address may be forged. What goes back is no longer than what came, and the gate counts
	// how much one source gets of it.
	if !due || len(p) < reportBytes || !s.o.Gate.Allow(from.Addr(), 1, reportBytes) {
		return
	}
	var out [reportBytes]byte
	r.put(out[:])
	_, _ = pc.WriteToUDPAddrPort(out[:], from) // the client asks again when it hears nothing
}

// take counts a datagram; due tells that it asks for the report.
func (t *flowTable) take(p []byte, from netip.AddrPort, now time.Duration) (r report, due bool) {
	m, ok := parseMark(p)
	if !ok {
		return report{}, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.flows[from]
	switch {
	case f != nil && f.refused:
		f.heard = now
		return report{}, false
	case f == nil && m.id < 0:
		return report{}, false // of a test that is long over, or never was
	case f == nil || f.ended && m.id == 1:
		// Without settings a beginning has to look like one: anything else can be anybody's
		// datagram.
		if !m.wide && m.id > firstIDs {
			return report{}, false
		}
		if m.id > 0 && len(p) >= markBytes {
			if s := parseSettings(p[markBytes:]); s.reverse || s.duplex {
				// One sentence per client is what is promised: it goes on asking until it hears
				// something.
				t.refuse(from, now)
				return report{}, false
			}
		}
		f = &flow{}
		t.insert(from, f)
	}
	f.heard = now
	switch {
	case f.ended && m.id < 0:
		return f.report, true
	case f.ended:
		return report{}, false // overtaken by the end of its test
	case m.id >= 0:
		f.add(m, len(p), now)
		return report{}, false
	}
	// The program counts the first datagram that says the end as one of the test. Its number is the
	// count of all datagrams, itself included. It goes on counting when it is repeated, so a first
	// one that was lost is in the total and in the loss.
	total := -m.id
	f.add(mark{id: total, sent: m.sent}, len(p), now)
	f.ended, f.report = true, f.count.report(total)
	t.tell(from, f)
	return f.report, true
}

// refuse notes a client that wants to be sent datagrams, so that it is told of once.
func (t *flowTable) refuse(from netip.AddrPort, now time.Duration) {
	t.insert(from, &flow{heard: now, refused: true})
	t.log("iperf2 udp from %s: turned away: it asks for datagrams (-R or --full-duplex) and nothing proves that the address is its own", from)
}

// insert puts a flow into the table, in the place of another one if it must be. The caller holds
// the lock.
func (t *flowTable) insert(from netip.AddrPort, f *flow) {
	if len(t.flows) >= maxFlows {
		var victim netip.AddrPort
		var least *flow
		for a, o := range t.flows {
			if least == nil || o.received < least.received {
				victim, least = a, o
			}
		}
		delete(t.flows, victim)
	}
	t.flows[from] = f
}

// sweep forgets flows that have been silent for the given time, and tells of those that never
// ended.
func (t *flowTable) sweep(now, silent time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for a, f := range t.flows {
		if now-f.heard < silent {
			continue
		}
		delete(t.flows, a)
		// A single datagram without a successor is noise, or forged.
		if !f.ended && f.received > 1 {
			f.report = f.count.report(f.highest)
			t.tell(a, f)
			t.log("iperf2 udp from %s: went silent without saying the end", a)
		}
	}
}

// tell says what a test was.
func (t *flowTable) tell(from netip.AddrPort, f *flow) {
	r := f.report
	seconds := r.duration.Seconds()
	t.log("iperf2 udp from %s: received %d of %d datagrams, %d bytes in %.2f s, %s, lost %s, %d reordered, jitter %s",
		from,
		r.datagrams-r.lost, r.datagrams, r.bytes, seconds, rate(r.bytes, seconds),
		unit.FormatPercent(ratio(r.lost, r.datagrams)), r.reordered,
		unit.FormatSeconds(r.jitter.Seconds()))
}

// rate is n bytes in so many seconds, for people.
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
