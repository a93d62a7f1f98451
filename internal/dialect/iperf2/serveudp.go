package iperf2

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/linerate/linerate/internal/base/unit"
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
	ended  bool
	report report
	// a refused client repeats its first datagram, and is logged once
	refused bool
}

// flowTable holds the UDP tests of a server by client address.
type flowTable struct {
	mu    sync.Mutex
	flows map[netip.AddrPort]*flow
	log   func(string, ...any)
}

func newFlowTable(log func(string, ...any)) *flowTable {
	return &flowTable{flows: make(map[netip.AddrPort]*flow), log: log}
}

// ServePacket processes one datagram that pc received, and sends a report through pc.
func (s *Server) ServePacket(pc *net.UDPConn, p []byte, from netip.AddrPort) {
	r, due := s.flows.take(p, from, s.now())
	// The address may be forged. An answer is no longer than its request, and the gate bounds the
	// answers to one source.
	if !due || len(p) < reportBytes || !s.o.Gate.Allow(from.Addr(), 1, reportBytes) {
		return
	}
	var out [reportBytes]byte
	r.put(out[:])
	_, _ = pc.WriteToUDPAddrPort(out[:], from) // the client repeats its request if the answer is lost
}

// take counts a datagram; due reports whether it requests the report.
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
		return report{}, false // of a test that ended long ago or never existed
	case f == nil || f.ended && m.id == 1:
		// Without settings, only a low number marks a beginning: any other datagram may be
		// unrelated.
		if !m.wide && m.id > firstIDs {
			return report{}, false
		}
		if m.id > 0 && len(p) >= markBytes {
			if s := parseSettings(p[markBytes:]); s.reverse || s.duplex {
				// Each client is logged once, although it repeats its request until an answer
				// comes.
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
	// The program counts the first datagram that marks the end as one of the test. Its number is
	// the count of all datagrams, including itself. The number grows when it is repeated, so a lost
	// first one is in the total and in the loss.
	total := -m.id
	f.add(mark{id: total, sent: m.sent}, len(p), now)
	f.ended, f.report = true, f.count.report(total)
	t.logFlow(from, f)
	return f.report, true
}

// refuse records a client that requests datagrams from this server, so that it is logged once.
func (t *flowTable) refuse(from netip.AddrPort, now time.Duration) {
	t.insert(from, &flow{heard: now, refused: true})
	t.log("iperf2 udp from %s: turned away: it requests datagrams (-R or --full-duplex), and "+
		"nothing proves that the address is its own", from)
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
		delete(t.flows, victim)
	}
	t.flows[from] = f
}

// sweep forgets flows that have been silent for the given time, and logs those that never ended.
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
