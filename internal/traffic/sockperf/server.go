package sockperf

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/traffic/admission"
)

// DefaultPort is the port of sockperf, of UDP and of TCP.
const DefaultPort = 11111

// Patience with clients over TCP. A client that sends one message per second, the slowest that sockperf can be told to be, is never cut off.
const (
	firstWait   = 10 * time.Second // for the first byte of a connection, and for a message once it has begun
	idleWait    = 30 * time.Second // between messages
	answerWait  = 10 * time.Second // for the client to take an answer
	acceptPause = 50 * time.Millisecond
	// maxSilent is how many connections that have said nothing may be waited for at a time, and maxSilentPerSource how many of one source.
	// Each is a descriptor and a goroutine of some kilobytes for firstWait at most.
	maxSilent          = 256
	maxSilentPerSource = 64
)

// ServerOptions say where a Server listens and what it grants.
type ServerOptions struct {
	Address string                         // host:port, of UDP and TCP alike; an empty host is all addresses, port 0 a free one
	Gate    *admission.Gate                // nil: one with the default limits, of this server alone
	Sample  func() (*host.Counters, error) // not called: the protocol has no room for a server's evidence
	Log     func(string)                   // one sentence per client, with bounds per minute (see admission.LimitLines); may be called from several goroutines; nil: silence

	patience *patience // tests only; nil: the constants above
}

// patience is how long a Server waits for clients over TCP.
type patience struct{ first, idle, answer time.Duration }

// Server answers sockperf clients. Make one with [Listen].
type Server struct {
	gate     *admission.Gate
	log      func(string) // of clients over TCP
	logUDP   func(string) // of sources over UDP, which prove nothing: they must not silence the others
	away     func(string) // of those that are turned away
	patience patience
	listener *net.TCPListener
	echo     *udpEcho
	addr     netip.AddrPort
	silent   *admission.Anteroom // connections that have said nothing yet
}

// Listen opens both sockets. The Server answers once [Server.Serve] runs, which also closes it.
func Listen(ctx context.Context, o ServerOptions) (*Server, error) {
	s := &Server{
		gate: o.Gate, patience: patience{firstWait, idleWait, answerWait}, silent: admission.NewAnteroom(maxSilent, maxSilentPerSource),
		log:    admission.LimitLines(o.Log, admission.ClientLines, "sockperf over tcp"),
		logUDP: admission.LimitLines(o.Log, admission.ClientLines, "sockperf over udp"),
		away:   admission.LimitLines(o.Log, admission.StrangerLines, "sockperf over tcp"),
	}
	if s.gate == nil {
		s.gate = admission.New(admission.Limits{})
	}
	if o.patience != nil {
		s.patience = *o.patience
	}
	// A free port of UDP may be taken in TCP; then another one is free in both, almost surely within a few tries.
	var err error
	for range 10 {
		if err = s.listen(ctx, o.Address); err == nil {
			return s, nil
		}
		if _, port, perr := net.SplitHostPort(o.Address); perr != nil || port != "0" {
			break
		}
	}
	return nil, err
}

// listen opens UDP, and TCP at the same port.
func (s *Server) listen(ctx context.Context, address string) error {
	var lc net.ListenConfig
	packets, err := lc.ListenPacket(ctx, "udp", address)
	if err != nil {
		return fmt.Errorf("listen for sockperf on udp %s: %w", address, err)
	}
	conn := packets.(*net.UDPConn) // what ListenPacket makes for "udp"
	local := conn.LocalAddr().(*net.UDPAddr).AddrPort()
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		_ = conn.Close() // nothing came over it
		return fmt.Errorf("listen for sockperf on %s: %w", address, err)
	}
	address = net.JoinHostPort(host, strconv.Itoa(int(local.Port())))
	streams, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		_ = conn.Close()
		return fmt.Errorf("listen for sockperf on tcp %s: %w", address, err)
	}
	echo, err := newUDPEcho(conn)
	if err != nil {
		_ = streams.Close()
		return fmt.Errorf("listen for sockperf on udp %s: %w", address, err)
	}
	s.listener, s.echo, s.addr = streams.(*net.TCPListener), echo, netip.AddrPortFrom(local.Addr().Unmap(), local.Port())
	return nil
}

// Addr is where the server listens, over UDP and TCP.
func (s *Server) Addr() netip.AddrPort { return s.addr }

// Close gives up a server that never came to serve. After Serve it does nothing.
func (s *Server) Close() {
	_ = s.listener.Close() // neither socket has anything to lose
	s.echo.close()
}

// Serve answers until ctx ends and then returns nil, with both sockets closed and every client gone. It must be called once.
func (s *Server) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	var echoErr, acceptErr error
	stop := context.AfterFunc(ctx, func() {
		_ = s.listener.Close() // wakes Accept; it has nothing to lose
		s.echo.wake()
	})
	wg.Go(func() {
		defer cancel()
		echoErr = s.echo.run(ctx, s.gate, newBook(s.logUDP))
	})
	wg.Go(func() {
		defer cancel()
		acceptErr = s.accept(ctx, &wg)
	})
	<-ctx.Done()
	wg.Wait()
	stop()
	s.Close()
	return errors.Join(echoErr, acceptErr)
}

// accept takes connections until ctx ends. The clients run in wg.
func (s *Server) accept(ctx context.Context, wg *sync.WaitGroup) error {
	for {
		conn, err := s.listener.AcceptTCP()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_ = conn.Close() // came in the last moment
			}
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("accept sockperf clients: %w", err)
		case err != nil:
			// Out of descriptors, or a client that went away in the queue: the next may be luckier, after a moment.
			select {
			case <-ctx.Done():
			case <-time.After(acceptPause):
			}
			continue
		}
		from := conn.RemoteAddr().(*net.TCPAddr).AddrPort()
		from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
		met, ok := s.silent.Enter(from.Addr())
		if !ok {
			_ = conn.Close() // nobody has been promised anything
			s.turnAway(from, errors.New("too many connections that have said nothing are waiting already"))
			continue
		}
		wg.Go(func() { s.serveConn(ctx, conn, from, met) })
	}
}

// serveConn serves one connection to its end and closes it; met is to be called when it has said something. Until its first bytes are there it is nobody's visitor, so that who connects and says
// nothing takes no place from clients of this dialect or another.
func (s *Server) serveConn(ctx context.Context, conn *net.TCPConn, from netip.AddrPort, met func()) {
	head, err := s.head(ctx, conn)
	met()
	var visit *admission.Visit
	if err == nil {
		visit, err = s.gate.Enter(from.Addr())
	}
	if err != nil {
		_ = conn.Close() // as in accept
		if ctx.Err() == nil {
			s.turnAway(from, err)
		}
		return
	}
	defer visit.Leave()
	s.log(serveStream(ctx, conn, from, visit, s.patience, head))
}

// head reads the first bytes of a connection, without a thread of its own.
func (s *Server) head(ctx context.Context, conn *net.TCPConn) ([]byte, error) {
	// Only a closed connection refuses a deadline, as the read then does.
	_ = conn.SetReadDeadline(time.Now().Add(s.patience.first))
	stop := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	head := make([]byte, 256) // a whole message as a rule, and enough to tell another dialect
	n, err := conn.Read(head)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, fmt.Errorf("%w within %v", errSilent, s.patience.first)
	case err != nil:
		return nil, fmt.Errorf("it left before anything came: %w", err)
	}
	return head[:n], nil
}

func (s *Server) turnAway(from netip.AddrPort, why error) {
	s.away(fmt.Sprintf("sockperf %s over tcp: turned away: %v", from, why))
}
