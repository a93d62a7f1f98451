package nuttcp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/traffic/admission"
	"github.com/linerate/linerate/internal/traffic/service"
	"github.com/linerate/linerate/internal/wire"
)

// ServerOptions say where to listen and which clients to admit.
type ServerOptions struct {
	Address string          // host:port of the control connection; data use ports of the same host
	Gate    *admission.Gate // admits clients within its limits; nil: one with the default limits
	// receives one plain sentence per client, limited per minute (see admission.LimitLines), from
	// any goroutine; may be nil
	Log func(string)
	// Shared returns the arrivals of a port on which another listener has TCP and UDP; nil, or a
	// nil result: there is none.
	Shared func(port int) *Arrivals
}

// Server answers clients of nuttcp.
type Server struct {
	o       ServerOptions
	timing  timing
	sockets service.Sockets // of the control connections, TCP only
	ports   ports
	waiting *admission.Anteroom // holds one place per control connection that has sent no parameters yet

	// Sentences are limited per minute, in separate logs: anyone can be refused any number of
	// times, which must not silence the other log.
	log, away func(format string, args ...any)

	turns admission.Turns[turnKey] // held while a test waits for its data
}

// turnKey identifies the tests that must take turns.
type turnKey struct {
	from netip.Addr
	port int
}

// timing holds the server's timeouts, which tests shorten.
type timing struct {
	ask    time.Duration // for a client's parameters, which take it two round trips
	arrive time.Duration // for the data to begin, including the wait for the turn
	// for the next bytes of a connection: longer than an interrupted path takes to recover, shorter
	// than a forgotten test may hold its place
	idle time.Duration
	// for the next datagram: no datagram follows the client's last mark, so this is the cost of a
	// lost end
	silent  time.Duration
	longest time.Duration // how long a server sends without a requested time or amount
}

var patience = timing{ask: 10 * time.Second, arrive: 10 * time.Second, idle: 30 * time.Second, silent: 5 * time.Second,
	longest: 10 * time.Second}

// maxWaiting bounds the control connections that have sent no parameters; one source may have a
// quarter of them. Each costs a goroutine of some kilobytes for at most timing.ask.
const maxWaiting = 256

// maxLine is the longest line of a client; its parameters take some 400 bytes.
const maxLine = 1024

// Listen opens the control port.
func Listen(ctx context.Context, o ServerOptions) (*Server, error) {
	if o.Gate == nil {
		o.Gate = admission.New(admission.Limits{})
	}
	h, _, err := net.SplitHostPort(o.Address)
	if err != nil {
		return nil, fmt.Errorf("listen for nuttcp: %w", err)
	}
	l, err := service.ListenTCP(ctx, o.Address)
	if err != nil {
		return nil, fmt.Errorf("listen for nuttcp: %w", err)
	}
	s := &Server{
		log:  service.Limited(o.Log, admission.ClientLines, "nuttcp"),
		away: service.Limited(o.Log, admission.StrangerLines, "nuttcp"),
		o:    o, timing: patience, sockets: service.Sockets{TCP: l},
		waiting: admission.NewAnteroom(maxWaiting, maxWaiting/4),
	}
	s.ports = ports{host: h, open: make(map[portKey]*dataPort), log: s.away}
	return s, nil
}

// Addr returns where the server listens.
func (s *Server) Addr() netip.AddrPort { return s.sockets.Addr() }

// Serve answers until ctx ends, then closes everything and returns nil.
func (s *Server) Serve(ctx context.Context) error {
	err := s.sockets.Serve(ctx, service.Handler{Conn: s.serve, Log: s.log})
	s.ports.all.Wait() // their sockets were closed with the tests that used them
	if err != nil {
		return fmt.Errorf("serve nuttcp: %w", err)
	}
	return nil
}

// serve answers one client, closes its connection, and logs it.
func (s *Server) serve(serving context.Context, conn *net.TCPConn) {
	from := service.From(conn)
	ctx, cancel := context.WithCancelCause(serving)
	defer cancel(nil)
	// A deadline instead of a close: if the server ends, the client still receives the reason, see
	// say. Setting it fails only on a closed connection.
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	defer conn.Close()
	in := bufio.NewReaderSize(conn, maxLine)
	p, err := s.ask(conn, in)
	if err != nil {
		if ctx.Err() == nil {
			s.away("nuttcp from %s: turned away: %v", from, err)
		}
		return
	}
	visit, err := s.o.Gate.Enter(from.Addr())
	if err == nil {
		// The check runs before the test begins, because only now can the reply give the reason.
		// Later the client would only see its data break off.
		err = s.affordable(p)
	}
	if err != nil {
		refuse(conn, p, err)
		s.away("nuttcp from %s: turned away: %v", from, err)
		if visit != nil {
			visit.Leave()
		}
		return
	}
	defer visit.Leave()
	visit.OnLoss(func() { cancel(errLost) })
	_ = conn.SetReadDeadline(time.Time{}) // as above
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		// The client sends nothing more; the end of its connection ends the test. Otherwise this
		// end would continue to send to a client that is gone, for as long as it had requested.
		_, _ = io.Copy(io.Discard, in)
		cancel(errGone)
	}()
	defer func() {
		_ = conn.Close() // wakes the watcher; everything was sent
		<-watched
	}()
	t := &session{Server: s, conn: conn, p: p, from: from.Addr(), visit: visit}
	err = t.run(ctx)
	if serving.Err() != nil {
		return
	}
	if err != nil && errors.Is(context.Cause(ctx), errGone) {
		err = errGone // whatever error that caused
	}
	s.log("nuttcp from %s: %s%s", from, t.sentence(), suffix(err))
}

