package peer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/admission"
	"github.com/linerate/linerate/internal/traffic/echo"
	"github.com/linerate/linerate/internal/wire"
)

const (
	// defaultMaxClients is how many clients may be connected at once. An idle one costs about 17
	// KB; a test that runs more, so those come one after the other.
	defaultMaxClients = 1024
	// othersShare is the part of the places that one source cannot take, so that a host which
	// connects again and again in error does not lock everybody else out: 16 of 1024.
	othersShare = 64
	// maxRefused is how many clients that are not let in are told so at once.
	maxRefused = 64
	// defaultIdleWait is how long a client may be connected without asking for anything: longer
	// than a person looks at one result, and not so long that forgotten ones pile up.
	defaultIdleWait = time.Hour
	// greetingWait is how long a new client may take to say hello.
	greetingWait = 10 * time.Second
	// startWait is how long an admitted test may take to start; the place is another's afterwards.
	// Between admission and start lies one round trip, so this only ends the claim of a client that
	// has changed its mind without saying so.
	startWait = 20 * time.Second
	// undoBound bounds the taking back of one client's trials; past it, the guard and the next
	// recovery have them. Rings and features reset a card, which takes seconds each.
	undoBound = 2 * time.Minute
	// maxTrialFor bounds how long a client may keep a trial alive without another change. It is for
	// a client that lives and has forgotten its trial; one that is gone is noticed by its
	// heartbeats within ten seconds.
	maxTrialFor = time.Hour
	// guardSlack is how much later than this process the guard ends a trial, and with it the whole
	// of serve. The worker of a session ends trials between two calls, and the longest call waits
	// admissionWait for other clients' tests; the rest is for that call's own work.
	guardSlack = admissionWait + 60*time.Second
	// maxCalls bounds the calls of one client that wait to be answered.
	maxCalls = 64
	// maxCallBytes bounds their bodies.
	maxCallBytes = 512 << 10
)

// FarSide is the Side of changes made from afar, in the journal of the host that was changed;
// OpenJournal must give it to journal.Options.
const FarSide = "far"

// ServerOptions say what a far side offers. Zero values have defaults, or offer nothing.
type ServerOptions struct {
	// Listener brings clients and data connections. For ServeStdio it is made by itself when nil.
	Listener *wire.Listener
	// Root is what snapshots and counters are read from; default live.
	Root host.Root
	// Backend reads knobs; nil: none can be read.
	Backend knob.Backend
	// OpenJournal opens this host's journal (Side FarSide, Mode Lease, with its guard) when a
	// client makes its first change; it is closed when that client goes. nil: nothing can be
	// changed.
	OpenJournal func() (*journal.Journal, error)
	// History reads the journal without its lock; nil: none to read.
	History func() ([]journal.Change, error)
	// AllowTuning lets clients change knobs.
	AllowTuning bool
	MaxClients  int           // connected at once; default 1024, of which one source may have all but a 64th
	IdleWait    time.Duration // a client that asks for nothing for so long is told so and closed; default 1 h
	// heavy tests that may run at the same time; default 1, since two measure each other
	AtOnce int
	Limits traffic.Limits // of one test
	// what sources may take in all, shared with servers of other dialects; nil: one of its own with
	// default limits
	Gate     *admission.Gate
	Echo     *echo.Server // answers UDP pings; when nil, Serve and ServeStdio open one of their own
	Version  string       // of this linerate, for people
	HostName string       // default os.Hostname
	// one plain sentence each: who came, who was turned away, what was changed and taken back; may
	// be nil
	Log func(message string)
}

// server is what the sessions of one Serve share.
type server struct {
	ServerOptions
	tests    *queue
	sessions sync.WaitGroup // connections in open

	mu      sync.Mutex
	open    map[*wire.Conn]*session // nil for those that are only told why they are not let in
	sources map[netip.Prefix]int    // clients of each
	clients int
	tuner   *session // who holds the journal
}

