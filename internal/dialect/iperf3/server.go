package iperf3

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/kernel/incoming"
	"github.com/linerate/linerate/internal/traffic/admission"
	"github.com/linerate/linerate/internal/traffic/datagram"
	"github.com/linerate/linerate/internal/traffic/engine"
	"github.com/linerate/linerate/internal/traffic/service"
)

// Timeouts for connections that have not proved to be clients yet, and for clients between two
// steps of the protocol.
const (
	cookieWithin  = 3 * time.Second
	paramsWithin  = 5 * time.Second
	streamsWithin = 15 * time.Second // all of them over TCP, a round trip each
	helloWithin   = 5 * time.Second  // each over UDP: others of the same address wait for their turn meanwhile
	turnWithin    = 30 * time.Second // for tests of the same address that open their UDP streams before
	resultsWithin = 15 * time.Second // a client may read its own streams empty before it answers
	doneWithin    = 5 * time.Second
	writeWithin   = 5 * time.Second
	// overtime is how long after its announced end a client may still announce the end of its test.
	// The program itself waits for 40 s.
	overtime = 30 * time.Second
	// Bounds of connections that are neither streams nor admitted clients, in all and per address.
	// Each costs a descriptor and some 10 KB for at most cookieWithin and paramsWithin together.
	maxStrangers          = 1024
	maxStrangersPerSource = 300 // more than the 256 streams that a client may open at once
)

// ServerOptions say where a server listens, which clients it admits, and where it logs.
type ServerOptions struct {
	Address string          // HOST:PORT, TCP and UDP; ":5201" is every address
	Gate    *admission.Gate // nil: a private one with the default limits
	// Copy makes the server copy every byte that it sends and receives, as the program does, instead
	// of the least expensive way that the kernel has.
	Copy bool
	// Sample reads the counters of this host; if set, the log names what this host dropped during a
	// test.
	Sample func() (*host.Counters, error)
	// receives one plain sentence per client, without newline, limited per minute (see
	// admission.LimitLines), from several goroutines; may be nil
	Log func(string)
}

// tcp returns how the server moves the data of TCP streams.
func (o ServerOptions) tcp(quota *engine.Quota) tcpOptions {
	t := tcpOptions{quota: quota}
	if o.Copy {
		t.send, t.receive = engine.SendCopy, engine.ReceiveCopy
	}
	return t
}

// Server runs tests for iperf3 clients, several at a time.
type Server struct {
	options ServerOptions
	// logs refused clients and those that fail early, at a limited rate, because anyone can cause
	// any number of them
	away    func(string)
	sockets *service.Sockets // UDP receives hellos; streams have sockets of their own at the same port
	clients sync.WaitGroup   // every goroutine of the server
	arrived uint64           // connections so far; used by the accepting goroutine

	cookieWithin time.Duration // shorter in tests
	strangers    *admission.Anteroom
	// A hello does not identify its test, so per address only one test at a time opens its UDP
	// streams.
	openers admission.Turns[netip.Addr]

	mu       sync.Mutex
	sessions map[cookie]*session // including those that are no tests yet
}

// Listen opens the server's port, for TCP and for UDP. [Server.Serve] closes it.
func Listen(ctx context.Context, o ServerOptions) (*Server, error) {
	if o.Gate == nil {
		o.Gate = admission.New(admission.Limits{})
	}
	away := admission.LimitLines(o.Log, admission.StrangerLines, "iperf3")
	o.Log = admission.LimitLines(o.Log, admission.ClientLines, "iperf3")
	sockets, err := service.Listen(ctx, o.Address, datagram.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen for iperf3: %w", err)
	}
	return &Server{
		options: o, away: away, sockets: sockets, cookieWithin: cookieWithin,
		sessions: make(map[cookie]*session), strangers: admission.NewAnteroom(maxStrangers, maxStrangersPerSource),
	}, nil
}

// Addr returns where the server listens, with TCP and UDP.
func (s *Server) Addr() netip.AddrPort { return s.sockets.Addr() }

// Serve runs until ctx ends and returns nil once every test has ended and every connection is
// closed. Any other error is that of the listener.
func (s *Server) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer incoming.CloseWith(ctx, s.sockets.Close)()
	// Sockets.Serve does not fit: connections must be numbered in the order of their arrival,
	// before each has its goroutine.
	var heard error
	s.clients.Go(func() {
		defer cancel()
		heard = service.Receive(ctx, s.sockets.UDP, s.hear, nil)
	})
	accepted := incoming.Connections(ctx, s.sockets.TCP.AcceptTCP, incoming.Log(s.options.Log),
		func(conn *net.TCPConn) { s.accept(ctx, conn) })
	cancel()
	s.clients.Wait()
	if err := errors.Join(accepted, heard); err != nil {
		return fmt.Errorf("serve iperf3: %w", err)
	}
	return nil
}