// errLost reports a test that moved nothing while other clients wanted its place.
var errLost = errors.New("its place went to another client")

// errGone reports a client that left before its test was over.
var errGone = errors.New("the client closed its control connection")

func suffix(err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprintf("; ended early: %v", err)
}

// ask reads a client's parameters. Until then the client takes no place of the gate, so silent
// connections keep no client out; it takes one of the places for waiting.
func (s *Server) ask(conn *net.TCPConn, in *bufio.Reader) (params, error) {
	leave, ok := s.waiting.Enter(service.From(conn).Addr(), func() { _ = conn.Close() })
	if !ok {
		return params{}, errors.New("too many connections of this source that have asked nothing are waiting already")
	}
	defer leave()
	_ = conn.SetDeadline(time.Now().Add(s.timing.ask)) // as in serve
	// The first bytes are enough; a client of another protocol may never send the end of a line.
	_, err := in.Peek(1)
	first, _ := in.Peek(in.Buffered()) // cannot fail: the bytes are buffered
	switch {
	case len(first) > 0 && !strings.HasPrefix(string(first), greets[:min(len(greets), len(first))]):
		return params{}, fmt.Errorf("the client speaks %s, not nuttcp", wire.Dialect(first[:min(len(first), 64)]))
	case errors.Is(err, os.ErrDeadlineExceeded):
		return params{}, fmt.Errorf("nothing came for %v", s.timing.ask)
	case err != nil:
		return params{}, errors.New("closed before anything came")
	}
	greeting, err := in.ReadSlice('\n')
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return params{}, fmt.Errorf("no greeting came within %v", s.timing.ask)
	case err == nil && !strings.HasPrefix(string(greeting), greets):
		return params{}, fmt.Errorf("greeting %q", clip(string(greeting)))
	case err != nil:
		return params{}, fmt.Errorf("greeting: %w", err)
	}
	if _, err := conn.Write([]byte(hello)); err != nil {
		return params{}, fmt.Errorf("greet: %w", err)
	}
	line, err := in.ReadSlice('\n')
	switch {
	// The buffer has no more room, so an endless line is detected here and takes no more memory.
	case errors.Is(err, bufio.ErrBufferFull):
		return params{}, fmt.Errorf("line longer than %d bytes", maxLine)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return params{}, fmt.Errorf("no parameters came within %v", s.timing.ask)
	case err != nil:
		return params{}, fmt.Errorf("parameters: %w", err)
	}
	p, err := parseParams(string(line))
	if err != nil {
		refuse(conn, p, err)
	}
	return p, err
}

// refuse sends a client the reason. Its program only prints that there was an error; the text shows
// with -v or in a capture.
func refuse(conn *net.TCPConn, p params, err error) {
	who := "nuttcp-r"
	if !p.transmit {
		who = "nuttcp-t"
	}
	// the connection is closed next, whether the write fails or not
	_, _ = fmt.Fprintf(conn, "KO\n%s: v%s: Error: %v\nKO\n", who, version, err)
}

// affordable returns an error for a test that would certainly exceed the gate's limits.
func (s *Server) affordable(p params) error {
	l := s.o.Gate.Limits()
	if d := p.duration(); d > l.Duration {
		return fmt.Errorf("a test of %v is longer than the %v that this host allows", d, l.Duration)
	}
	if n := p.amount(); n > l.Bytes {
		return fmt.Errorf("%d bytes are more than the %d that this host allows", n, l.Bytes)
	}
	return nil
}

// takeTurn waits until no other test of this address waits for data on the port, because only
// address and port identify the data. The caller calls done when they have begun to arrive;
// repeated calls have no effect.
func (s *Server) takeTurn(ctx context.Context, key turnKey) (done func(), err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.timing.arrive,
		fmt.Errorf("another test of this address waits for its data on port %d", key.port))
	defer cancel()
	return s.turns.Take(ctx, key)
}

// rate returns the rate of n bytes in a time, for display.
func rate(n int64, d time.Duration) unit.BitRate {
	return unit.BitRate(over(float64(n)*8, d.Seconds()))
}
