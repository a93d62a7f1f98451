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
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/traffic/admission"
	"github.com/linerate/linerate/internal/traffic/service"
	"github.com/linerate/linerate/internal/wire"
)

// ServerOptions say where to serve and whom.
type ServerOptions struct {
	Address string                         // host:port of the control connection; data ports are on the same host
	Gate    *admission.Gate                // who may ask how much; nil: one with the default limits
	Sample  func() (*host.Counters, error) // for the CPU time in reports; nil: they say 0
	// one plain sentence per client, with bounds per minute (see admission.LimitLines), from any
	// goroutine; nil: nobody is told
	Log func(string)
	// Shared gives the arrivals of a port that somebody else listens on with TCP and UDP; nil, or a
	// nil answer: nobody does.
	Shared func(port int) *Arrivals
}

// Server answers clients of nuttcp.
type Server struct {
	o       ServerOptions
	timing  timing
	sockets service.Sockets // of control, which is TCP alone
	ports   ports
	waiting *admission.Anteroom // holds one for every control connection that has not asked yet

	// Sentences have bounds per minute. Anybody can be turned away any number of times, which must
	// not silence the others.
	log, away func(format string, args ...any)

	turns admission.Turns[turnKey] // taken while a test waits for its data
}

// turnKey is what tests must take turns for.
type turnKey struct {
	from netip.Addr
	port int
}

// timing is how long a server waits; tests have less patience.
type timing struct {
	ask    time.Duration // for what a client asks, which takes it two round trips
	arrive time.Duration // for the data to begin, also for its turn
	// for the next bytes of a connection: longer than a path takes to come back, less than a
	// forgotten test may hold its place
	idle time.Duration
	// for the next datagram: after the client's last mark none is to come, so this is what a lost
	// end costs
	silent  time.Duration
	longest time.Duration // how long a server sends that was told neither a time nor an amount
}

var patience = timing{ask: 10 * time.Second, arrive: 10 * time.Second, idle: 30 * time.Second, silent: 5 * time.Second,
	longest: 10 * time.Second}

// maxWaiting is how many control connections may be waited for at a time, a quarter of them of one
// source. Each is a goroutine of some kilobytes for timing.ask at most.
const maxWaiting = 256

// maxLine is the longest line that a client may send; its parameters are some 400 bytes.
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
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", o.Address)
	if err != nil {
		return nil, fmt.Errorf("listen for nuttcp: %w", err)
	}
	s := &Server{
		log:  service.Limited(o.Log, admission.ClientLines, "nuttcp"),
		away: service.Limited(o.Log, admission.StrangerLines, "nuttcp"),
		o:    o, timing: patience, sockets: service.Sockets{TCP: l.(*net.TCPListener)},
		waiting: admission.NewAnteroom(maxWaiting, maxWaiting/4),
	}
	s.ports = ports{host: h, open: make(map[portKey]*dataPort), log: s.away}
	return s, nil
}

// Addr is where the server listens.
func (s *Server) Addr() netip.AddrPort { return s.sockets.Addr() }

// Serve answers until ctx ends; then everything is closed and the answer is nil.
func (s *Server) Serve(ctx context.Context) error {
	err := s.sockets.Serve(ctx, service.Handler{Conn: s.serve})
	s.ports.all.Wait() // their sockets were closed with the tests that used them
	if err != nil {
		return fmt.Errorf("serve nuttcp: %w", err)
	}
	return nil
}

// serve answers one client, closes its connection, and tells the log.
func (s *Server) serve(serving context.Context, conn *net.TCPConn) {
	from := service.From(conn)
	ctx, cancel := context.WithCancelCause(serving)
	defer cancel(nil)
	// A deadline and no close: a test that fails because its server ends is still told so, see say.
	// only a closed connection refuses, and that is over
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
		// Asked for before it begins, because the client can be told so now: later it would see its
		// data break off.
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
	_ = conn.SetReadDeadline(time.Time{}) // as above
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		// Nothing is to come; what ends is the connection, and with it the test. A client that is
		// gone must not be sent to for as long as it had asked.
		_, _ = io.Copy(io.Discard, in)
		cancel(errGone)
	}()
	defer func() {
		_ = conn.Close() // wakes the watch; everything was said
		<-watched
	}()
	t := &session{Server: s, conn: conn, p: p, from: from.Addr(), visit: visit}
	err = t.run(ctx)
	if serving.Err() != nil {
		return
	}
	if err != nil && errors.Is(context.Cause(ctx), errGone) {
		err = errGone // whatever came of it
	}
	s.log("nuttcp from %s: %s%s", from, t.sentence(), suffix(err))
}

// errGone is a client that left before its test was over.
var errGone = errors.New("the client closed its control connection")

func suffix(err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprintf("; ended early: %v", err)
}

// ask reads what a client asks for. Until then it is nobody's visitor, so that who connects and
// says nothing takes no place from those who do; it takes one of the places for waiting.
func (s *Server) ask(conn *net.TCPConn, in *bufio.Reader) (params, error) {
	leave, ok := s.waiting.Enter(service.From(conn).Addr())
	if !ok {
		return params{}, errors.New("too many connections that have asked nothing are waiting already")
	}
	defer leave()
	_ = conn.SetDeadline(time.Now().Add(s.timing.ask)) // as in serve
	// The first bytes tell; who speaks something else may never send the end of a line.
	_, err := in.Peek(1)
	first, _ := in.Peek(in.Buffered()) // cannot fail: they are there
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
	// The reader has no more room than this, so what has no end is known by then and takes no
	// memory.
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

// refuse tells a client why not. Its program shows no more than that there was an error; with -v
// and by other eyes it can be read.
func refuse(conn *net.TCPConn, p params, err error) {
	who := "nuttcp-r"
	if !p.transmit {
		who = "nuttcp-t"
	}
	// the connection is closed next, whatever comes of it
	_, _ = fmt.Fprintf(conn, "KO\n%s: v%s: Error: %v\nKO\n", who, version, err)
}

// affordable refuses what would be over the gate's limits for sure.
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

// takeTurn waits until no other test of this address waits for data on the port: nothing but the
// address and the port tells whose they are. done must be called when they have begun to arrive,
// and may be more than once.
func (s *Server) takeTurn(ctx context.Context, key turnKey) (done func(), err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.timing.arrive,
		fmt.Errorf("another test of this address waits for its data on port %d", key.port))
	defer cancel()
	return s.turns.Take(ctx, key)
}

// rate is n bytes in so much time, for people.
func rate(n int64, d time.Duration) unit.BitRate {
	return unit.BitRate(over(float64(n)*8, d.Seconds()))
}
