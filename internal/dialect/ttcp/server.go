package ttcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/traffic/admission"
	"github.com/linerate/linerate/internal/traffic/engine"
	"github.com/linerate/linerate/internal/traffic/service"
	"github.com/linerate/linerate/internal/wire"
)

// DefaultPort is the port of both TCP and UDP.
const DefaultPort = 5001

// ServerOptions say where to listen and which senders to admit.
type ServerOptions struct {
	Address string          // host:port for both TCP and UDP
	Gate    *admission.Gate // admits senders within its limits; nil: one with the default limits
	Log     func(string)    // receives one plain sentence per sender, from any goroutine; may be nil
}

// Server receives from any sender.
type Server struct {
	o       ServerOptions
	timing  timing
	sockets *service.Sockets // nil when another listener brings the connections
	flows   *flowTable
	waiting *admission.Anteroom // holds one place per connection that has sent nothing yet
	started time.Time           // base of the monotonic clock of arrivals

	// Sentences are limited per minute, in separate logs: anyone can be refused any number of
	// times, and anyone can forge sources of datagrams, and neither may silence the other logs.
	log, logUDP, away func(format string, args ...any)
}

// maxWaiting bounds the connections that have sent nothing; one source may have a quarter of them,
// and a newcomer takes the place of the oldest. Each costs a goroutine of some kilobytes for at
// most timing.idle.
const maxWaiting = 256

// timing holds the server's timeouts, which tests shorten.
type timing struct {
	idle   time.Duration // for the next bytes of a connection, the first ones included
	forget time.Duration // how long a UDP sender may be silent
}

var patience = timing{idle: 30 * time.Second, forget: 2 * time.Second}

// NewServer returns a server that does not listen: another listener brings it connections and
// datagrams through ServeConn and TakePacket.
func NewServer(o ServerOptions) *Server {
	if o.Gate == nil {
		o.Gate = admission.New(admission.Limits{})
	}
	s := &Server{
		log:    service.Limited(o.Log, admission.ClientLines, "ttcp over tcp"),
		logUDP: service.Limited(o.Log, admission.ClientLines, "ttcp over udp"),
		away:   service.Limited(o.Log, admission.StrangerLines, "ttcp over tcp"),
		o:      o,
		timing: patience, started: time.Now(), waiting: admission.NewAnteroom(maxWaiting, maxWaiting/4),
	}
	s.flows = newFlowTable(s.logUDP)
	return s
}

// Listen returns a server that listens on TCP and UDP. Port 0 selects a port that is free for both.
func Listen(ctx context.Context, o ServerOptions) (*Server, error) {
	sockets, err := service.Listen(ctx, o.Address, nil)
	if err != nil {
		return nil, fmt.Errorf("listen for ttcp: %w", err)
	}
	s := NewServer(o)
	s.sockets = sockets
	return s, nil
}

// Addr returns where the server listens, with TCP and UDP; the zero value if it does not.
func (s *Server) Addr() netip.AddrPort {
	if s.sockets == nil {
		return netip.AddrPort{}
	}
	return s.sockets.Addr()
}

// Serve receives until ctx ends, then closes everything and returns nil.
func (s *Server) Serve(ctx context.Context) error {
	err := s.sockets.Serve(ctx, service.Handler{
		Conn:   s.ServeConn,
		Packet: s.TakePacket,
		Sweep:  s.Sweep,
		Log:    s.log,
	})
	s.flows.sweep(s.now(), 0) // logs the senders that end with the server
	if err != nil {
		return fmt.Errorf("serve ttcp: %w", err)
	}
	return nil
}

// ServeConn receives from one TCP connection to its end, closes it, and logs it.
func (s *Server) ServeConn(ctx context.Context, conn *net.TCPConn) {
	from := service.From(conn)
	// The connection is closed instead of getting an expired deadline, because the loops below set
	// deadlines and could overwrite it.
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	defer conn.Close()
	start := time.Now()
	total, err := s.sink(ctx, conn, from.Addr())
	if ctx.Err() != nil {
		if total == 0 {
			return // the server ended before the connection began
		}
		err = nil
	}
	seconds := time.Since(start).Seconds()
	switch {
	case err != nil && total == 0:
		s.away("ttcp tcp from %s: turned away: %v", from, err)
	case err != nil:
		s.log("ttcp tcp from %s: ended early after %d bytes in %.2f s: %v", from, total, seconds, err)
	default:
		s.log("ttcp tcp from %s: received %d bytes in %.2f s, %s", from, total, seconds, rate(total, seconds))
	}
}

// callBytes is how much one system call moves: it keeps the copy inside a second-level cache.
const callBytes = 128 << 10

// head reads the first bytes of a connection. Until they arrive, the sender takes no place of the
// gate, so silent connections keep no sender out; it takes one of the places for waiting.
func (s *Server) head(conn *net.TCPConn, p []byte) (int, error) {
	leave, ok := s.waiting.Enter(service.From(conn).Addr(), func() { _ = conn.Close() })
	if !ok {
		return 0, errors.New("too many silent connections of this source are waiting already")
	}
	defer leave()
	_ = conn.SetReadDeadline(time.Now().Add(s.timing.idle)) // fails only on a closed connection, as the read then does
	n, err := conn.Read(p)
	switch name := wire.Dialect(p[:min(n, 64)]); {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return 0, fmt.Errorf("nothing came for %v", s.timing.idle)
	case err != nil:
		return 0, err
	case waits(name):
		// All bytes are data here, but a client that greets and waits for an answer wants another
		// server.
		return 0, fmt.Errorf("the client speaks %s, and nothing here answers that", name)
	}
	return n, nil
}

// sink reads to the end of a connection.
func (s *Server) sink(ctx context.Context, conn *net.TCPConn, from netip.Addr) (total int64, err error) {
	p := make([]byte, callBytes)
	n, err := s.head(conn, p)
	if errors.Is(err, io.EOF) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	visit, err := s.o.Gate.Enter(from)
	if err != nil {
		return 0, err
	}
	defer visit.Leave()
	link, err := engine.AdoptBlocking(conn, engine.ConnOptions{NoDelay: true})
	if err != nil {
		return 0, err
	}
	defer link.Close()
	defer context.AfterFunc(ctx, func() { _ = link.Close() })() // as in ServeConn
	visit.OnLoss(func() { _ = link.Close() })
	defer engine.Stay()()
	var renewed time.Time
	for {
		total += int64(n)
		if err := visit.Spend(int64(n)); err != nil {
			return total, err
		}
		if err := service.Rest(ctx, visit.Pause()); err != nil {
			return total, err
		}
		switch {
		case errors.Is(err, io.EOF):
			return total, nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			return total, fmt.Errorf("nothing came for %v", s.timing.idle)
		case err != nil:
			return total, err
		}
		// Renewed once a second and not for every read, so the connection may be idle for up to a
		// second less than timing.idle.
		if now := time.Now(); now.Sub(renewed) > time.Second {
			renewed = now
			link.SetReadDeadline(now.Add(s.timing.idle))
		}
		n, err = link.Read(p)
	}
}

// waits reports whether a client of a protocol waits for an answer before it continues.
func waits(dialect string) bool {
	switch dialect {
	case "something unknown", "nothing but zeros", "iperf2", "linerate data":
		return false
	}
	return true
}

// now returns the time since the server was created.
func (s *Server) now() time.Duration { return time.Since(s.started) }

// rate returns the rate of n bytes in a time, for display; 0 for a time of 0 or less.
func rate(n int64, seconds float64) unit.BitRate {
	if seconds <= 0 {
		return 0
	}
	return unit.BitRate(float64(n) * 8 / seconds)
}
