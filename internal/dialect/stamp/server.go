package stamp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"time"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/kernel/incoming"
	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/traffic/admission"
)

// DefaultPort is the UDP port of STAMP reflectors (RFC 8762 §4.1). Listening on a port below 1024
// needs a privilege.
const DefaultPort = 862

// ServerOptions say where a Server listens and how it answers.
type ServerOptions struct {
	Address string                         // host:port; an empty host means all addresses, port 0 any free port
	Gate    *admission.Gate                // nil: a private one with the default limits
	Sample  func() (*host.Counters, error) // not called: the protocol cannot carry a reflector's counters
	// receives one sentence per session, when it has been silent for a minute, and at most
	// admission.ClientLines per minute; may be nil
	Log func(string)
	// of the HMAC: only authenticated packets are reflected; empty: only unauthenticated ones
	Key []byte
	// copy sequence numbers instead of counting; senders then do not know which direction lost
	// packets
	Stateless bool
	// sources that get a whole base packet in answer to a shorter one of TWAMP Light; loopback
	// always does
	Trusted []netip.Prefix
}

// Server is a reflector. [Listen] creates one.
type Server struct {
	socket *socket
	addr   netip.AddrPort
	r      *reflector
}

// Listen opens the socket. The Server answers once [Server.Serve] runs, which also closes it.
func Listen(ctx context.Context, o ServerOptions) (*Server, error) {
	var lc net.ListenConfig
	packets, err := lc.ListenPacket(ctx, "udp", o.Address)
	if err != nil {
		return nil, fmt.Errorf("listen for stamp on udp %s: %w", o.Address, err)
	}
	conn := packets.(*net.UDPConn) // what ListenPacket makes for "udp"
	local := conn.LocalAddr().(*net.UDPAddr).AddrPort()
	s, err := adopt(conn)
	if err != nil {
		return nil, fmt.Errorf("listen for stamp on udp %s: %w", o.Address, err)
	}
	r := &reflector{
		gate: o.Gate, log: admission.LimitLines(o.Log, admission.ClientLines, "stamp"), auth: newAuthenticator(o.Key),
		clock: clock{query: queryClock}, trusted: o.Trusted, stateless: o.Stateless,
		port: local.Port(), sessions: make(map[sessionKey]*session),
	}
	if r.gate == nil {
		r.gate = admission.New(admission.Limits{})
	}
	return &Server{socket: s, addr: netip.AddrPortFrom(local.Addr().Unmap(), local.Port()), r: r}, nil
}

// Addr returns where the server listens, over UDP.
func (s *Server) Addr() netip.AddrPort { return s.addr }

// Close closes a server that has not served. After Serve it does nothing.
func (s *Server) Close() { s.socket.close() }

// Serve reflects until ctx ends and then returns nil, with the socket closed. It must be called
// once.
func (s *Server) Serve(ctx context.Context) error {
	defer s.socket.close()
	stop := context.AfterFunc(ctx, s.socket.wake)
	defer stop()
	done := make(chan error, 1)
	go func() {
		// Never unlocked: the thread waits in the kernel all the time, and the Go runtime ends it
		// with the goroutine.
		runtime.LockOSThread()
		done <- s.reflect(ctx)
	}()
	return <-done
}

// reflect is the loop. It allocates for new sessions only.
func (s *Server) reflect(ctx context.Context) error {
	buf := make([]byte, 1<<16)
	base := time.Now() // later readings relative to it cost no system call
	defer func() { s.r.sweep(time.Since(base), true) }()
	var retry incoming.Retry
	for {
		n, a, err := s.socket.receive(buf, wakeEvery)
		if ctx.Err() != nil {
			return nil
		}
		now := time.Since(base)
		s.r.sweep(now, false)
		if err != nil {
			if errors.Is(err, sys.ErrTimeout) {
				continue
			}
			if err := retry.After(ctx, err); err != nil && ctx.Err() == nil {
				return fmt.Errorf("receive stamp packets: %w", err)
			}
			continue
		}
		retry.Done()
		if n = s.r.answer(buf, n, a, now); n == 0 {
			continue
		}
		s.r.leave(buf[:n])
		// An answer that cannot be sent is a lost packet, which the sender counts.
		_ = s.socket.send(buf[:n])
	}
}
