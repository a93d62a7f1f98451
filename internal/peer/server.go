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
	"github.com/linerate/linerate/internal/kernel/incoming"
	"github.com/linerate/linerate/internal/peer/roster"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/admission"
	"github.com/linerate/linerate/internal/traffic/echo"
	"github.com/linerate/linerate/internal/traffic/lease"
	"github.com/linerate/linerate/internal/wire"
)

const (
	// defaultMaxClients is how many clients may be connected at once. An idle client costs about 17
	// KB; a running test costs more, but tests run one after another.
	defaultMaxClients = 1024
	// othersShare is the part of the places that one source cannot take, so that a host which
	// reconnects endlessly by mistake does not lock out all others: 16 of 1024.
	othersShare = 64
	// maxRefused is how many refused clients are sent the reason at once.
	maxRefused = 64
	// defaultIdleWait is how long a client may be connected without a request: longer than a user
	// studies one result, and short enough that forgotten clients do not pile up.
	defaultIdleWait = time.Hour
	// greetingWait is how long a new client may take to say hello.
	greetingWait = 10 * time.Second
	// startWait is how long an admitted test may take to start; then its place goes to another. One
	// round trip lies between admission and start, so this only affects a client that gave up
	// without a message.
	startWait = 20 * time.Second
	// undoBound bounds the undoing of one client's trials. Afterwards the guard and the next
	// recovery undo the rest. Changes of rings and features reset a NIC, which takes seconds each.
	undoBound = 2 * time.Minute
	// maxTrialFor bounds how long a client may keep a trial without another change. It is for a
	// client that is alive but has forgotten its trial; heartbeats detect a lost client within ten
	// seconds.
	maxTrialFor = time.Hour
	// guardSlack is how much later than this process the guard ends a trial, and with it all of
	// serve. It is for the change that is being made when the lease ends.
	guardSlack = 60 * time.Second
	// maxCalls bounds the waiting calls of one client.
	maxCalls = 64
	// maxCallBytes bounds their bodies.
	maxCallBytes = 512 << 10
)

// FarSide is the Side of changes made by remote clients, in the journal of the changed host;
// OpenJournal must pass it to journal.Options.
const FarSide = "far"

// ServerOptions say what a far side offers. Zero values select defaults, or offer nothing.
type ServerOptions struct {
	// Listener accepts clients and data connections. ServeStdio creates one when it is nil.
	Listener *wire.Listener
	// Root is the source of snapshots and counters; default live.
	Root host.Root
	// Backend reads knobs; nil: knobs cannot be read.
	Backend knob.Backend
	// OpenJournal opens this host's journal (Side FarSide, Mode Lease, with its guard) at a
	// client's first change; the journal is closed when that client leaves. nil: changes are not
	// possible.
	OpenJournal func() (*journal.Journal, error)
	// History reads the journal without its lock; nil: there is none.
	History func() ([]journal.Change, error)
	// Tuning is what clients may change; nil: nothing. With Peers, the peer of the client says it.
	Tuning *knob.Permission
	// Peers are the clients with keys of their own, whose ring Listener has; nil: all clients have
	// one key, that of Listener
	Peers *roster.Live
	// Serve ends with its first client: no other is let in once one has said hello
	Once       bool
	MaxClients int           // connected at once; default 1024; one source may have all but a 64th
	IdleWait   time.Duration // a client without a request for so long is notified and closed; default 1 h
	// heavy tests that may run at once; default 1, because two measure each other
	AtOnce int
	Limits traffic.Limits // of one test
	// how long the key of Listener lets clients in and keeps them; 0: without end
	KeyExpires time.Duration
	// hosts that may use the key, the first ones that do; 0: any number
	KeyClients int
	// bounds what sources may take in all, shared with the servers of other dialects; nil: a
	// private one with default limits
	Gate *admission.Gate
	// Lease is the right to load this host, which heavy tests of other hosts take; nil: they need
	// none
	Lease    *lease.Lease
	Echo     *echo.Server // answers UDP pings; when nil, Serve and ServeStdio open one
	Version  string       // of this linerate, for display
	HostName string       // default os.Hostname
	// receives one plain sentence per event: clients that connect or are refused, changes made and
	// undone; may be nil
	Log func(message string)

	confirmWithin time.Duration // shorter in tests; 0: the constant
}

