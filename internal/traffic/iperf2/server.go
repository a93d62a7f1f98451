package iperf2

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/linerate/linerate/internal/traffic/admission"
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
	tcp     *net.TCPListener // nil when somebody else listens
	udp     *net.UDPConn
	flows   *flowTable
	parties parties
	waiting *admission.Anteroom // holds one for every connection that has said nothing yet
	started time.Time           // base of the monotonic clock of arrivals

	// Sentences have bounds per minute. Anybody can be turned away any number of times, and anybody can forge sources of datagrams: neither may
	// silence the others.
	log, logUDP, away func(format string, args ...any)
}

// maxWaiting is how many connections may be waited for at a time, of one source as many as two tests have connections. Each is a goroutine of some kilobytes for timing.settings at most.
const maxWaiting = 4 * maxStreams

// timing is how long a server waits; tests have less patience.
type timing struct {
	settings time.Duration // for the first bytes of a connection
	idle     time.Duration // for the next bytes of one
	reverse  time.Duration // how long a server sends when it was not told
	forget   time.Duration // how long a UDP test may be silent
}

var patience = timing{settings: 10 * time.Second, idle: 30 * time.Second, reverse: 10 * time.Second, forget: 2 * time.Second}

// NewServer makes a server that listens nowhere: connections and datagrams are brought to it by ServeConn and ServePacket.
func NewServer(o ServerOptions) *Server {
	if o.Gate == nil {
		o.Gate = admission.New(admission.Limits{})
	}
	s := &Server{
		log:    sayer(o.Log, admission.ClientLines, "iperf2 over tcp"),
		logUDP: sayer(o.Log, admission.ClientLines, "iperf2 over udp"),
		away:   sayer(o.Log, admission.StrangerLines, "iperf2 over tcp"),
		o:      o,
		timing: patience, started: time.Now(), waiting: admission.NewAnteroom(maxWaiting, 2*maxStreams),
	}
	s.flows = newFlowTable(s.logUDP)
	s.parties.open = make(map[partyKey]*party)
	return s
}

// Listen makes a server that listens on TCP and UDP. Port 0 is any port that is free for both.
func Listen(ctx context.Context, o ServerOptions) (*Server, error) {
	var lc net.ListenConfig
	s := NewServer(o)
	l, err := lc.Listen(ctx, "tcp", o.Address)
	if err != nil {
		return nil, fmt.Errorf("listen for iperf2: %w", err)
	}
	s.tcp = l.(*net.TCPListener)
	pc, err := lc.ListenPacket(ctx, "udp", l.Addr().String())
	if err != nil {
		_ = l.Close() // nobody has come yet
		return nil, fmt.Errorf("listen for iperf2: %w", err)
	}
	s.udp = pc.(*net.UDPConn)
	return s, nil
}

// Addr is where the server listens, with TCP and UDP; the zero value for one that does not.
func (s *Server) Addr() netip.AddrPort {
	if s.tcp == nil {
		return netip.AddrPort{}
	}
	return s.tcp.Addr().(*net.TCPAddr).AddrPort()
}

// maxDatagram is the largest payload that UDP over IPv4 carries.
const maxDatagram = 65507

// receiveBufferBytes is asked for so that a burst at full rate survives a moment without the processor. The kernel grants what
// net.core.rmem_max allows.
const receiveBufferBytes = 4 << 20

// Serve answers until ctx ends; then everything is closed and the answer is nil.
func (s *Server) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(ctx, func() {
		_ = s.tcp.Close() // both: the error of a second close says nothing
		_ = s.udp.Close()
	})
	defer stop()
	var all sync.WaitGroup
	all.Go(func() { cancel(s.packets()) })
	for {
		conn, err := s.tcp.AcceptTCP()
		if err != nil {
			if retry(ctx, err) {
				continue
			}
			cancel(err)
			break
		}
		all.Go(func() { s.ServeConn(ctx, conn) })
	}
	all.Wait()
	if err := context.Cause(ctx); !errors.Is(err, net.ErrClosed) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("serve iperf2: %w", err)
	}
	return nil
}

// retry waits a moment after a failed accept that is worth another try: a peer that was gone before, or no descriptors left.
func retry(ctx context.Context, err error) bool {
	if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
		return false
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(50 * time.Millisecond):
		return true
	}
}

// packets reads the UDP socket until it is closed.
func (s *Server) packets() error {
	_ = s.udp.SetReadBuffer(receiveBufferBytes) // less is slower, not wrong
	p := make([]byte, maxDatagram+1)
	for {
		// A deadline wakes the loop to forget tests that went silent.
		_ = s.udp.SetReadDeadline(time.Now().Add(time.Second)) // fails on a closed socket only, as the read then does
		for {
			n, from, err := s.udp.ReadFromUDPAddrPort(p)
			if err != nil {
				if errors.Is(err, net.ErrClosed) {
					s.flows.sweep(s.now(), 0)
					return err
				}
				break // the deadline, or an ICMP error that some earlier report has caused
			}
			s.ServePacket(s.udp, p[:n], from)
		}
		s.Sweep()
	}
}

// Sweep forgets UDP tests that have been silent for long. Who brings datagrams by ServePacket calls it every second or so.
func (s *Server) Sweep() { s.flows.sweep(s.now(), s.timing.forget) }

func (s *Server) now() time.Duration { return time.Since(s.started) }

// sayer is a log of at most perMinute sentences.
func sayer(log func(string), perMinute int, who string) func(format string, args ...any) {
	limited := admission.LimitLines(log, perMinute, who)
	return func(format string, args ...any) { limited(fmt.Sprintf(format, args...)) }
}