// accept numbers a connection and serves it on a goroutine of its own, if there is room for one
// more stranger.
func (s *Server) accept(ctx context.Context, conn *net.TCPConn) {
	from := service.From(conn)
	known, ok := s.strangers.Enter(from.Addr(), func() { _ = conn.Close() })
	if !ok {
		_ = conn.Close() // too many silent connections; a client tries again
		return
	}
	s.arrived++
	a := arrival{conn, from, s.arrived, known}
	s.clients.Go(func() { s.serve(ctx, a) })
}

// arrival is a connection and its place in the order of all that were accepted.
type arrival struct {
	conn   *net.TCPConn
	from   netip.AddrPort
	number uint64
	known  func() // called once it is no longer a stranger, or closed; repeated calls have no effect
}

// serve distinguishes a stream of a running test from a new client.
func (s *Server) serve(ctx context.Context, a arrival) {
	defer a.known()
	conn, from := a.conn, a.from
	_ = conn.SetReadDeadline(time.Now().Add(s.cookieWithin)) // fails only on a broken connection, as the read then does
	// Registered after the deadline above, which could otherwise overwrite this one.
	stop := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })
	c, err := readCookie(conn)
	stop()
	if err != nil || ctx.Err() != nil {
		_ = conn.Close()
		var stranger *strangerError
		switch {
		case ctx.Err() != nil:
		case errors.As(err, &stranger):
			s.turn(from, "turned away: %v", stranger)
		default:
			s.turn(from, "turned away: no whole cookie of iperf3 within %v", s.cookieWithin)
		}
		return
	}
	if t, mine := s.enlist(ctx, c, a); mine {
		defer s.forget(t)
		t.serve(ctx)
	}
}

// enlist hands a connection to the test that its cookie names, or creates a session for it; mine
// reports the latter.
func (s *Server) enlist(ctx context.Context, c cookie, a arrival) (t *session, mine bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t, known := s.sessions[c]; known {
		// The cookie is no secret: it crosses the network in the clear. So the address counts too.
		if t.from.Addr() == a.from.Addr() && t.opening && !t.p.UDP && t.missing > 0 {
			t.missing--
			t.conns <- a // has room for as many as were missing
			return t, false
		}
		// A stream too many or too late: the program answers in the same way.
		_ = control{conn: a.conn}.writeState(accessDenied, time.Second) // best effort, as is closing
		_ = a.conn.Close()
		return nil, false
	}
	t = &session{server: s, admitted: a.known, c: control{a.conn, ctx.Done()}, cookie: c, from: a.from}
	s.sessions[c] = t
	return t, true
}

func (s *Server) forget(t *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, t.cookie)
}

// hear receives the first datagrams of UDP streams; the connected sockets of running streams
// receive all others. Other datagrams are not logged, because anyone can forge them.
func (s *Server) hear(d service.Datagram) {
	if isHello(d.Payload) {
		s.route(d.From)
	}
}

// route passes a hello to the test of its address that is opening streams; openers allows one at a
// time. Any other hello gets no answer, so forged addresses cause no traffic.
func (s *Server) route(from netip.AddrPort) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var opens *session
	for _, t := range s.sessions {
		if t.greeted[from] {
			return // repeated, perhaps while the next test opens its streams; its answer is under way
		}
		if t.opening && t.p.UDP && t.from.Addr() == from.Addr() && t.missing > 0 {
			opens = t
		}
	}
	if opens != nil {
		opens.greeted[from] = true
		opens.missing--
		opens.greetings <- from // has room for as many as were missing
	}
}

// log logs a test.
func (s *Server) log(from netip.AddrPort, format string, args ...any) {
	s.options.Log(sentence(from, format, args...))
}

// turn logs a client that did not get as far as a test.
func (s *Server) turn(from netip.AddrPort, format string, args ...any) {
	s.away(sentence(from, format, args...))
}

func sentence(from netip.AddrPort, format string, args ...any) string {
	return fmt.Sprintf("iperf3 %s: %s", from, fmt.Sprintf(format, args...))
}