// server is the state that the sessions of one Serve share.
type server struct {
	ServerOptions
	said     *unblocked // below Log
	tests    *queue
	key      *keyUse
	sessions sync.WaitGroup // connections in open

	mu      sync.Mutex
	open    map[*wire.Conn]*session // nil for those that are only sent why they are refused
	sources map[netip.Prefix]int    // clients of each
	clients int
	tuner   *session // the session that holds the journal
	chosen  *session // with Once, the only client; nil: none has come yet

	once chan error // with Once, receives the result of Serve; has room for it

	profiling sync.Mutex // held while a client samples this host
}

func newServer(o ServerOptions) *server {
	o.MaxClients = cmp.Or(o.MaxClients, defaultMaxClients)
	o.confirmWithin = cmp.Or(o.confirmWithin, confirmWithin)
	o.IdleWait = cmp.Or(o.IdleWait, defaultIdleWait)
	if o.HostName == "" {
		o.HostName, _ = os.Hostname() // the other side then shows the address instead of a name
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	if o.Gate == nil {
		o.Gate = admission.New(admission.Limits{})
	}
	said := &unblocked{log: o.Log}
	o.Log = said.add
	return &server{
		ServerOptions: o, said: said, tests: newQueue(o.AtOnce), key: newKeyUse(o.KeyExpires, o.KeyClients),
		open: make(map[*wire.Conn]*session), sources: make(map[netip.Prefix]int), once: make(chan error, 1),
	}
}

// Serve answers clients of o.Listener until ctx ends, or with o.Once until the first client has
// left. It then undoes their trials, closes the listener and returns nil. If the listener is closed
// otherwise, or the key of o.Once expires before a client comes, Serve returns an error.
func Serve(ctx context.Context, o ServerOptions) error {
	if o.Listener == nil {
		return errors.New("serve: no listener")
	}
	s := newServer(o)
	defer s.said.flush()
	s.watchRejections()
	defer s.openEcho(ctx)()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	closed := incoming.CloseWith(ctx, func() { _ = o.Listener.Close() })
	defer closed()
	defer s.watchIdle()()
	defer s.watchKey()()
	defer s.watchPeers(ctx)()
	defer s.watchOnce(cancel)()
	for {
		conn, err := o.Listener.Accept()
		if err != nil {
			ended := ctx.Err() != nil
			cancel()
			closed() // no client connects from here on
			s.closeAll()
			// Each session undoes its trials before it ends, so Serve leaves the host as it was.
			s.sessions.Wait()
			if ended {
				return s.result()
			}
			return fmt.Errorf("serve: %w", err)
		}
		// A client that is let in has shown the key; the session decides what it may do.
		ip := remoteIP(conn)
		if err := s.mayEnter(conn); err != nil {
			s.refuse(ctx, conn, s.nameOf(conn), err)
			continue
		}
		if err := s.key.allow(ip); err != nil {
			who := conn.RemoteAddr().String()
			if errors.Is(err, ErrKeyBound) {
				who = fmt.Sprintf("%s, with the key of %s,", who, s.key.holders())
			}
			s.refuse(ctx, conn, who, err)
			continue
		}
		s.start(ctx, conn, ip)
	}
}

// ServeStdio answers one client over in and out (the far end of ssh) until it leaves or ctx ends,
// and then undoes its trials. Data connections come to o.Listener, or to a private listener on a
// free port if that is nil; the greeting on out names the port. Nothing else may be written to out.
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
	defer s.said.flush()
	s.watchRejections()
	defer s.openEcho(ctx)()
	// A write to a broken pipe on descriptor 1 would end this process (os/signal, SIGPIPE) before
	// it has undone the trials.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)
	// sshd reports the client's address, which its connection has proved (ssh(1), ENVIRONMENT).
	client, _, _ := strings.Cut(os.Getenv("SSH_CONNECTION"), " ")
	conn := wire.NewConn(stdio{in, out})
	s.start(ctx, conn, client)
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	s.sessions.Wait()
	return nil
}

// openEcho opens the UDP echo on the listener's address and port if there is none yet, and returns
// a function that closes it. Without it, pings use ICMP only.
func (s *server) openEcho(ctx context.Context) (end func()) {
	if s.Echo != nil {
		return func() {}
	}
	// The port number is that of TCP, so that a firewall needs one rule of a kind and users
	// remember one number.
	echo, err := echo.Listen(ctx, s.Listener.Addr().String())
	if err != nil {
		s.Log(fmt.Sprintf("no UDP echo, pings are ICMP only: %v", err))
		return func() {}
	}
	s.Echo = echo
	return func() { _ = echo.Close() } // an error of a socket that is no longer used does not matter
}

