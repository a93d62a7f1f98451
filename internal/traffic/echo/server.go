package echo

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/linerate/linerate/internal/traffic/engine"
)

// maxTokens bounds how many tests a Server answers at once, and so the memory of a server whose
// tests never revoke their tokens.
const maxTokens = 1024

// maxSentBytes is how much one token can make the server send beyond what it received: a search for
// a path MTU requests some hundred packets of at most 64 KiB.
const maxSentBytes = 32 << 20

// Server sends UDP packets back to their sender, unchanged. It answers only packets that start with
// a registered token and come from the address that the token was registered for. It answers from
// the address of this host that was asked, and never with more bytes than it received. So it is of
// no use for amplification or reflection, because the token travels over the authenticated channel
// only. The one exception is a request of a path MTU search for a packet of a named size, within a
// budget per token, to the token's own address.
type Server struct {
	socket  *serverSocket
	local   netip.AddrPort
	done    chan struct{}
	padding []byte // fills probes; never a byte that another host sent

	mu     sync.Mutex
	tokens map[Token]*registration // a lock and a look-up per packet: some tens of nanoseconds beside two system calls
}

// registration is one test that the server answers.
type registration struct {
	from    netip.Addr
	expires time.Time
	sent    int          // payload bytes sent on request, see maxSentBytes
	hop     int          // MTU that the last "fragmentation needed" about a packet of ours named; 0: none arrived
	expect  *Expectation // nil: hellos stay unanswered
}

// Listen opens the server on a UDP address, "host:port"; port 0 takes a free one. End it with
// Close. On Linux the port is shared (SO_REUSEPORT), so that a socket of a UDP test can be bound to
// it as well and connected to one near end: the kernel then gives that near end's packets to the
// connected socket and all others to the server.
func Listen(ctx context.Context, addr string) (*Server, error) {
	lc := net.ListenConfig{Control: prepareServer}
	pc, err := lc.ListenPacket(ctx, "udp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen for udp echo on %s: %w", addr, err)
	}
	conn, ok := pc.(*net.UDPConn)
	if !ok {
		_ = pc.Close() // nothing was received on it
		return nil, fmt.Errorf("listen for udp echo on %s: got a %T", addr, pc)
	}
	s := &Server{done: make(chan struct{}), tokens: make(map[Token]*registration), padding: engine.Pattern(maxDatagram)}
	if a, ok := conn.LocalAddr().(*net.UDPAddr); ok {
		s.local = a.AddrPort()
	}
	if s.socket, err = newServerSocket(conn, s.local); err != nil {
		return nil, fmt.Errorf("listen for udp echo on %s: %w", addr, err)
	}
	go func() {
		defer close(s.done)
		s.socket.serve(s)
	}()
	return s, nil
}

// Port returns the UDP port that the server listens on.
func (s *Server) Port() int { return int(s.local.Port()) }

// Register makes a new token with which the server answers from for the time of validity. It fails
// when too many are registered.
func (s *Server) Register(from netip.Addr, validity time.Duration) (Token, error) {
	var t Token
	// crypto/rand.Read never fails: it crashes the program instead (Go 1.24).
	_, _ = rand.Read(t[:])
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for t, r := range s.tokens {
		if now.After(r.expires) {
			delete(s.tokens, t)
		}
	}
	if len(s.tokens) >= maxTokens {
		return Token{}, fmt.Errorf("register udp echo for %s: %d tests are registered already", from, len(s.tokens))
	}
	s.tokens[t] = &registration{from: plain(from), expires: now.Add(validity)}
	return t, nil
}

// Revoke forgets a token, and closes the expectation of hellos with it.
func (s *Server) Revoke(t Token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tokens, t)
}

// Close ends the server and waits for it.
func (s *Server) Close() error {
	err := s.socket.stop()
	<-s.done
	s.socket.close()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Arrival is a received hello: the near end of a stream has proved its address.
type Arrival struct {
	Index int            // of the stream
	From  netip.AddrPort // the near end's address, as this host sees it
	// the address of this host that it asked; where the system does not report it, the one that the
	// server listens on
	To netip.AddrPort
}

// Expectation collects the hellos of one test.
type Expectation struct {
	server   *Server
	token    Token
	arrivals chan Arrival // space for all, so that the server never waits
	seen     []bool       // by index
}

// Expect makes the server hand over hellos with a registered token, one of each stream from 0 to
// streams−1. The server never answers a hello: the caller opens a socket that is connected to the
// near end, and answers there, so that a near end which hears its hello back knows that packets of
// its stream reach that socket. Until then a near end repeats its hello. End it with Close.
func (s *Server) Expect(token Token, streams int) (*Expectation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.tokens[token]
	switch {
	case r == nil:
		return nil, errors.New("expect hello: token is not registered")
	case r.expect != nil:
		return nil, errors.New("expect hello: token is expected already")
	}
	r.expect = &Expectation{server: s, token: token, arrivals: make(chan Arrival, streams), seen: make([]bool, streams)}
	return r.expect, nil
}

// Arrivals delivers each stream's near end once, in order of arrival. The channel is never closed.
func (e *Expectation) Arrivals() <-chan Arrival { return e.arrivals }

// Close ends the expectation; it may be called twice. The token stays registered.
func (e *Expectation) Close() {
	e.server.mu.Lock()
	defer e.server.mu.Unlock()
	if r := e.server.tokens[e.token]; r != nil && r.expect == e {
		r.expect = nil
	}
}

// reply is what the server does about one packet.
type reply struct {
	bytes int // payload to send; 0: nothing
	// of a packet of its own, made by Server.probe, that must not be fragmented; else of the
	// received packet, shortened
	probe bool
}

// answer decides about the packet p, which it may change into its own answer, and records hellos.
func (s *Server) answer(p []byte, from, to netip.AddrPort, now time.Time) reply {
	if len(p) < echoHeaderBytes {
		return reply{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// The time of a map look-up reveals nothing useful about 128 random bits. The address is
	// compared as well, so that with a token that an attacker read on the path this host still
	// sends only to the client itself.
	r := s.tokens[Token(p[:TokenBytes])]
	if r == nil || r.from != plain(from.Addr()) || !now.Before(r.expires) {
		return reply{}
	}
	switch sequence := binary.BigEndian.Uint64(p[TokenBytes:]); sequence >> 56 {
	case kindHello:
		// A hello that comes before Expect stays unanswered as well: a near end that heard it back
		// would stop, and the far end would wait in vain for the socket's address.
		if r.expect == nil {
			return reply{}
		}
		if i := uint32(sequence); int64(i) < int64(len(r.expect.seen)) && !r.expect.seen[i] {
			r.expect.seen[i] = true
			r.expect.arrivals <- Arrival{Index: int(i),
				From: netip.AddrPortFrom(from.Addr().Unmap(), from.Port()), To: to}
		}
		return reply{}
	case kindHeard, kindSend:
		return r.probed(p)
	}
	return reply{bytes: len(p)}
}

// plain returns an address as registrations compare it: the zone of a link-local address belongs to
// the socket.
func plain(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }
