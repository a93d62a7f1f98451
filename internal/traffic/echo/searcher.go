package echo

import (
	"context"
	"net"
	"net/netip"
	"time"

	"github.com/linerate/linerate/internal/traffic/engine"
)

// SearchBound is the longest time that a search for the path MTU may take: five rounds of three
// tries on a path with a round trip of a quarter of a second that drops silently. It lies within
// the patience of both ends.
const SearchBound = 15 * time.Second

// Search is the body of the worker that searches the path MTU. It ends when it knows the result, or
// when the test is stopped.
type Search struct {
	ctx     context.Context
	cancel  context.CancelFunc
	options SearchOptions
	Found   PathMTU // when the worker has ended
	Err     error
}

// NewSearch makes that worker. Its role is a pinger's: the test waits for it to end.
func NewSearch(p *engine.Phase, o SearchOptions) (*engine.Worker, *Search) {
	s := &Search{options: o}
	s.ctx, s.cancel = context.WithCancel(context.Background()) // the test's end reaches it by Wake
	w := engine.New(engine.Pinger, p, s)
	w.Method = "path mtu search"
	return w, s
}

// Loop searches. It also keeps its error for the end of the test: by then the short window is over,
// and a worker's errors no longer count.
func (s *Search) Loop(*engine.Worker) error {
	ctx, cancel := context.WithTimeout(s.ctx, SearchBound)
	defer cancel()
	s.Found, s.Err = SearchPathMTU(ctx, s.options)
	return s.Err
}

// Wake ends the search with what it has.
func (s *Search) Wake() { s.cancel() }

// Close releases what Wake would release.
func (s *Search) Close() { s.cancel() }

// InterfaceMTU returns the MTU in bytes of the interface that has an address; 0: not known.
func InterfaceMTU(address string) int {
	want, err := netip.ParseAddr(address)
	if err != nil {
		return 0
	}
	all, err := net.Interfaces()
	if err != nil {
		return 0
	}
	for _, i := range all {
		addrs, err := i.Addrs()
		if err != nil {
			continue
		}
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().WithZone("") == want {
				return i.MTU
			}
		}
	}
	return 0
}
