package answer

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"math/big"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/linerate/linerate/internal/kernel/incoming"
	"github.com/linerate/linerate/internal/resolver/message"
)

// Options describe a server.
type Options struct {
	Listen    netip.AddrPort // UDP and TCP; port 0: any free one
	ListenTLS netip.AddrPort // TLS; not valid: none
	Faults    Faults
	Delay     time.Duration // before each answer
	// Stall is how long the server reads nothing, StallAfter after the first query; 0: never.
	Stall, StallAfter time.Duration
	TTL               uint32 // of the records in seconds; default 60
}

// Server answers until it is closed.
type Server struct {
	o        Options
	udp      *net.UDPConn
	other    *net.UDPConn // answers from another port are sent from here
	tcp, tls net.Listener

	stop context.CancelFunc // ends rests of the loops
	late chan struct{}      // has one for each answer that waits

	mu    sync.Mutex // guards what follows
	count uint64
	stall time.Time // when it begins; zero: no query yet
	ended bool
	conns map[net.Conn]bool
	group sync.WaitGroup
}

// Start opens the sockets and answers in the background.
func Start(o Options) (_ *Server, err error) {
	if o.TTL == 0 {
		o.TTL = 60
	}
	s := &Server{o: o, conns: map[net.Conn]bool{}, late: make(chan struct{}, mostLate)}
	var ctx context.Context
	ctx, s.stop = context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			_ = s.Close() // the first error explains
		}
	}()
	if s.udp, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(o.Listen)); err != nil {
		return nil, fmt.Errorf("answer on %s: %w", o.Listen, err)
	}
	_ = s.udp.SetReadBuffer(4 << 20) // as much as the host allows
	at := s.Addr()
	if s.other, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(at.Addr(), 0))); err != nil {
		return nil, fmt.Errorf("answer from another port of %s: %w", at.Addr(), err)
	}
	// Not net.Listen, which opens a socket of Multipath TCP (Go 1.24).
	if s.tcp, err = net.ListenTCP("tcp", net.TCPAddrFromAddrPort(at)); err != nil {
		return nil, fmt.Errorf("answer on %s: %w", at, err)
	}
	if o.ListenTLS.IsValid() {
		certificate, err := selfSigned()
		if err != nil {
			return nil, err
		}
		l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(o.ListenTLS))
		if err != nil {
			return nil, fmt.Errorf("answer on %s: %w", o.ListenTLS, err)
		}
		s.tls = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{certificate},
			NextProtos: []string{"dot"}, MinVersion: tls.VersionTLS12})
		s.group.Go(func() { s.accept(ctx, s.tls) })
	}
	s.group.Go(func() { s.answerUDP(ctx) })
	s.group.Go(func() { s.accept(ctx, s.tcp) })
	return s, nil
}

// selfSigned makes a certificate for this run.
func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make certificate: %w", err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().AddDate(1, 0, 0), DNSNames: []string{"localhost"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// Addr returns the address of UDP and TCP.
func (s *Server) Addr() netip.AddrPort { return s.udp.LocalAddr().(*net.UDPAddr).AddrPort() }

// AddrTLS returns the address of TLS; not valid: there is none.
func (s *Server) AddrTLS() netip.AddrPort {
	if s.tls == nil {
		return netip.AddrPort{}
	}
	return s.tls.Addr().(*net.TCPAddr).AddrPort()
}

// Queries returns how many queries have arrived.
func (s *Server) Queries() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}

// Close ends the server and waits for its goroutines.
func (s *Server) Close() error {
	s.mu.Lock()
	s.ended = true
	s.stop()
	for c := range s.conns {
		_ = c.Close() // its reader ends
	}
	s.mu.Unlock()
	for _, c := range []io.Closer{s.tcp, s.tls} {
		if l, ok := c.(net.Listener); ok && l != nil {
			_ = l.Close() // its acceptor ends
		}
	}
	for _, u := range []*net.UDPConn{s.udp, s.other} {
		if u != nil {
			_ = u.Close() // nothing is unwritten
		}
	}
	s.group.Wait()
	return nil
}

// Serve waits until ctx ends, and closes the server.
func (s *Server) Serve(ctx context.Context) error {
	<-ctx.Done()
	return s.Close()
}

// arrived counts a query, sleeps through a stall that is due, and returns the number of the query.
func (s *Server) arrived() uint64 {
	s.mu.Lock()
	s.count++
	n := s.count
	if s.stall.IsZero() {
		s.stall = time.Now().Add(s.o.StallAfter)
	}
	wait := time.Duration(0)
	if s.o.Stall > 0 && !time.Now().Before(s.stall) {
		wait = s.o.Stall
		s.o.Stall = 0 // once
	}
	s.mu.Unlock()
	if wait > 0 {
		time.Sleep(wait)
	}
	return n
}

// mostLate is how many answers may wait for their time: some 20 MB of them.
const mostLate = 1 << 16

