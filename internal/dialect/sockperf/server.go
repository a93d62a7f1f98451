package sockperf

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/traffic/admission"
	"github.com/linerate/linerate/internal/traffic/service"
)

// DefaultPort is the port of sockperf, of UDP and of TCP.
const DefaultPort = 11111

// Patience with clients over TCP. A client that sends one message per second, the slowest that
// sockperf can be told to be, is never cut off.
const (
	firstWait  = 10 * time.Second // for the first byte of a connection, and for a message once it has begun
	idleWait   = 30 * time.Second // between messages
	answerWait = 10 * time.Second // for the client to take an answer
	// maxSilent is how many connections that have said nothing may be waited for at a time, and
	// maxSilentPerSource how many of one source. Each is a descriptor and a goroutine of some
	// kilobytes for firstWait at most.
	maxSilent          = 256
	maxSilentPerSource = 64
)

// ServerOptions say where a Server listens and what it grants.
type ServerOptions struct {
	// host:port, of UDP and TCP alike; an empty host is all addresses, port 0 a free one
	Address string
	Gate    *admission.Gate                // nil: one with the default limits, of this server alone
	Sample  func() (*host.Counters, error) // not called: the protocol has no room for a server's evidence
	// one sentence per client, with bounds per minute (see admission.LimitLines); may be called
	// from several goroutines; nil: silence
	Log func(string)

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
	sockets  *service.Sockets // of which echo has taken over UDP
	echo     *udpEcho
	silent   *admission.Anteroom // connections that have said nothing yet
}

// Listen opens both sockets. The Server answers once [Server.Serve] runs, which also closes it.
func Listen(ctx context.Context, o ServerOptions) (*Server, error) {
	s := &Server{
		gate: o.Gate, patience: patience{firstWait, idleWait, answerWait},
		silent: admission.NewAnteroom(maxSilent, maxSilentPerSource),
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
	// UDP and TCP at one port: a client is told one, whichever it uses.
	sockets, err := service.Listen(ctx, o.Address, nil)
	if err != nil {
		return nil, fmt.Errorf("listen for sockperf: %w", err)
	}
	s.sockets = sockets
	if s.echo, err = newUDPEcho(sockets.UDP); err != nil {
		sockets.Close()
		return nil, fmt.Errorf("listen for sockperf on udp %s: %w", sockets.Addr(), err)
	}
	return s, nil
}

// Addr is where the server listens, over UDP and TCP.
func (s *Server) Addr() netip.AddrPort { return s.sockets.Addr() }

// Close gives up a server that never came to serve. After Serve it does nothing.
func (s *Server) Close() {
	_ = s.sockets.TCP.Close() // neither socket has anything to lose
	s.echo.close()
}

// Serve answers until ctx ends and then returns nil, with both sockets closed and every client
// gone. It must be called once.
func (s *Server) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	var echoErr, acceptErr error
	// Not by Sockets.Serve: its loop takes one datagram per call, and this server has a thread of
	// its own for whole batches.
	stop := context.AfterFunc(ctx, func() {
		_ = s.sockets.TCP.Close() // wakes Accept; it has nothing to lose
		s.echo.wake()
	})
	wg.Go(func() {
		defer cancel()
		echoErr = s.echo.run(ctx, s.gate, newBook(s.logUDP))
	})
	wg.Go(func() {
		defer cancel()
		err := service.Accept(ctx, s.sockets.TCP.AcceptTCP, func(conn *net.TCPConn) { s.accept(ctx, conn, &wg) })
		if err != nil {
			acceptErr = fmt.Errorf("serve sockperf: %w", err)
		}
	})
	<-ctx.Done()
	wg.Wait()
	stop()
	s.Close()
	return errors.Join(echoErr, acceptErr)
}

// accept takes a connection, if there is room for one more that has said nothing. It is served in
// wg.
func (s *Server) accept(ctx context.Context, conn *net.TCPConn, wg *sync.WaitGroup) {
	from := service.From(conn)
	met, ok := s.silent.Enter(from.Addr())
	if !ok {
		_ = conn.Close() // nobody has been promised anything
		s.turnAway(from, errors.New("too many connections that have said nothing are waiting already"))
		return
	}
	wg.Go(func() { s.serveConn(ctx, conn, from, met) })
}

// serveConn serves one connection to its end and closes it; met is to be called when it has said
// something. Until its first bytes are there it is nobody's visitor, so that who connects and says
// nothing takes no place from clients of this dialect or another.
func (s *Server) serveConn(ctx context.Context, conn *net.TCPConn, from netip.AddrPort, met func()) {
	head, err := s.head(ctx, conn)
	// The head is there or never will be: either way it waits no more.
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
