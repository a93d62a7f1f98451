package service

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"sync"

	"github.com/linerate/linerate/internal/kernel/incoming"
)

// Sockets are TCP and UDP at one port. Without UDP it is TCP alone.
type Sockets struct {
	TCP *net.TCPListener
	UDP *net.UDPConn
}

// tries is how often a port that the kernel chose for TCP may turn out to be taken in UDP. Both
// choose at random among some ten thousand, so one more try is almost always enough.
const tries = 10

// Listen opens TCP and UDP at one port. Port 0 is any port that is free for both. udp opens the
// second one; nil means a plain UDP socket.
func Listen(ctx context.Context, address string, udp func(ctx context.Context, network, address string) (*net.UDPConn,
	error)) (*Sockets, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if udp == nil {
		udp = listenPacket
	}
	for try := 1; ; try++ {
		l, err := ListenTCP(ctx, address)
		if err != nil {
			return nil, err
		}
		s := &Sockets{TCP: l}
		// The host as it was given: an address that means all addresses of both versions must mean
		// the same for UDP.
		s.UDP, err = udp(ctx, "udp", net.JoinHostPort(host, strconv.Itoa(int(s.Addr().Port()))))
		if err == nil {
			return s, nil
		}
		s.Close()
		if port != "0" || try == tries {
			return nil, err
		}
	}
}

// ListenTCP opens a socket of TCP. By default Go opens one of Multipath TCP (1.24): a client that
// speaks that would measure it, where the subject is TCP.
func ListenTCP(ctx context.Context, address string) (*net.TCPListener, error) {
	var lc net.ListenConfig
	lc.SetMultipathTCP(false)
	l, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return l.(*net.TCPListener), nil //nolint:forcetypeassert // network "tcp" returns nothing else
}

func listenPacket(ctx context.Context, network, address string) (*net.UDPConn, error) {
	var lc net.ListenConfig
	pc, err := lc.ListenPacket(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return pc.(*net.UDPConn), nil //nolint:forcetypeassert // network "udp" returns nothing else
}

// Addr returns the address that the sockets listen on.
func (s *Sockets) Addr() netip.AddrPort {
	return unmapped(s.TCP.Addr().(*net.TCPAddr).AddrPort()) //nolint:forcetypeassert // a TCP listener has no other
}

// Close closes both. It is for sockets that [Sockets.Serve], which closes them itself, never got; a
// second call does nothing.
func (s *Sockets) Close() {
	_ = s.TCP.Close() // listeners hold nothing that could be lost
	if s.UDP != nil {
		_ = s.UDP.Close() // as above
	}
}

// Handler is what a server does with what arrives.
type Handler struct {
	// Conn serves one connection to its end and closes it, on a goroutine of its own. Its context
	// ends when the server does.
	Conn func(ctx context.Context, conn *net.TCPConn)
	// Packet takes one datagram; all come from one goroutine.
	Packet func(Datagram)
	// Sweep is called every second by the goroutine of Packet; nil: the server has nothing to
	// forget.
	Sweep func()
	// Log, as of [Limited], receives why no connection can be accepted; it may be nil.
	Log func(format string, args ...any)
}

// Serve hands over what arrives until ctx ends, and then returns nil. It closes the sockets and
// returns when every connection has been served. While it runs, only [Datagram.Answer] sends on
// UDP.
func (s *Sockets) Serve(ctx context.Context, h Handler) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer incoming.CloseWith(ctx, s.Close)()
	var all sync.WaitGroup
	var received error
	if s.UDP != nil {
		all.Go(func() {
			defer cancel()
			received = Receive(ctx, s.UDP, h.Packet, h.Sweep)
		})
	}
	var report func(error)
	if h.Log != nil {
		report = incoming.Log(func(sentence string) { h.Log("%s", sentence) })
	}
	accepted := incoming.Connections(ctx, s.TCP.AcceptTCP, report, func(conn *net.TCPConn) {
		all.Go(func() { h.Conn(ctx, conn) })
	})
	cancel()
	all.Wait()
	return errors.Join(accepted, received)
}

// From returns the address of the other end of a connection; an IPv4 address as such, even where a
// socket for both versions has it as IPv6.
func From(conn *net.TCPConn) netip.AddrPort {
	return unmapped(conn.RemoteAddr().(*net.TCPAddr).AddrPort()) //nolint:forcetypeassert // a TCP connection has no other
}

// Local returns the address of this end of a connection, as [From] does.
func Local(conn *net.TCPConn) netip.AddrPort {
	return unmapped(conn.LocalAddr().(*net.TCPAddr).AddrPort()) //nolint:forcetypeassert // as above
}

func unmapped(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}
