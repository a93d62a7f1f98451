package stamp

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"time"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/traffic/admission"
)

// DefaultPort is the UDP port of STAMP reflectors (RFC 8762 §4.1). Below 1024, it needs the
// privilege to be bound.
const DefaultPort = 862

// ServerOptions say where a Server listens and whom it answers how.
type ServerOptions struct {
	Address string                         // host:port; an empty host is all addresses, port 0 a free one
	Gate    *admission.Gate                // nil: one with the default limits, of this server alone
	Sample  func() (*host.Counters, error) // not called: the protocol has no room for a reflector's evidence
	// one sentence per session, when it has been quiet for a minute, and admission.ClientLines in a
	// minute at most; nil: silence
	Log func(string)
	// of the HMAC: only authenticated packets are reflected; empty: only unauthenticated ones
	Key []byte
	// copy sequence numbers instead of counting; senders cannot tell then which way lost packets
	Stateless bool
	// sources that get a whole base packet in answer to a shorter one of TWAMP Light; loopback
	// always does
	Trusted []netip.Prefix
}

// Server is a reflector. Make one with [Listen].
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

// Addr is where the server listens, over UDP.
func (s *Server) Addr() netip.AddrPort { return s.addr }

// Close gives up a server that never came to serve. After Serve it does nothing.
func (s *Server) Close() { s.socket.close() }

// Serve reflects until ctx ends and then returns nil, with the socket closed. It must be called
// once.
func (s *Server) Serve(ctx context.Context) error {
	defer s.socket.close()
	stop := context.AfterFunc(ctx, s.socket.wake)
	defer stop()
	done := make(chan error, 1)
	go func() {
		// Never unlocked: the thread waits in the kernel all its life, and the Go runtime ends it
		// with the goroutine.
		runtime.LockOSThread()
		done <- s.reflect(ctx)
	}()
	return <-done
}

// reflect is the loop. It allocates for new sessions only.
func (s *Server) reflect(ctx context.Context) error {
	buf := make([]byte, 1<<16)
	base := time.Now() // reading the time since then costs no system call
	defer func() { s.r.sweep(time.Since(base), true) }()
	for {
		n, a, err := s.socket.receive(buf, wakeEvery)
		if ctx.Err() != nil {
			return nil
		}
		now := time.Since(base)
		s.r.sweep(now, false)
		if err != nil {
			if s.socket.fatal(err) {
				return fmt.Errorf("receive stamp packets: %w", err)
			}
			continue // a quiet 200 ms, a signal, or the ICMP error that some answer brought about
		}
		if n = s.r.answer(buf, n, a, now); n == 0 {
			continue
		}
		s.r.leave(buf[:n])
		// An answer that cannot be sent is a lost packet, which the sender counts.
		_ = s.socket.send(buf[:n])
	}
}
