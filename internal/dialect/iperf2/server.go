package iperf2

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/linerate/linerate/internal/traffic/admission"
	"github.com/linerate/linerate/internal/traffic/service"
)

// DefaultPort is the port of both TCP and UDP.
const DefaultPort = 5001

// ServerOptions say where to listen and which clients to admit.
type ServerOptions struct {
	Address string          // host:port for both TCP and UDP
	Gate    *admission.Gate // admits clients within its limits; nil: one with the default limits
	Log     func(string)    // receives one plain sentence per client, from any goroutine; may be nil
}

// Server answers clients of iperf 2.
type Server struct {
	o       ServerOptions
	timing  timing
	sockets *service.Sockets // nil when another listener brings the connections
	flows   *flowTable
	parties parties
	waiting *admission.Anteroom // holds one place per connection that has sent nothing yet
	started time.Time           // base of the monotonic clock of arrivals

	// Sentences are limited per minute, in separate logs: anyone can be refused any number of
	// times, and anyone can forge sources of datagrams, and neither may silence the other logs.
	log, logUDP, away func(format string, args ...any)
}

// maxWaiting bounds the connections that have sent nothing; one source may have as many as two
// tests have connections. Each costs a goroutine of some kilobytes for at most timing.settings.
const maxWaiting = 4 * maxStreams

// timing holds the server's timeouts, which tests shorten.
type timing struct {
	settings time.Duration // for the first bytes of a connection
	idle     time.Duration // for the next bytes of one
	reverse  time.Duration // how long a server sends if the client announced no time
	forget   time.Duration // how long a UDP test may be silent
}

var patience = timing{settings: 10 * time.Second, idle: 30 * time.Second, reverse: 10 * time.Second,
	forget: 2 * time.Second}

// NewServer returns a server that does not listen: another listener brings it connections and
// datagrams through ServeConn and ServePacket.
func NewServer(o ServerOptions) *Server {
	if o.Gate == nil {
		o.Gate = admission.New(admission.Limits{})
	}
	s := &Server{
		log:    service.Limited(o.Log, admission.ClientLines, "iperf2 over tcp"),
		logUDP: service.Limited(o.Log, admission.ClientLines, "iperf2 over udp"),
		away:   service.Limited(o.Log, admission.StrangerLines, "iperf2 over tcp"),
		o:      o,
		timing: patience, started: time.Now(), waiting: admission.NewAnteroom(maxWaiting, 2*maxStreams),
	}
	s.flows = newFlowTable(s.logUDP, time.Duration(s.started.UnixNano()))
	s.parties.open = make(map[partyKey]*party)
	return s
}

// Listen returns a server that listens on TCP and UDP. Port 0 selects a port that is free for both.
func Listen(ctx context.Context, o ServerOptions) (*Server, error) {
	sockets, err := service.Listen(ctx, o.Address, nil)
	if err != nil {
		return nil, fmt.Errorf("listen for iperf2: %w", err)
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

// Serve answers until ctx ends, then closes everything and returns nil.
func (s *Server) Serve(ctx context.Context) error {
	err := s.sockets.Serve(ctx, service.Handler{
		Conn:   s.ServeConn,
		Packet: s.ServePacket,
		Sweep:  s.Sweep,
		Log:    s.log,
	})
	s.flows.sweep(s.now(), 0) // logs the tests that end with the server
	if err != nil {
		return fmt.Errorf("serve iperf2: %w", err)
	}
	return nil
}

// Sweep forgets UDP tests that have been silent for long. A caller of ServePacket calls it every
// second or so.
func (s *Server) Sweep() { s.flows.sweep(s.now(), s.timing.forget) }

func (s *Server) now() time.Duration { return time.Since(s.started) }
