package nuttcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"
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

// receiveBufferBytes is asked for so that a burst at full rate survives a moment without the processor. The kernel grants what
// net.core.rmem_max allows.
const receiveBufferBytes = 4 << 20

// use listens on a port, together with whoever does already; leave must be called once.
func (ps *ports) use(ctx context.Context, key portKey) (a *Arrivals, leave func(), err error) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
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
	if key.udp {
		pc, err := lc.ListenPacket(ctx, "udp", address)
		if err != nil {
			return fmt.Errorf("listen for data: %w", err)
		}
		p.close = func() { _ = pc.Close() } // nothing is held back
		ps.all.Go(func() { readPackets(pc.(*net.UDPConn), p.Arrivals) })
		return nil
	}
	l, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen for data: %w", err)
	}
	p.close = func() { _ = l.Close() } // as above
	ps.all.Go(func() { ps.accept(l.(*net.TCPListener), p.Arrivals) })
	return nil
}

// accept hands connections over until the listener is closed.
func (ps *ports) accept(l *net.TCPListener, a *Arrivals) {
	for {
		conn, err := l.AcceptTCP()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			time.Sleep(50 * time.Millisecond) // the peer was gone before, or there are no descriptors left
		case !a.TakeConn(conn):
			ps.log("nuttcp data from %s: turned away: no test of this address waits for a connection", conn.RemoteAddr())
			_ = conn.Close() // it is of no use to anybody
		}
	}
}

// readPackets hands datagrams over until the socket is closed.
func readPackets(conn *net.UDPConn, a *Arrivals) {
	_ = conn.SetReadBuffer(receiveBufferBytes) // less is slower, not wrong
	p := make([]byte, 64<<10)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(p)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			a.TakePacket(p[:n], from) // strangers are not worth a word: anybody can send datagrams
		}
	}
}
