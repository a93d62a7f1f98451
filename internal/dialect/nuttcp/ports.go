package nuttcp

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"

	"github.com/linerate/linerate/internal/kernel/incoming"
	"github.com/linerate/linerate/internal/traffic/service"
)

// ports are the data ports on which a server listens while tests wait there.
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

// dataPort is one socket and the number of its tests.
type dataPort struct {
	*Arrivals
	close func()
	users int
}

// use listens on a port, together with the tests that already do; the caller calls leave once.
func (ps *ports) use(ctx context.Context, key portKey) (a *Arrivals, leave func(), err error) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	// Tests of several addresses usually share the default port; the address separates their
	// arrivals.
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
		// Closed while the lock is held, so that a new test finds either this socket or a free
		// port.
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
	// The socket belongs to all of its tests, so it outlives the first one. close must end it
	// before another test may want the port.
	serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	if key.udp {
		pc, err := lc.ListenPacket(ctx, "udp", address)
		if err != nil {
			cancel()
			return fmt.Errorf("listen for data: %w", err)
		}
		// Datagrams of strangers are not logged: anyone can send them.
		take := func(d service.Datagram) { p.TakePacket(d) }
		ended := make(chan struct{})
		ps.all.Go(func() {
			defer close(ended)
			_ = service.Receive(serving, pc.(*net.UDPConn), take, nil) // only close ends it, which is no error
		})
		p.close = func() {
			cancel()
			_ = pc.Close() // nothing is queued
			<-ended        // Receive may be the one that closes
		}
		return nil
	}
	l, err := service.ListenTCP(ctx, address)
	if err != nil {
		cancel()
		return fmt.Errorf("listen for data: %w", err)
	}
	take := func(conn *net.TCPConn) {
		if !p.TakeConn(conn) {
			ps.log("nuttcp data from %s: turned away: no test of this address waits for a connection",
				service.From(conn))
			_ = conn.Close() // no test uses it
		}
	}
	report := incoming.Log(func(sentence string) { ps.log("%s", sentence) })
	ps.all.Go(func() {
		_ = incoming.Connections(serving, l.AcceptTCP, report, take) // as above
	})
	p.close = func() {
		cancel()
		_ = l.Close() // as above
	}
	return nil
}
