package nuttcp

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"

	"github.com/linerate/linerate/internal/traffic/service"
)

// ports are the data ports that a server listens on while somebody waits there.
type ports struct {
	mu   sync.Mutex
	host string
	open map[portKey]*dataPort
	log  func(string, ...any)
	all  sync.WaitGroup
}

type portKey struct {
	port int
	udp  bool
}

// dataPort is one socket and how many tests use it.
type dataPort struct {
	*Arrivals
	close func()
	users int
}

// use listens on a port, together with whoever does already; leave must be called once.
func (ps *ports) use(ctx context.Context, key portKey) (a *Arrivals, leave func(), err error) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	// Tests of several addresses share a port as a rule, the one by default; their arrivals are
	// told apart by address.
	p := ps.open[key]
	if p == nil {
		p = &dataPort{Arrivals: NewArrivals()}
		if err := ps.listen(ctx, key, p); err != nil {
			return nil, nil, err
		}
		ps.open[key] = p
	}
	p.users++
	return p.Arrivals, func() {
		ps.mu.Lock()
		defer ps.mu.Unlock()
		// Closed with the lock held, so that a test which comes now finds either this socket or a
		// free port.
		if p.users--; p.users == 0 {
			delete(ps.open, key)
			p.close()
		}
	}, nil
}

// listen opens the socket of a port and reads it until it is closed. The caller holds the lock.
func (ps *ports) listen(ctx context.Context, key portKey, p *dataPort) error {
	var lc net.ListenConfig
	address := net.JoinHostPort(ps.host, strconv.Itoa(key.port))
	// The socket is of all tests that use it, so it outlives the one that came first: close ends
	// it, and has to be done with it when another test may want the port again.
	serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	if key.udp {
		pc, err := lc.ListenPacket(ctx, "udp", address)
		if err != nil {
			cancel()
			return fmt.Errorf("listen for data: %w", err)
		}
		// Strangers are not worth a word: anybody can send datagrams.
		take := func(b []byte, from netip.AddrPort) { p.TakePacket(b, from) }
		// nobody but close ends it, which is no error
		ps.all.Go(func() { _ = service.Receive(serving, pc.(*net.UDPConn), take, nil) })
		p.close = func() {
			cancel()
			_ = pc.Close() // nothing is held back
		}
		return nil
	}
	l, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		cancel()
		return fmt.Errorf("listen for data: %w", err)
	}
	take := func(conn *net.TCPConn) {
		if !p.TakeConn(conn) {
			ps.log("nuttcp data from %s: turned away: no test of this address waits for a connection",
				service.From(conn))
			_ = conn.Close() // it is of no use to anybody
		}
	}
	ps.all.Go(func() { _ = service.Accept(serving, l.(*net.TCPListener).AcceptTCP, take) }) // as above
	p.close = func() {
		cancel()
		_ = l.Close() // as above
	}
	return nil
}
