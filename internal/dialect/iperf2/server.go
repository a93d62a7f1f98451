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

// ServerOptions say where to serve and whom.
type ServerOptions struct {
	Address string          // host:port for both TCP and UDP
	Gate    *admission.Gate // who may ask how much; nil: one with the default limits
	Log     func(string)    // one plain sentence per client, from any goroutine; nil: nobody is told
}

// Server answers clients of iperf 2.
type Server struct {
	o       ServerOptions
	timing  timing
	sockets *service.Sockets // nil when somebody else listens
	flows   *flowTable
	parties parties
	waiting *admission.Anteroom // holds one for every connection that has said nothing yet
	started time.Time           // base of the monotonic clock of arrivals

	// Sentences have bounds per minute. Anybody can be turned away any number of times, and anybody
	// can forge sources of datagrams: neither may silence the others.
	log, logUDP, away func(format string, args ...any)
}

// maxWaiting is how many connections may be waited for at a time, of one source as many as two
// tests have connections. Each is a goroutine of some kilobytes for timing.settings at most.
const maxWaiting = 4 * maxStreams

// timing is how long a server waits; tests have less patience.
type timing struct {
	settings time.Duration // for the first bytes of a connection
	idle     time.Duration // for the next bytes of one
	reverse  time.Duration // how long a server sends when it was not told
	forget   time.Duration // how long a UDP test may be silent
}

var patience = timing{settings: 10 * time.Second, idle: 30 * time.Second, reverse: 10 * time.Second,
	forget: 2 * time.Second}

// NewServer makes a server that listens nowhere: connections and datagrams are brought to it by
// ServeConn and ServePacket.
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
	s.flows = newFlowTable(s.logUDP)
	s.parties.open = make(map[partyKey]*party)
	return s
}

// Listen makes a server that listens on TCP and UDP. Port 0 is any port that is free for both.
func Listen(ctx context.Context, o ServerOptions) (*Server, error) {
	sockets, err := service.Listen(ctx, o.Address, nil)
	if err != nil {
		return nil, fmt.Errorf("listen for iperf2: %w", err)
	}
	s := NewServer(o)
	s.sockets = sockets
	return s, nil
}

// Addr is where the server listens, with TCP and UDP; the zero value for one that does not.
func (s *Server) Addr() netip.AddrPort {
	if s.sockets == nil {
		return netip.AddrPort{}
	}
	return s.sockets.Addr()
}

// Serve answers until ctx ends; then everything is closed and the answer is nil.
func (s *Server) Serve(ctx context.Context) error {
	err := s.sockets.Serve(ctx, service.Handler{
		Conn:   s.ServeConn,
		Packet: func(p []byte, from netip.AddrPort) { s.ServePacket(s.sockets.UDP, p, from) },
		Sweep:  s.Sweep,
	})
	s.flows.sweep(s.now(), 0) // those that end with the server are told of
	if err != nil {
		return fmt.Errorf("serve iperf2: %w", err)
	}
	return nil
}

// Sweep forgets UDP tests that have been silent for long. Who brings datagrams by ServePacket calls
// it every second or so.
func (s *Server) Sweep() { s.flows.sweep(s.now(), s.timing.forget) }

func (s *Server) now() time.Duration { return time.Since(s.started) }
