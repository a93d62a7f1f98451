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
	"github.com/linerate/linerate/internal/traffic/admission"
	"github.com/linerate/linerate/internal/traffic/datagram"
	"github.com/linerate/linerate/internal/traffic/service"
)

// Patience of the server with what has not proved to be a client yet, and with clients between two
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
	// overtime is how long after its announced end a client may still say that its test is over.
	// The program itself waits for 40 s.
	overtime = 30 * time.Second
	// Connections that are no stream and no admitted client yet, in all and of one address. Each
	// holds a descriptor and some 10 KB for as long as cookieWithin and paramsWithin together.
	maxStrangers          = 1024
	maxStrangersPerSource = 300 // more than the 256 streams that a client may open at once
)

// ServerOptions say where a server listens, whom it serves and who hears of it.
type ServerOptions struct {
	Address string          // HOST:PORT, TCP and UDP; ":5201" is every address
	Gate    *admission.Gate // nil: one of its own with the default limits
	// Sample reads the counters of this host; where given, the log says what this host dropped
	// during a test.
	Sample func() (*host.Counters, error)
	// one plain sentence per client, without newline, with bounds per minute (see
	// admission.LimitLines); called from several goroutines; nil: nobody listens
	Log func(string)
}

// Server runs tests for iperf3 clients, several at a time.
type Server struct {
	options ServerOptions
	// the log of those that are turned away or do not get far, of which anybody can make any number
	away    func(string)
	sockets *service.Sockets // UDP hears hellos; streams have sockets of their own at the same port
	clients sync.WaitGroup   // every goroutine of the server
	arrived uint64           // connections so far; of the goroutine that accepts

	cookieWithin time.Duration // shorter in tests
	strangers    *admission.Anteroom
	// A hello says nothing of the test that it belongs to, so of each address one test at a time
	// opens its UDP streams.
	openers admission.Turns[netip.Addr]

	mu       sync.Mutex
	sessions map[cookie]*session // also those that are no tests yet
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

// Addr is where the server listens, with TCP and UDP alike.
func (s *Server) Addr() netip.AddrPort { return s.sockets.Addr() }

// Serve runs until ctx ends and then returns nil, when every test has ended and every connection is
// closed. Another error is of the listener.
func (s *Server) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, s.sockets.Close)
	defer stop()
	// Not by Sockets.Serve: connections have to be counted in the order of their coming, before
	// each has its goroutine.
	var heard error
	s.clients.Go(func() {
		defer cancel()
		heard = service.Receive(ctx, s.sockets.UDP, s.hear, nil)
	})
	accepted := service.Accept(ctx, s.sockets.TCP.AcceptTCP, func(conn *net.TCPConn) { s.accept(ctx, conn) })
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
	known, ok := s.strangers.Enter(from.Addr())
	if !ok {
		_ = conn.Close() // too many that say nothing; a client tries again
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
	known  func() // to be called when it is a stranger no more, or is closed; once is enough
}

// serve finds out what a connection is: a stream of a test, or a new client.
func (s *Server) serve(ctx context.Context, a arrival) {
	defer a.known()
	conn, from := a.conn, a.from
	_ = conn.SetReadDeadline(time.Now().Add(s.cookieWithin)) // the connection is new; if it is broken, the read says so
	// After the deadline above, which could come behind this one otherwise and be waited for.
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

// enlist hands a connection to the test that its cookie names, or makes a new one of it; mine tells
// the latter.
func (s *Server) enlist(ctx context.Context, c cookie, a arrival) (t *session, mine bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t, known := s.sessions[c]; known {
		if t.opening && !t.p.UDP && t.missing > 0 {
			t.missing--
			t.conns <- a // has room for as many as were missing
			return t, false
		}
		// A stream too many, or too late: the program says so in the same way.
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

// hear takes the first datagrams of UDP streams: the connected sockets of running streams take all
// others. What no client sends is not worth a word, as anybody can forge it.
func (s *Server) hear(p []byte, from netip.AddrPort) {
	if isHello(p) {
		s.route(from)
	}
}

// route gives a hello to the test of that address that is opening streams; openers sees to it that
// there is one at most. All others get no answer: whoever forges an address makes us send nothing
// to it.
func (s *Server) route(from netip.AddrPort) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var opens *session
	for _, t := range s.sessions {
		if t.greeted[from] {
			return // said twice, perhaps while the next test opens its streams; its answer is on the way
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

// log tells of a test.
func (s *Server) log(from netip.AddrPort, format string, args ...any) {
	s.options.Log(sentence(from, format, args...))
}

// turn tells of a client that came to no test.
func (s *Server) turn(from netip.AddrPort, format string, args ...any) {
	s.away(sentence(from, format, args...))
}

func sentence(from netip.AddrPort, format string, args ...any) string {
	return fmt.Sprintf("iperf3 %s: %s", from, fmt.Sprintf(format, args...))
}
