package iperf2

import (
	"net/netip"
	"sync"

	"github.com/linerate/linerate/internal/traffic/admission"
)

// maxStreams is how many connections one test may have, however many its client announces.
const maxStreams = 128

// parties are the tests with several connections (-P). The connections of one test share a visit,
// because the gate admits tests; a gate that counted connections would admit eight of sixteen. The
// protocol does not say which connections belong together: they come from one address and announce
// the same number.
type parties struct {
	mu   sync.Mutex
	open map[partyKey]*party
}

type partyKey struct {
	from    netip.Addr
	streams int
}

// party is one test.
type party struct {
	visit  *admission.Visit
	joined int // since the test began
	inside int // now
}

// join admits one connection of a test with that many streams; the caller calls leave once.
func (ps *parties) join(gate *admission.Gate, from netip.Addr, streams int) (visit *admission.Visit, leave func(),
	err error) {
	// The client chooses the number. Without the bound, one visit could admit any number of
	// connections.
	streams = max(1, min(streams, maxStreams))
	key := partyKey{from, streams}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p := ps.open[key]
	if p == nil || p.joined >= streams {
		// A complete party keeps its own connections; the next connection begins another one.
		visit, err := gate.Enter(from)
		if err != nil {
			return nil, nil, err
		}
		p = &party{visit: visit}
		if streams > 1 {
			ps.open[key] = p
		}
	}
	p.joined++
	p.inside++
	return p.visit, func() {
		ps.mu.Lock()
		defer ps.mu.Unlock()
		if p.inside--; p.inside > 0 {
			return
		}
		p.visit.Leave()
		if ps.open[key] == p {
			delete(ps.open, key)
		}
	}, nil
}
