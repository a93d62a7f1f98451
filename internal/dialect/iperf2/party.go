package iperf2

import (
	"net/netip"
	"sync"

	"github.com/linerate/linerate/internal/traffic/admission"
)

// maxStreams is how many connections one test may have, whatever its client says.
const maxStreams = 128

// parties are the tests that have several connections (-P): they visit together, because a test is
// what the gate admits, and a gate that counts connections would take eight of sixteen. Nothing in
// the protocol says which connections belong together, but that they come from one address and all
// say the same number.
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
	joined int // since it began
	inside int // now
}

// join admits one connection of a test with so many; leave must be called once.
func (ps *parties) join(gate *admission.Gate, from netip.Addr, streams int) (visit *admission.Visit, leave func(),
	err error) {
	// A number from a stranger; more than that would let any number of connections in for one
	// visit.
	streams = max(1, min(streams, maxStreams))
	key := partyKey{from, streams}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p := ps.open[key]
	if p == nil || p.joined >= streams {
		// A complete party stays with its own connections; the next connection begins another one.
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