func newServer(o ServerOptions) *server {
	o.MaxClients = cmp.Or(o.MaxClients, defaultMaxClients)
	o.IdleWait = cmp.Or(o.IdleWait, defaultIdleWait)
	if o.HostName == "" {
		o.HostName, _ = os.Hostname() // a host without a name is called by its address on the other side
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	if o.Gate == nil {
		o.Gate = admission.New(admission.Limits{})
	}
	return &server{
		ServerOptions: o, tests: newQueue(o.AtOnce),
		open: make(map[*wire.Conn]*session), sources: make(map[netip.Prefix]int),
	}
}

// Serve answers clients of o.Listener until ctx ends, then takes back what they have on trial,
// closes the listener and returns nil; or until the listener is closed otherwise, which is an
// error.
func Serve(ctx context.Context, o ServerOptions) error {
	if o.Listener == nil {
		return errors.New("serve: no listener")
	}
	s := newServer(o)
	s.watchRejections()
	defer s.openEcho(ctx)()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = o.Listener.Close() }) // nothing more to learn from an old listener
	defer stop()
	defer s.watchIdle()()
	for {
		conn, err := o.Listener.Accept()
		if err != nil {
			ended := ctx.Err() != nil
			cancel()
			s.closeAll()
			// Each session takes its trials back before it ends, so Serve returns with the host as
			// it was. The listener is closed by now and nobody new comes meanwhile.
			s.sessions.Wait()
			if ended {
				return nil
			}
			return fmt.Errorf("serve: %w", err)
		}
		// A client that is let in has shown the key; what it may do is up to its session.
		s.start(ctx, conn, remoteIP(conn))
	}
}

// ServeStdio answers one client over in and out (the far end of ssh), until it goes or ctx ends,
// and then takes back what it has on trial. Data connections come to o.Listener, or to a listener
// on a free port of its own if that is nil; the greeting on out tells which. Nothing else may be
// written to out.
func ServeStdio(ctx context.Context, in io.ReadCloser, out io.WriteCloser, o ServerOptions) error {
	if o.Listener == nil {
		l, err := wire.ListenData(ctx, ":0")
		if err != nil {
			return err
		}
		o.Listener = l
	}
	defer o.Listener.Close()
	if err := wire.WriteGreeting(out, o.Listener.Port()); err != nil {
		return err
	}
	s := newServer(o)
	s.watchRejections()
	defer s.openEcho(ctx)()
	// A write to a broken pipe on descriptor 1 would end this process (os/signal, SIGPIPE) before
	// it has taken trials back.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)
	// sshd tells the client's address, which its connection has proved (ssh(1), ENVIRONMENT).
	client, _, _ := strings.Cut(os.Getenv("SSH_CONNECTION"), " ")
	conn := wire.NewConn(stdio{in, out})
	s.start(ctx, conn, client)
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	s.sessions.Wait()
	return nil
}

// openEcho opens the UDP echo on the listener's address and port if there is none yet, and gives
// what closes it. Without one, pings are ICMP only.
func (s *server) openEcho(ctx context.Context) (end func()) {
	if s.Echo != nil {
		return func() {}
	}
	// The same port number as TCP, so that a firewall needs one rule of a kind and people remember
	// one number.
	echo, err := echo.Listen(ctx, s.Listener.Addr().String())
	if err != nil {
		s.Log(fmt.Sprintf("no UDP echo, pings are ICMP only: %v", err))
		return func() {}
	}
	s.Echo = echo
	return func() { _ = echo.Close() } // nothing more to learn from it
}

// stdio makes one stream of two.
type stdio struct {
	io.ReadCloser
	out io.WriteCloser
}

func (s stdio) Write(b []byte) (int, error) { return s.out.Write(b) }
func (s stdio) Close() error                { return errors.Join(s.out.Close(), s.ReadCloser.Close()) }

// maxRejectionLines is how many strangers are logged one by one in a minute; a port scan shall not
// fill the disk.
const maxRejectionLines = 20

// watchRejections logs who was turned away.
func (s *server) watchRejections() {
	var (
		mu      sync.Mutex
		minute  time.Time
		n, more int
	)
	s.Listener.OnReject(func(r wire.Rejection) {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); now.Sub(minute) >= time.Minute {
			if more > 0 {
				s.Log(fmt.Sprintf("%d more were turned away in that minute", more))
			}
			minute, n, more = now, 0, 0
		}
		if n++; n > maxRejectionLines {
			more++
			return
		}
		s.Log(rejected(r))
	})
}

