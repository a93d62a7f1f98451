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
	"github.com/linerate/linerate/internal/kernel/incoming"
	"github.com/linerate/linerate/internal/traffic/admission"
	"github.com/linerate/linerate/internal/traffic/service"
)

// DefaultPort is the port of sockperf, of UDP and of TCP.
const DefaultPort = 11111

// Timeouts of TCP clients. A client that sends one message per second, the slowest rate of
// sockperf, is never cut off.
const (
	firstWait  = 10 * time.Second // for the first byte of a connection, and for the rest of a message
	idleWait   = 30 * time.Second // between messages
	answerWait = 10 * time.Second // for the client to take an answer
	// maxSilent bounds the connections that have sent nothing, and maxSilentPerSource those of one
	// source. Each costs a descriptor and a goroutine of some kilobytes for at most firstWait.
	maxSilent          = 256
	maxSilentPerSource = 64
)

// ServerOptions say where a Server listens and which clients it admits.
type ServerOptions struct {
	// host:port for both UDP and TCP; an empty host means all addresses, port 0 any free port
	Address string
	Gate    *admission.Gate                // nil: a private one with the default limits
	Sample  func() (*host.Counters, error) // not called: the protocol cannot carry a server's counters
	// receives one sentence per client, limited per minute (see admission.LimitLines), from several
	// goroutines; may be nil
	Log func(string)

	patience *patience // tests only; nil: the constants above
}

// patience holds a Server's timeouts for TCP clients.
type patience struct{ first, idle, answer time.Duration }

// Server answers sockperf clients. [Listen] creates one.
type Server struct {
	gate     *admission.Gate
	log      func(string) // TCP clients
	logUDP   func(string) // UDP sources, which may be forged: they must not silence the other logs
	away     func(string) // refused clients
	patience patience
	sockets  *service.Sockets // the echo has taken the UDP socket over
	echo     *udpEcho
	silent   *admission.Anteroom // connections that have sent nothing yet
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
	// UDP and TCP share one port number, so a client needs only one.
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

// Addr returns where the server listens, over UDP and TCP.
func (s *Server) Addr() netip.AddrPort { return s.sockets.Addr() }

// Close closes a server that has not served. After Serve it does nothing.
func (s *Server) Close() {
	_ = s.sockets.TCP.Close() // an error of close loses no data of a listener
	s.echo.close()
}

// Serve answers until ctx ends and then returns nil, with both sockets closed and every client
// gone. It must be called once.
func (s *Server) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	var echoErr, acceptErr error
	// Sockets.Serve does not fit: its loop takes one datagram per call, and this server has a
	// thread of its own for whole batches.
	closed := incoming.CloseWith(ctx, func() {
		_ = s.sockets.TCP.Close() // wakes Accept; an error loses no data
		s.echo.wake()
	})
	wg.Go(func() {
		defer cancel()
		echoErr = s.echo.run(ctx, s.gate, newBook(s.logUDP))
	})
	wg.Go(func() {
		defer cancel()
		err := incoming.Connections(ctx, s.sockets.TCP.AcceptTCP, incoming.Log(s.log),
			func(conn *net.TCPConn) { s.accept(ctx, conn, &wg) })
		if err != nil {
			acceptErr = fmt.Errorf("serve sockperf: %w", err)
		}
	})
	<-ctx.Done()
	wg.Wait()
	closed()
	s.echo.close()
	return errors.Join(echoErr, acceptErr)
}

// accept serves a connection in wg, if there is room for one more that has sent nothing.
func (s *Server) accept(ctx context.Context, conn *net.TCPConn, wg *sync.WaitGroup) {
	from := service.From(conn)
	met, ok := s.silent.Enter(from.Addr(), func() { _ = conn.Close() })
	if !ok {
		_ = conn.Close() // refused: too many silent connections
		s.turnAway(from, errors.New("too many silent connections of this source are waiting already"))
		return
	}
	wg.Go(func() { s.serveConn(ctx, conn, from, met) })
}

// serveConn serves one connection to its end and closes it; met is called when it has sent
// something. Until then the client takes no place of the gate, so silent connections keep no client
// of any dialect out.
func (s *Server) serveConn(ctx context.Context, conn *net.TCPConn, from netip.AddrPort, met func()) {
	head, err := s.head(ctx, conn)
	// The first bytes have come or never will: either way the connection no longer waits.
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
	visit.OnLoss(func() { _ = conn.Close() })
	s.log(serveStream(ctx, conn, from, visit, s.patience, head))
}

// head reads the first bytes of a connection, without a thread of its own.
func (s *Server) head(ctx context.Context, conn *net.TCPConn) ([]byte, error) {
	// Setting a deadline fails only on a closed connection, as the read then does.
	_ = conn.SetReadDeadline(time.Now().Add(s.patience.first))
	stop := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	head := make([]byte, 256) // usually a whole message, and enough to recognize another protocol
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
