package ttcp

import (
	"net/netip"
	"sync"
	"time"

	"github.com/linerate/linerate/internal/traffic/service"
)

// maxFlows is how many UDP senders are followed at a time. A new sender that finds the table full
// replaces the one that has sent least: forged addresses, which send one datagram each, only
// displace one another.
const maxFlows = 256

// edgeBytes is the length of the longest datagram that marks the beginning or the end of the data.
const edgeBytes = 4

// flow is one UDP sender.
type flow struct {
	packets, bytes     int64
	first, last, heard time.Duration
}

// flowTable holds the UDP senders by address.
type flowTable struct {
	mu    sync.Mutex
	flows map[netip.AddrPort]*flow
	log   func(string, ...any)
}

func newFlowTable(log func(string, ...any)) *flowTable {
	return &flowTable{flows: make(map[netip.AddrPort]*flow), log: log}
}

// TakePacket counts a datagram. It is never answered.
func (s *Server) TakePacket(d service.Datagram) {
	s.flows.take(len(d.Payload), d.From, d.At.Sub(s.started))
}

// Sweep ends UDP senders that have been silent for long. A caller of TakePacket calls it every
// second or so.
func (s *Server) Sweep() { s.flows.sweep(s.now(), s.timing.forget) }

func (t *flowTable) take(n int, from netip.AddrPort, now time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.flows[from]
	if n <= edgeBytes {
		// Both edges look the same: it is the end if data have come. Repetitions of the end find no
		// flow.
		if f != nil && f.packets > 0 {
			delete(t.flows, from)
			t.logFlow(from, f, "")
		}
		return
	}
	if f == nil {
		f = &flow{first: now}
		t.insert(from, f)
	}
	f.packets++
	f.bytes += int64(n)
	f.last, f.heard = now, now
}

// insert adds a flow to the table, replacing another one if it is full. The caller holds the lock.
func (t *flowTable) insert(from netip.AddrPort, f *flow) {
	if len(t.flows) >= maxFlows {
		var victim netip.AddrPort
		var least *flow
		for a, o := range t.flows {
			if least == nil || o.packets < least.packets {
				victim, least = a, o
			}
		}
		delete(t.flows, victim)
	}
	t.flows[from] = f
}

// sweep ends flows that have been silent for the given time.
func (t *flowTable) sweep(now, silent time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for a, f := range t.flows {
		if now-f.heard < silent {
			continue
		}
		delete(t.flows, a)
		// A single datagram without a successor is noise, or forged.
		if f.packets > 1 {
			t.logFlow(a, f, "; it went silent without marking the end")
		}
	}
}

func (t *flowTable) logFlow(from netip.AddrPort, f *flow, rest string) {
	seconds := (f.last - f.first).Seconds()
	t.log("ttcp udp from %s: received %d datagrams, %d bytes in %.2f s, %s%s", from, f.packets, f.bytes, seconds,
		rate(f.bytes, seconds), rest)
}