// stdio combines two streams into one.
type stdio struct {
	io.ReadCloser
	out io.WriteCloser
}

func (s stdio) Write(b []byte) (int, error) { return s.out.Write(b) }
func (s stdio) Close() error                { return errors.Join(s.out.Close(), s.ReadCloser.Close()) }

// maxRejectionLines is how many refused connections are logged individually per minute, so that a
// port scan does not fill the disk.
const maxRejectionLines = 20

// watchRejections logs refused connections.
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

// rejected describes a refused connection in one sentence.
func rejected(r wire.Rejection) string {
	switch {
	case errors.Is(r.Err, wire.ErrWrongKey):
		return fmt.Sprintf("%s turned away: it has another key", r.Remote)
	case errors.Is(r.Err, wire.ErrNotLinerate) && r.Dialect == "linerate data":
		return fmt.Sprintf("%s turned away: its data connection begins differently; is it another release of linerate?",
			r.Remote)
	case errors.Is(r.Err, wire.ErrNotLinerate):
		return fmt.Sprintf("%s turned away: it speaks %s", r.Remote, r.Dialect)
	}
	return fmt.Sprintf("%s turned away: it speaks %s: %v", r.Remote, r.Dialect, r.Err)
}

// admit registers a client.
func (s *server) admit(c *session) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clients >= s.MaxClients {
		return fmt.Errorf("%w: all %d places for clients are taken", ErrBusy, s.clients)
	}
	if n := s.sources[c.source]; n > 0 && n >= s.MaxClients-s.MaxClients/othersShare {
		return fmt.Errorf("%w: %d clients of this source are connected; "+
			"the remaining places are reserved for other sources", ErrBusy, n)
	}
	s.clients++
	s.sources[c.source]++
	s.open[c.conn] = c
	s.sessions.Add(1)
	return nil
}

// dismiss unregisters a client once nothing of it is left.
func (s *server) dismiss(c *session) {
	s.mu.Lock()
	s.clients--
	if s.sources[c.source]--; s.sources[c.source] == 0 {
		delete(s.sources, c.source)
	}
	s.mu.Unlock()
	s.release(c.conn)
}

// hold registers a connection that is sent why it is refused.
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

// closeAll closes every connection; registered clients wind up on their own.
func (s *server) closeAll() {
	s.mu.Lock()
	conns := slices.Collect(maps.Keys(s.open))
	s.mu.Unlock()
	for _, conn := range conns {
		// In a goroutine each: a client that does not read delays the last record that TLS writes
		// to it, for five seconds.
		go conn.Close()
	}
}

// watchIdle closes clients that send no request for too long, until the returned function is
// called.
func (s *server) watchIdle() (end func()) {
	// One ticker for all instead of a timer each: a forgotten client may stay an eighth longer.
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

// dropIdle closes clients that have been idle for too long.
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
		s.Log(fmt.Sprintf("%s sent no request for %s; connection closed", c.conn.RemoteAddr(), s.IdleWait))
		go c.goodbye(fmt.Sprintf("%s closes the connection: no request came in %s", s.HostName, s.IdleWait))
	}
}

// goodbye sends a client the reason and ends its connection.
func (c *session) goodbye(why string) {
	ctx, cancel := context.WithTimeout(c.ctx, greetingWait)
	defer cancel()
	_ = c.conn.Send(ctx, msgNote, note{Text: why}) // the connection ends even if the reason cannot be sent
	_ = c.conn.Close()
}

// becomeTuner makes sure that only one client at a time tunes this host.
func (s *server) becomeTuner(who *session) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tuner != nil && s.tuner != who {
		return fmt.Errorf("another client (%s) tunes this host: %w", s.tuner.who, journal.ErrLocked)
	}
	s.tuner = who
	return nil
}

// stopTuning lets another client tune.
func (s *server) stopTuning(who *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tuner == who {
		s.tuner = nil
	}
}

// remoteIP returns the address of a client.
func remoteIP(conn *wire.Conn) string {
	if a, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		return a.AddrPort().Addr().Unmap().String()
	}
	return ""
}
