package peer_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/peer"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/wire"
)

const (
	rmem = knob.ID("sysctl:net.ipv4.tcp_rmem")
	wmem = knob.ID("sysctl:net.ipv4.tcp_wmem")
)

// far is a far host in this process.
type far struct {
	t      *testing.T
	key    wire.Key
	addr   string
	memory *knob.Memory
	fs     durable.FS
	stop   func() // ends Serve and waits for it

	mu     sync.Mutex
	lines  []string
	logged *sync.Cond
}

// serve starts a far host; change may adjust its options.
func serve(t *testing.T, change func(*peer.ServerOptions)) *far {
	t.Helper()
	f := &far{t: t, key: wire.NewKey(), fs: durable.NewMem()}
	f.logged = sync.NewCond(&f.mu)
	f.memory = knob.NewMemory(map[knob.ID]knob.Value{rmem: "4096 131072 6291456", wmem: "4096 16384 4194304"})
	l, err := wire.Listen(t.Context(), "127.0.0.1:0", f.key)
	if err != nil {
		t.Fatal(err)
	}
	f.addr = l.Addr().String()
	o := peer.ServerOptions{
		Listener: l, Backend: f.memory, Tuning: &knob.Permission{Class: knob.DisturbsLink}, Version: "test",
		HostName: "farside",
		OpenJournal: func() (*journal.Journal, error) {
			return journal.Open(journal.Options{Dir: "/state", FS: f.fs, Backend: f.memory, Side: peer.FarSide,
				Unguarded: true})
		},
		History: func() ([]journal.Change, error) { return journal.History(f.fs, "/state") },
		Log: func(line string) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.lines = append(f.lines, line)
			f.logged.Broadcast()
		},
	}
	if change != nil {
		change(&o)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- peer.Serve(ctx, o) }()
	f.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	t.Cleanup(func() {
		f.stop()
		if t.Failed() {
			t.Logf("the far host logged:\n%s", strings.Join(f.lines, "\n"))
		}
	})
	return f
}

// await waits until the far host has logged a line with text in it.
func (f *far) await(text string) {
	f.t.Helper()
	late := time.AfterFunc(2*time.Minute, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.lines = append(f.lines, "waited in vain for "+text)
		f.logged.Broadcast()
	})
	defer late.Stop()
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		for _, line := range f.lines {
			if strings.HasPrefix(line, "waited in vain") {
				f.t.Fatalf("%s; logged was:\n%s", line, strings.Join(f.lines, "\n"))
			}
			if strings.Contains(line, text) {
				return
			}
		}
		f.logged.Wait()
	}
}

func (f *far) value(id knob.ID) knob.Value { return f.memory.Values()[id] }

// connect returns a client of a far host at addr.
func (f *far) connect(addr string, o peer.ConnectOptions) *peer.Client {
	f.t.Helper()
	o.Key = f.key.String()
	c, err := peer.Connect(f.t.Context(), addr, o)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { c.Close() })
	return c
}

// network is a forwarder between a client and a far host. It can be cut, so that both sides see a
// reset, or frozen, so that data stop.
type network struct {
	addr   string
	ln     net.Listener
	mu     sync.Mutex
	conns  []net.Conn
	mute   bool // new connections are accepted and go nowhere
	frozen chan struct{}
}

func forward(t *testing.T, to string) *network {
	t.Helper()
	return forwardFrom(t, "127.0.0.1", to)
}

// forwardFrom is forward from another address of this host.
func forwardFrom(t *testing.T, from, to string) *network {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &network{addr: ln.Addr().String(), ln: ln, frozen: make(chan struct{})}
	t.Cleanup(func() { ln.Close(); n.cut() })
	go func() {
		for {
			a, err := ln.Accept()
			if err != nil {
				return
			}
			n.mu.Lock()
			mute := n.mute
			if mute {
				n.conns = append(n.conns, a)
			}
			n.mu.Unlock()
			if mute {
				continue
			}
			b, err := dialer.Dial("tcp", to)
			if err != nil {
				a.Close()
				continue
			}
			n.mu.Lock()
			n.conns = append(n.conns, a, b)
			n.mu.Unlock()
			go n.copy(a, b)
			go n.copy(b, a)
		}
	}()
	return n
}

func (n *network) copy(to, from net.Conn) {
	buf := make([]byte, 64<<10)
	for {
		k, err := from.Read(buf)
		select {
		case <-n.frozen:
			return // nothing arrives any more, and neither side is notified
		default:
		}
		if _, werr := to.Write(buf[:k]); err != nil || werr != nil {
			to.Close()
			return
		}
	}
}

func (n *network) freeze() { close(n.frozen) }

// shut lets no new connection in; open ones stay.
func (n *network) shut() { n.ln.Close() }

// deaf lets new connections in and passes none of their data.
func (n *network) deaf() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mute = true
}

func (n *network) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.conns {
		c.(*net.TCPConn).SetLinger(0)
		c.Close()
	}
	n.conns = nil
}