// rejected says in one sentence who was turned away.
func rejected(r wire.Rejection) string {
	switch {
	case errors.Is(r.Err, wire.ErrWrongKey):
		return fmt.Sprintf("%s turned away: it has another key", r.Remote)
	case errors.Is(r.Err, wire.ErrNotLinerate) && r.Dialect == "linerate data":
		return fmt.Sprintf("%s turned away: its data connection does not begin as it has to; is it another release of linerate?", r.Remote)
	case errors.Is(r.Err, wire.ErrNotLinerate):
		return fmt.Sprintf("%s turned away: it speaks %s", r.Remote, r.Dialect)
	}
	return fmt.Sprintf("%s turned away: it speaks %s: %v", r.Remote, r.Dialect, r.Err)
}

// admit counts a client in.
func (s *server) admit(c *session) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clients >= s.MaxClients {
		return fmt.Errorf("%w: no more clients are let in than the %d connected", ErrBusy, s.clients)
	}
	if n := s.sources[c.source]; n > 0 && n >= s.MaxClients-s.MaxClients/othersShare {
		return fmt.Errorf("%w: %d clients of this source are connected; the other places are for others", ErrBusy, n)
	}
	s.clients++
	s.sources[c.source]++
	s.open[c.conn] = c
	s.sessions.Add(1)
	return nil
}

// dismiss counts a client out, when nothing of it is left.
func (s *server) dismiss(c *session) {
	s.mu.Lock()
	s.clients--
	if s.sources[c.source]--; s.sources[c.source] == 0 {
		delete(s.sources, c.source)
	}
	s.mu.Unlock()
	s.release(c.conn)
}

// hold counts a connection in that is told why it is not let in.
func (s *server) hold(conn *wire.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open)-s.clients >= maxRefused {
		return false
	}
	s.open[conn] = nil
	s.sessions.Add(1)
	return true
}

// release forgets a connection.
func (s *server) release(conn *wire.Conn) {
	s.mu.Lock()
	delete(s.open, conn)
	s.mu.Unlock()
	s.sessions.Done()
}

// closeAll ends every connection; who is counted in winds up by itself.
func (s *server) closeAll() {
	s.mu.Lock()
	conns := slices.Collect(maps.Keys(s.open))
	s.mu.Unlock()
	for _, conn := range conns {
		// Each on its own: one that does not read holds up the last record that TLS writes to it,
		// for five seconds.
		go conn.Close()
	}
}

// watchIdle closes clients that ask for nothing for too long, until the function it gives is
// called.
func (s *server) watchIdle() (end func()) {
	// One ticker for all, and not a timer each: a client that forgets to leave may as well stay an
	// eighth longer.
	every := time.NewTicker(max(s.IdleWait/8, time.Millisecond))
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-every.C:
				s.dropIdle()
			case <-done:
				return
			}
		}
	}()
	return func() {
		every.Stop()
		close(done)
		<-ended
	}
}

// dropIdle closes the clients that are idle for too long.
func (s *server) dropIdle() {
	var idle []*session
	s.mu.Lock()
	for _, c := range s.open {
		if c != nil && time.Since(c.idleSince()) >= s.IdleWait {
			idle = append(idle, c)
		}
	}
	s.mu.Unlock()
	for _, c := range idle {
		s.Log(fmt.Sprintf("%s asked for nothing for %s; connection closed", c.conn.RemoteAddr(), s.IdleWait))
		go c.goodbye(fmt.Sprintf("%s closes the connection: nothing was asked for in %s", s.HostName, s.IdleWait))
	}
}

// goodbye tells a client why its connection ends, and ends it.
func (c *session) goodbye(why string) {
	ctx, cancel := context.WithTimeout(c.ctx, greetingWait)
	defer cancel()
	_ = c.conn.Send(ctx, msgNote, note{Text: why}) // it ends with or without knowing why
	_ = c.conn.Close()
}

// becomeTuner makes sure that only one client tunes this host.
func (s *server) becomeTuner(who *session) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tuner != nil && s.tuner != who {
		return fmt.Errorf("another client (%s) tunes this host: %w", s.tuner.who, journal.ErrLocked)
	}
	s.tuner = who
	return nil
}

// stopTuning gives the right to tune free.
func (s *server) stopTuning(who *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tuner == who {
		s.tuner = nil
	}
}

// remoteIP gives the address of a client.
func remoteIP(conn *wire.Conn) string {
	if a, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		return a.AddrPort().Addr().Unmap().String()
	}
	return ""
}
