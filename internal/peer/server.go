package peer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/journal"
	"github.com/linerate/linerate/internal/knob"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/echo"
	"github.com/linerate/linerate/internal/wire"
)

const (
	// defaultMaxClients is how many clients may be connected at once. Each may hold up to 64 MiB of messages that nobody has read yet (package
	// wire), so this also bounds the memory that holders of the key can take.
	defaultMaxClients = 8
	// admissionWait is how long a client waits for another one's test to end: some tests of the default ten seconds, and less than people
	// wait without asking themselves whether it hangs.
	admissionWait = 60 * time.Second
	// greetingWait is how long a new client may take to say hello.
	greetingWait = 10 * time.Second
	// startWait is how long an admitted test may take to start; the place is another's afterwards. Between admission and start lies one round
	// trip, so this only ends the claim of a client that has changed its mind without saying so.
	startWait = 20 * time.Second
	// undoBound bounds the taking back of one client's trials; past it, the guard and the next recovery have them. Rings and features
	// reset a card, which takes seconds each.
	undoBound = 2 * time.Minute
	// maxTrialFor bounds how long a client may keep a trial alive without another change. It is for a client that lives and has forgotten
	// its trial; one that is gone is noticed by its heartbeats within ten seconds.
	maxTrialFor = time.Hour
	// guardSlack is how much later than this process the guard ends a trial, and with it the whole of serve. The worker of a session
	// ends trials between two calls, and the longest call waits admissionWait for another client's test; the rest is for that call's own work.
	guardSlack = admissionWait + 60*time.Second
	// maxCalls bounds the calls of one client that wait to be answered.
	maxCalls = 64
)

// FarSide is the Side of changes made from afar, in the journal of the host that was changed; OpenJournal must give it to journal.Options.
const FarSide = "far"

// ServerOptions say what a far side offers. Zero values have defaults, or offer nothing.
type ServerOptions struct {
	// Listener brings clients and data connections. For ServeStdio it is made by itself when nil.
	Listener *wire.Listener
	// Root is what snapshots and counters are read from; default live.
	Root host.Root
	// Backend reads knobs; nil: none can be read.
	Backend knob.Backend
	// OpenJournal opens this host's journal (Side FarSide, Mode Lease, with its guard) when a client makes its first change; it is closed
	// when that client goes. nil: nothing can be changed.
	OpenJournal func() (*journal.Journal, error)
	// History reads the journal without its lock; nil: none to read.
	History func() ([]journal.Change, error)
	// AllowTuning lets clients change knobs.
	AllowTuning bool
	MaxClients  int                  // default 8
	Limits      traffic.Limits       // of one test
	Echo        *echo.Server  // answers UDP pings; when nil, Serve and ServeStdio open one of their own
	Version     string               // of this linerate, for people
	HostName    string               // default os.Hostname
	Log         func(message string) // one plain sentence each: who came, who was turned away, what was changed and taken back; may be nil
}

// server is what the sessions of one Serve share.
type server struct {
	ServerOptions
	slot     chan struct{} // one place: the test that runs
	sessions sync.WaitGroup

	mu      sync.Mutex
	clients int
	tuner   *session // who holds the journal
}

func newServer(o ServerOptions) *server {
	o.MaxClients = cmp.Or(o.MaxClients, defaultMaxClients)
	if o.HostName == "" {
		o.HostName, _ = os.Hostname() // a host without a name is called by its address on the other side
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	return &server{ServerOptions: o, slot: make(chan struct{}, 1)}
}

// Serve answers clients of o.Listener until ctx ends, then takes back what they have on trial, closes the listener and returns nil;
// or until the listener is closed otherwise, which is an error.
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
	for {
		conn, err := o.Listener.Accept()
		if err != nil {
			ended := ctx.Err() != nil
			cancel()
			// Each session takes its trials back before it ends, so Serve returns with the host as it was. The listener is closed by now and nobody new
			// comes meanwhile.
			s.sessions.Wait()
			if ended {
				return nil
			}
			return fmt.Errorf("serve: %w", err)
		}
		// A client that is let in has shown the key; what it may do is up to its session.
		s.sessions.Go(func() { s.serve(ctx, conn, remoteIP(conn)) })
	}
}

// ServeStdio answers one client over in and out (the far end of ssh), until it goes or ctx ends, and then takes back what it has on trial. Data
// connections come to o.Listener, or to a listener on a free port of its own if that is nil; the greeting on out tells which. Nothing else may be
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
	// A write to a broken pipe on descriptor 1 would end this process (os/signal, SIGPIPE) before it has taken trials back.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)
	// sshd tells the client's address, which its connection has proved (ssh(1), ENVIRONMENT).
	client, _, _ := strings.Cut(os.Getenv("SSH_CONNECTION"), " ")
	s.serve(ctx, wire.NewConn(stdio{in, out}), client)
	return nil
}

// openEcho opens the UDP echo on the listener's address and port if there is none yet, and gives what closes it. Without one, pings are ICMP only.
func (s *server) openEcho(ctx context.Context) (end func()) {
	if s.Echo != nil {
		return func() {}
	}
	// The same port number as TCP, so that a firewall needs one rule of a kind and people remember one number.
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

// maxRejectionLines is how many strangers are logged one by one in a minute; a port scan shall not fill the disk.
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
	case errors.Is(r.Err, wire.ErrNotLinerate):
		return fmt.Sprintf("%s turned away: it speaks %s", r.Remote, r.Dialect)
	}
	return fmt.Sprintf("%s turned away: it speaks %s: %v", r.Remote, r.Dialect, r.Err)
}

// admit counts a client in.
func (s *server) admit() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clients >= s.MaxClients {
		return fmt.Errorf("%w: %d clients are connected, and no more are let in", ErrBusy, s.clients)
	}
	s.clients++
	return nil
}

// dismiss counts a client out.
func (s *server) dismiss() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients--
}

// enterTest takes the one place for a test, waiting within bounds; tell is called once if it has to wait.
func (s *server) enterTest(ctx context.Context, tell func(string)) error {
	// Two tests at once would measure each other.
	select {
	case s.slot <- struct{}{}:
		return nil
	default:
	}
	tell(fmt.Sprintf("another test runs on %s; waiting up to %s for it to end", s.HostName, admissionWait))
	timer := time.NewTimer(admissionWait)
	defer timer.Stop()
	select {
	case s.slot <- struct{}{}:
		return nil
	case <-timer.C:
		return fmt.Errorf("%w: other tests were running there for %s", ErrBusy, admissionWait)
	case <-ctx.Done():
		return fmt.Errorf("wait for another test to end: %w", ctx.Err())
	}
}

// leaveTest frees the place.
func (s *server) leaveTest() { <-s.slot }

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