// short is a stream test that ends after 256 KiB, however slow the machine is.
var short = traffic.Spec{Test: traffic.Stream, Streams: 2, Bytes: 256 << 10}

// long is a stream test that outlasts every other step of a test. Its rate keeps the CPUs idle.
var long = traffic.Spec{Test: traffic.Stream, Streams: 1, Duration: 5 * time.Minute, Interval: 100 * time.Millisecond,
	RateBitsPerSec: 1e6}

// brief is the window and the interval of tests that measure for a moment.
const brief = 100 * time.Millisecond

func TestConnectExplainsWhyNot(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	closed := net.JoinHostPort("127.0.0.1", strconv.Itoa(testenv.FreePorts(t, 1)))
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	key := f.key.String()
	for name, c := range map[string]struct {
		target, key string
		want        error
	}{
		"wrong key":    {f.addr, wire.NewKey().String(), wire.ErrWrongKey},
		"mistyped key": {f.addr, key[:len(key)-1], wire.ErrBadKey},
		"no key":       {f.addr, "", peer.ErrNoKey},
		"closed port":  {closed, key, wire.ErrUnreachable},
		// refused by the resolver itself: no query leaves this host
		"unknown host": {"no..such.host", key, wire.ErrUnreachable},
		"silent host":  {silent.Addr().String(), key, wire.ErrUnreachable},
		"bad target":   {"iperf3://x", key, peer.ErrTarget},
	} {
		t.Run(name, func(t *testing.T) {
			patience := time.Minute
			if name == "silent host" {
				patience = time.Second // the only one that waits for it
			}
			_, err := peer.Connect(t.Context(), c.target, peer.ConnectOptions{Key: c.key, Timeout: patience})
			if !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

func TestAcquaintanceAndSnapshot(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	c := f.connect(f.addr, peer.ConnectOptions{HostName: "nearside"})
	info := c.Info()
	if info.Host != "farside" || info.Linerate != "test" || !info.AllowTuning || info.Protocol != peer.Protocol {
		t.Errorf("got %+v", info)
	}
	f.await(`"nearside" (127.0.0.1:`)
	s, err := c.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s.OS == "" || s.Time.IsZero() {
		t.Errorf("got %+v", s)
	}
}

func TestRunOverLoopback(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	c := f.connect(f.addr, peer.ConnectOptions{HostName: "nearside"})
	for _, spec := range []traffic.Spec{
		short,
		{Test: traffic.Stream, Direction: traffic.Bidir, Bytes: 256 << 10},
		{Test: traffic.RR, Duration: brief, Interval: brief},
	} {
		got, err := c.Run(t.Context(), spec, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got.Ends.Local.Host != "nearside" || got.Ends.Remote.Host != "farside" {
			t.Errorf("%s: ends are %q and %q", spec.Test, got.Ends.Local.Host, got.Ends.Remote.Host)
		}
		if got.Bytes < spec.Bytes { // a test in both directions carries its amount in each
			t.Errorf("%s %s: %d bytes, want %d", spec.Test, spec.Direction, got.Bytes, spec.Bytes)
		}
	}
	if _, err := c.Run(t.Context(), traffic.Spec{Test: "nonsense"}, nil); !errors.Is(err, traffic.ErrBadSpec) {
		t.Errorf("got %v", err)
	}
	if _, err := c.Run(t.Context(), short, nil); err != nil {
		t.Errorf("after a refused test: %v", err)
	}
}

func TestOneTestAtATime(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	first, second := f.connect(f.addr, peer.ConnectOptions{}), (*peer.Client)(nil)
	waits := make(chan string, 1)
	second = f.connect(f.addr, peer.ConnectOptions{Notify: func(text string) { waits <- text }})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	running, firstDone, secondDone := make(chan struct{}), make(chan error, 1), make(chan error, 1)
	go func() {
		started := sync.OnceFunc(func() { close(running) })
		_, err := first.Run(ctx, long, func(traffic.Interval) { started() })
		firstDone <- err
	}()
	<-running
	go func() {
		_, err := second.Run(t.Context(), short, nil)
		secondDone <- err
	}()
	if text := <-waits; !strings.Contains(text, "another test runs on farside") {
		t.Errorf("notice %q", text)
	}
	cancel()
	if err := <-firstDone; !errors.Is(err, context.Canceled) {
		t.Errorf("the cancelled test: %v", err)
	}
	if err := <-secondDone; err != nil {
		t.Errorf("the waiting test: %v", err)
	}
	if _, err := first.Run(t.Context(), short, nil); err != nil {
		t.Errorf("after the cancelled test: %v", err)
	}
}

func TestWaitingForATestCanBeGivenUp(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	first := f.connect(f.addr, peer.ConnectOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	second := f.connect(f.addr, peer.ConnectOptions{Notify: func(string) { cancel() }})
	firstCtx, endFirst := context.WithCancel(t.Context())
	running, firstDone := make(chan struct{}), make(chan struct{})
	go func() {
		started := sync.OnceFunc(func() { close(running) })
		_, _ = first.Run(firstCtx, long, func(traffic.Interval) { started() })
		close(firstDone)
	}()
	<-running
	if _, err := second.Run(ctx, short, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := second.Read(t.Context(), rmem); err != nil {
		t.Errorf("the connection did not survive: %v", err)
	}
	endFirst()
	<-firstDone
}

func TestClientsAreCounted(t *testing.T) {
	t.Parallel()
	f := serve(t, func(o *peer.ServerOptions) { o.MaxClients = 1 })
	first := f.connect(f.addr, peer.ConnectOptions{})
	_, err := peer.Connect(t.Context(), f.addr, peer.ConnectOptions{Key: f.key.String()})
	var h interface{ Hint() string }
	if !errors.Is(err, peer.ErrBusy) || !errors.As(err, &h) || !strings.Contains(h.Hint(), "--max-clients") {
		t.Errorf("got %v", err)
	}
	first.Close()
	f.await("left")
	// The place is freed just before or after that line, so a refused client tries again.
	for {
		c, err := peer.Connect(t.Context(), f.addr, peer.ConnectOptions{Key: f.key.String()})
		if errors.Is(err, peer.ErrBusy) && t.Context().Err() == nil {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		return
	}
}

func TestPeerVanishesMidTest(t *testing.T) {
	for name, end := range map[string]func(*network){"cut": (*network).cut, "frozen": (*network).freeze} {
		t.Run(name, func(t *testing.T) {
			if name == "frozen" {
				testenv.Need(t, testenv.Long) // until the missing heartbeats count as the end of the peer
			}
			t.Parallel()
			f := serve(t, nil)
			net := forward(t, f.addr)
			c := f.connect(net.addr, peer.ConnectOptions{})
			if _, err := c.Apply(t.Context(), "to be lost",
				knob.Setting{Knob: rmem, Value: "4096 131072 8388608"}); err != nil {
				t.Fatal(err)
			}
			once := sync.OnceFunc(func() { end(net) })
			_, err := c.Run(t.Context(), long, func(traffic.Interval) { once() })
			if !errors.Is(err, wire.ErrPeerGone) {
				t.Errorf("got %v", err)
			}
			var h interface{ Hint() string }
			if !errors.As(err, &h) || !strings.Contains(h.Hint(), "linerate serve") {
				t.Errorf("%v does not say what to do", err)
			}
			f.await("took back trial")
			if v := f.value(rmem); v != "4096 131072 6291456" {
				t.Errorf("the trial left %q", v)
			}
			// The place of the lost test is free again.
			other := f.connect(f.addr, peer.ConnectOptions{})
			if _, err := other.Run(t.Context(), short, nil); err != nil {
				t.Errorf("after the lost test: %v", err)
			}
		})
	}
}

// TestServerEndsMidTest checks that a server that is ended in the middle of a test is gone for the
// near end, even where the server still had time to name the signal that ended it. The schedulers
// decide which of the two comes first, hence the rounds.
func TestServerEndsMidTest(t *testing.T) {
	for range 8 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			f := serve(t, nil)
			c := f.connect(f.addr, peer.ConnectOptions{})
			once := sync.OnceFunc(func() { go f.stop() })
			if _, err := c.Run(t.Context(), long, func(traffic.Interval) { once() }); !errors.Is(err,
				wire.ErrPeerGone) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestVersionsThatDoNotFit(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	conn, err := wire.Dial(t.Context(), f.addr, f.key)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ask := func(typ string, body string) string {
		t.Helper()
		if err := conn.Send(t.Context(), typ, raw(body)); err != nil {
			t.Fatal(err)
		}
		m, err := conn.Receive(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return string(m.Body)
	}
	if got := ask("snapshot", `{"id":1}`); !strings.Contains(got, `"kinds":["protocol"]`) {
		t.Errorf("before hello: %s", got)
	}
	got := ask("hello", `{"id":2,"body":{"protocol":99,"linerate":"9.9","host":"x"}}`)
	if !strings.Contains(got, `"kinds":["version"]`) || !strings.Contains(got, "linerate 9.9 on x speaks version 99") {
		t.Errorf("version 99: %s", got)
	}
	if got := ask("hello", `{"id":3,"body":{"protocol":1}}`); !strings.Contains(got, `"host":"farside"`) {
		t.Errorf("version 1: %s", got)
	}
	if got := ask("teleport", `{"id":4}`); !strings.Contains(got, `does not know the call \"teleport\"`) {
		t.Errorf("unknown call: %s", got)
	}
	if err := conn.Send(t.Context(), "hello", "no object"); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Receive(t.Context()); !errors.Is(err, wire.ErrPeerGone) || !errors.Is(err, io.EOF) {
		t.Errorf("a call that is none: %v", err)
	}
}

// raw is JSON that is sent as it is.
type raw string

func (r raw) MarshalJSON() ([]byte, error) { return []byte(r), nil }
