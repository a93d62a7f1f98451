package dialect

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"

	"github.com/linerate/linerate/internal/dialect/iperf3"
	"github.com/linerate/linerate/internal/dialect/nuttcp"
	"github.com/linerate/linerate/internal/dialect/sockperf"
	"github.com/linerate/linerate/internal/dialect/stamp"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/traffic/admission"
)

// Options say where to listen and which clients to admit.
type Options struct {
	Host string          // address to listen on; empty: all
	Gate *admission.Gate // shared by all dialects; nil: one with the default limits
	// Copy makes every server copy what it moves, as the programs do. Only the one of iperf3 has
	// another way.
	Copy bool
	// of this host, for dialects that report its cost; nil: not reported
	Sample func() (*host.Counters, error)
	Log    func(string) // receives one plain sentence per client, from any goroutine; nil: none is logged
}

// server is one listener and the service behind it.
type server interface {
	Serve(ctx context.Context) error
	Addr() netip.AddrPort
}

// Place is the address at which one dialect is answered.
type Place struct {
	Dialect string
	Address netip.AddrPort
}

// Servers answer all accepted dialects.
type Servers struct {
	servers []server
	places  []Place
}

// Listen opens the ports of all accepted dialects, or none if one of them fails.
func Listen(ctx context.Context, accept []Acceptance, o Options) (*Servers, error) {
	if err := checkPorts(accept); err != nil {
		return nil, err
	}
	if o.Gate == nil {
		o.Gate = admission.New(admission.Limits{})
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	b := &builder{o: o, hubs: make(map[uint16]*hub)}
	for _, a := range accept {
		if err := b.add(ctx, a); err != nil {
			b.abandon()
			return nil, fmt.Errorf("accept %s on port %d: %w", a.Dialect, a.Port, err)
		}
	}
	return &b.Servers, nil
}

// builder makes Servers.
type builder struct {
	Servers
	o    Options
	hubs map[uint16]*hub
}

func (b *builder) address(port uint16) string {
	return net.JoinHostPort(b.o.Host, strconv.Itoa(int(port)))
}

// add opens what one acceptance needs.
func (b *builder) add(ctx context.Context, a Acceptance) error {
	d, ok := lookup(a.Dialect)
	if !ok {
		return errors.New("no such dialect")
	}
	if d.join != nil {
		h := b.hubs[a.Port]
		if h == nil || a.Port == 0 {
			var err error
			if h, err = openHub(ctx, b.address(a.Port), b.o); err != nil {
				return err
			}
			b.hubs[a.Port] = h
			b.servers = append(b.servers, h)
		}
		d.join(h)
		b.places = append(b.places, Place{a.Dialect, h.Addr()})
		return nil
	}
	s, err := d.listen(ctx, b.address(a.Port), b)
	if err != nil {
		return err
	}
	b.servers = append(b.servers, s)
	b.places = append(b.places, Place{a.Dialect, s.Addr()})
	return nil
}

func listenIperf3(ctx context.Context, at string, b *builder) (server, error) {
	return iperf3.Listen(ctx, iperf3.ServerOptions{Address: at, Gate: b.o.Gate, Copy: b.o.Copy, Sample: b.o.Sample,
		Log: b.o.Log})
}

func listenNuttcp(ctx context.Context, at string, b *builder) (server, error) {
	return nuttcp.Listen(ctx, nuttcp.ServerOptions{Address: at, Gate: b.o.Gate, Log: b.o.Log, Shared: b.arrivals})
}

func listenSockperf(ctx context.Context, at string, b *builder) (server, error) {
	return sockperf.Listen(ctx, sockperf.ServerOptions{Address: at, Gate: b.o.Gate, Sample: b.o.Sample, Log: b.o.Log})
}

func listenSTAMP(ctx context.Context, at string, b *builder) (server, error) {
	return stamp.Listen(ctx, stamp.ServerOptions{Address: at, Gate: b.o.Gate, Sample: b.o.Sample, Log: b.o.Log})
}

// arrivals returns the nuttcp arrivals of the hub that listens on a port; nil if no hub does. It is
// called once all ports are open, when b.hubs no longer changes.
func (b *builder) arrivals(port int) *nuttcp.Arrivals {
	for _, h := range b.hubs {
		if int(h.Addr().Port()) == port {
			return h.nuttcp
		}
	}
	return nil
}

// abandon closes all opened servers: a server whose context has ended closes everything and
// returns.
func (b *builder) abandon() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, s := range b.servers {
		_ = s.Serve(ctx) // the caller returns the error that matters
	}
}

// Places returns where the dialects are answered.
func (s *Servers) Places() []Place { return s.places }

// Serve answers until ctx ends or one of the servers fails. It then closes everything.
func (s *Servers) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	failed := make([]error, len(s.servers))
	for i, server := range s.servers {
		all.Go(func() {
			failed[i] = server.Serve(ctx)
			cancel()
		})
	}
	all.Wait()
	return errors.Join(failed...)
}
