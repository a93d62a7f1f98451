package echo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"
)

// maxTokens bounds how many tests a Server answers at once, and with it the memory of a server whose tests never say goodbye.
const maxTokens = 1024

// Server sends UDP packets back to where they came from, unchanged. It answers only packets that start with a registered token and
// come from the address that the token was registered for, and never more bytes than it got: it is of no use for amplification or
// reflection, because the token travels over the authenticated channel only.
type Server struct {
	conn   *net.UDPConn
	done   chan struct{}
	mu     sync.RWMutex
	tokens map[Token]registration
}

type registration struct {
	from    netip.Addr
	expires time.Time
}

// Listen opens the server on a UDP address, "host:port"; port 0 takes a free one. End it with Close.
func Listen(ctx context.Context, addr string) (*Server, error) {
	var lc net.ListenConfig
	pc, err := lc.ListenPacket(ctx, "udp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen for udp echo on %s: %w", addr, err)
	}
	conn, ok := pc.(*net.UDPConn)
	if !ok {
		_ = pc.Close() // nothing came over it
		return nil, fmt.Errorf("listen for udp echo on %s: got a %T", addr, pc)
	}
	s := &Server{conn: conn, done: make(chan struct{}), tokens: make(map[Token]registration)}
	go s.serve()
	return s, nil
}

// Port is the UDP port that the server listens on.
func (s *Server) Port() int {
	if a, ok := s.conn.LocalAddr().(*net.UDPAddr); ok {
		return a.Port
	}
	return 0
}

// Register makes a new token with which from is answered for the time of validity. It fails when too many are registered.
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
	s.tokens[t] = registration{from: from.Unmap().WithZone(""), expires: now.Add(validity)}
	return t, nil
}

// Revoke forgets a token.
func (s *Server) Revoke(t Token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tokens, t)
}

// Close ends the server and waits for it.
func (s *Server) Close() error {
	err := s.conn.Close()
	<-s.done
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (s *Server) serve() {
	defer close(s.done)
	// One packet at a time, from one buffer as large as a UDP packet can be: at the 1000 packets a second that Limits allow by default this
	// goroutine sleeps.
	buf := make([]byte, 1<<16)
	for {
		n, from, err := s.conn.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil || !s.admits(buf[:n], from.Addr(), time.Now()) {
			continue // an ICMP error that some answer brought about, or a packet of nobody's
		}
		// An answer that cannot be sent is a lost packet, which the pinger counts.
		_, _ = s.conn.WriteToUDPAddrPort(buf[:n], from)
	}
}

// admits tells whether a packet is to be answered.
func (s *Server) admits(p []byte, from netip.Addr, now time.Time) bool {
	if len(p) < echoHeaderBytes {
		return false
	}
	// The time of a map look-up tells nothing of use about 128 random bits. The address is compared as well, so that a token which was read on the
	// path cannot make this host send anywhere but to the client itself.
	s.mu.RLock()
	defer s.mu.RUnlock()
	r, ok := s.tokens[Token(p[:TokenBytes])]
	return ok && r.from == from.Unmap().WithZone("") && now.Before(r.expires)
}