// later sends an answer after a time. While too many wait the server reads no further query. It
// returns false when the server ends.
func (s *Server) later(ctx context.Context, wait time.Duration, send func()) bool {
	select {
	case s.late <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	time.AfterFunc(wait, func() {
		send()
		<-s.late
	})
	return true
}

// answerUDP answers datagrams.
func (s *Server) answerUDP(ctx context.Context) {
	in := make([]byte, 4096)
	out := make([]byte, 0, 4096)
	var retry incoming.Retry
	for {
		n, from, err := s.udp.ReadFromUDPAddrPort(in)
		if err != nil {
			if retry.After(ctx, err) != nil {
				return
			}
			continue
		}
		retry.Done()
		q, err := message.ParseQuery(in[:n])
		if err != nil {
			continue
		}
		for _, r := range s.o.Faults.replies(out, q, s.arrived(), s.o.TTL, true) {
			conn := s.udp
			if r.otherPort {
				conn = s.other
			}
			wait := s.o.Delay + r.wait
			if wait == 0 {
				_, _ = conn.WriteToUDPAddrPort(r.m, from) // a client that has gone needs no answer
				continue
			}
			m := append([]byte(nil), r.m...)
			if !s.later(ctx, wait, func() { _, _ = conn.WriteToUDPAddrPort(m, from) }) {
				return
			}
		}
	}
}

// accept answers on connections.
func (s *Server) accept(ctx context.Context, l net.Listener) {
	// Its error is the end of the listener, which only Close closes.
	_ = incoming.Connections(ctx, l.Accept, nil, func(conn net.Conn) {
		s.mu.Lock()
		ended := s.ended
		s.conns[conn] = true
		s.mu.Unlock()
		if ended {
			_ = conn.Close() // nothing was written
			return
		}
		s.group.Go(func() { s.answerStream(ctx, conn) })
	})
}

// answerStream answers the queries of one connection.
func (s *Server) answerStream(ctx context.Context, conn net.Conn) {
	defer func() {
		_ = conn.Close() // the client reads what was written, or has gone
		s.mu.Lock()
		delete(s.conns, conn)
		s.mu.Unlock()
	}()
	r := bufio.NewReader(conn)
	in := make([]byte, 1<<16)
	var write sync.Mutex // delayed answers come from other goroutines
	out := make([]byte, 0, 4096)
	for {
		var length [2]byte
		if _, err := io.ReadFull(r, length[:]); err != nil {
			return
		}
		m := in[:binary.BigEndian.Uint16(length[:])]
		if _, err := io.ReadFull(r, m); err != nil {
			return
		}
		q, err := message.ParseQuery(m)
		if err != nil {
			return
		}
		for _, reply := range s.o.Faults.replies(out, q, s.arrived(), s.o.TTL, false) {
			framed := append(binary.BigEndian.AppendUint16(nil, uint16(len(reply.m))), reply.m...)
			send := func() {
				write.Lock()
				defer write.Unlock()
				_, _ = conn.Write(framed) // the reader sees the end of the connection
			}
			if wait := s.o.Delay + reply.wait; wait == 0 {
				send()
			} else if !s.later(ctx, wait, send) {
				return
			}
		}
	}
}

// sound appends the sound answer to a query.
func sound(b []byte, q message.Query, ttl uint32) []byte {
	var flags uint16 = 0x8480 // response, authoritative, recursion available
	if q.Recursion {
		flags |= 0x0100
	}
	gone := strings.Contains("."+strings.ToLower(message.NameText(q.Name)), ".gone.")
	count := 0
	if gone {
		flags |= uint16(message.NameError)
	} else if q.Type == message.TypeA || q.Type == message.TypeAAAA {
		count = 1
	}
	additional := 0
	if q.EDNS {
		additional = 1
	}
	b = binary.BigEndian.AppendUint16(b, q.ID)
	b = binary.BigEndian.AppendUint16(b, flags)
	b = append(b, 0, 1, 0, byte(count), 0, 0, 0, byte(additional))
	b = append(b, q.Question...)
	if count == 1 {
		b = append(b, 0xc0, message.HeaderBytes)
		b = binary.BigEndian.AppendUint16(b, uint16(q.Type))
		b = append(b, 0, 1)
		b = binary.BigEndian.AppendUint32(b, ttl)
		h := fnv.New32a()
		_, _ = h.Write(q.Name) // a hash does not fail
		if q.Type == message.TypeA {
			b = append(b, 0, 4, 192, 0, 2, byte(h.Sum32()))
		} else {
			b = append(b, 0, 16, 0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0)
			b = binary.BigEndian.AppendUint32(b, h.Sum32())
		}
	}
	if q.EDNS {
		b = append(b, 0, 0, byte(message.TypeOPT), 0x04, 0xd0, 0, 0, 0, 0, 0, 0)
	}
	return b
}
