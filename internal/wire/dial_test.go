package wire_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/wire"
)

// answer serves one TCP port with fn for each connection.
func answer(t *testing.T, fn func(net.Conn)) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { conn.Close() })
			go fn(conn)
		}
	}()
	return ln.Addr().String()
}

// hello reads the beginning of a ClientHello.
func hello(c net.Conn, n int) { _, _ = io.ReadFull(c, make([]byte, n)) }

// expiring is a context whose deadline passes when a test says so.
type expiring struct {
	context.Context
	over chan struct{}
}

func (e expiring) Done() <-chan struct{} { return e.over }

func (e expiring) Err() error {
	select {
	case <-e.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func closedPort(t *testing.T) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(testenv.FreePorts(t, 1)))
}

func TestDialExplainsWhyNot(t *testing.T) {
	key := wire.NewKey()
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	secureWeb := httptest.NewUnstartedServer(http.NotFoundHandler())
	secureWeb.Config.ErrorLog = log.New(io.Discard, "", 0) // it logs our handshake
	secureWeb.StartTLS()
	t.Cleanup(secureWeb.Close)
	own, err := wire.KeyCertificate(key, "server")
	if err != nil {
		t.Fatal(err)
	}
	late := expiring{t.Context(), make(chan struct{})}
	heard := sync.OnceFunc(func() { close(late.over) })
	for name, c := range map[string]struct {
		addr string
		kind error
		text string // in the message
		hint string // in the advice
	}{
		// Go's resolver itself refuses a name with an empty label, so no query leaves this host.
		"unknown host": {"no..such.host:7070", wire.ErrUnreachable, "no such host", "spelled"},
		"closed port":  {closedPort(t), wire.ErrUnreachable, "refused", "linerate serve"},
		"wrong key":    {listen(t, wire.NewKey()).Addr().String(), wire.ErrWrongKey, "wrong key", "printed"},
		"http":         {web.Listener.Addr().String(), wire.ErrNotLinerate, "HTTP", "host and port"},
		"https": {secureWeb.Listener.Addr().String(), wire.ErrNotLinerate, "TLS, but not linerate/1",
			"host and port"},
		"ssh": {answer(t, func(c net.Conn) { io.WriteString(c, "SSH-2.0-OpenSSH_9.2p1\r\n") }),
			wire.ErrNotLinerate, "SSH", ""},
		"sink": {answer(t, func(c net.Conn) { hello(c, 100); heard(); io.Copy(io.Discard, c) }), wire.ErrUnreachable,
			"sent nothing", "alive"},
		"iperf3": {answer(t, func(c net.Conn) { hello(c, 37); c.Write([]byte{9}); io.Copy(io.Discard, c) }),
			wire.ErrNotLinerate, "iperf3", ""},
		"closes": {answer(t, func(c net.Conn) { hello(c, 100); c.(*net.TCPConn).CloseWrite() }),
			wire.ErrNotLinerate, "without sending anything", ""},
		"dies midway": {answer(t,
			func(c net.Conn) { hello(c, 100); io.WriteString(c, "\x16\x03\x03\x40\x00"); c.Close() }),
			wire.ErrPeerGone, "", ""},
		"right identity, wrong protocol": {answer(t, func(c net.Conn) {
			s := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{own}})
			s.Handshake()
		}), wire.ErrNotLinerate, "not linerate/1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "iperf3" {
				testenv.Need(t, testenv.Long) // Dial itself waits ten seconds for more
			}
			ctx := bounded(t)
			if name == "sink" {
				ctx = late // the only case that waits for the timeout
			}
			conn, err := wire.Dial(ctx, c.addr, key)
			if err == nil {
				conn.Close()
				t.Fatal("connected")
			}
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want %v and the text %q", err, c.kind, c.text)
			}
			if !strings.HasPrefix(err.Error(), "connect to "+c.addr+": ") {
				t.Errorf("%v lacks operation and subject at its beginning", err)
			}
			var e *wire.Error
			if !errors.As(err, &e) || !strings.Contains(e.Hint(), c.hint) {
				t.Errorf("advice %q, want %q", e.Hint(), c.hint)
			}
		})
	}
}

func TestDialGivenUpByTheCaller(t *testing.T) {
	addr := answer(t, func(c net.Conn) { io.Copy(io.Discard, c) })
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	_, err := wire.Dial(ctx, addr, wire.NewKey())
	if !errors.Is(err, context.Canceled) || errors.Is(err, wire.ErrUnreachable) {
		t.Errorf("got %v", err)
	}
	if _, err := wire.Dial(t.Context(), addr, wire.Key{}); !errors.Is(err, wire.ErrBadKey) {
		t.Errorf("without a key: %v", err)
	}
}

// TestDataConnectionFromAChosenPort dials twice from the same local port.
func TestDataConnectionFromAChosenPort(t *testing.T) {
	l := listen(t, wire.NewKey())
	q := l.Expect(wire.NewToken(), 2)
	defer q.Close()
	_, text, _ := net.SplitHostPort(closedPort(t))
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	called := false
	o := wire.DataOptions{LocalPort: port,
		Control: func(string, string, syscall.RawConn) error { called = true; return nil }}
	conn, err := wire.DialData(bounded(t), l.Addr().String(), q.Token(), 0, o)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got := conn.LocalAddr().(*net.TCPAddr).Port; got != port || !called {
		t.Errorf("connected from port %d instead of %d; control called: %v", got, port, called)
	}
	var e *wire.Error
	if _, err := wire.DialData(bounded(t), l.Addr().String(), q.Token(), 1, o); !errors.As(err, &e) ||
		!errors.Is(err, wire.ErrPortTaken) || !strings.Contains(e.Advice, text) {
		t.Errorf("a taken port: %v", err)
	}
}

func TestDialDataExplainsWhyNot(t *testing.T) {
	_, err := wire.DialData(t.Context(), closedPort(t), wire.NewToken(), 0, wire.DataOptions{})
	if !errors.Is(err, wire.ErrUnreachable) || !strings.Contains(err.Error(), "open data connection to 127.0.0.1:") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := wire.DialData(ctx, closedPort(t), wire.NewToken(), 0, wire.DataOptions{}); !errors.Is(err,
		context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestServerHearsOfTheWrongKey(t *testing.T) {
	l := listen(t, wire.NewKey())
	rejections := make(chan wire.Rejection, 1)
	l.OnReject(func(r wire.Rejection) { rejections <- r })
	if _, err := wire.Dial(bounded(t), l.Addr().String(), wire.NewKey()); !errors.Is(err, wire.ErrWrongKey) {
		t.Errorf("client: %v", err)
	}
	if r := <-rejections; !errors.Is(r.Err, wire.ErrWrongKey) {
		t.Errorf("server: %v", r.Err)
	}
}

func TestPeerVanishes(t *testing.T) {
	key := wire.NewKey()
	l := listen(t, key)
	// A forwarder simulates the network: cutting it resets both sides.
	var toServer net.Conn
	ready := make(chan net.Conn, 1)
	addr := answer(t, func(c net.Conn) {
		s, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Error(err)
			return
		}
		ready <- s
		go io.Copy(s, c)
		io.Copy(c, s)
		c.(*net.TCPConn).SetLinger(0)
		c.Close()
	})
	accepted := make(chan *wire.Conn, 1)
	go func() {
		if c, err := l.Accept(); err == nil {
			accepted <- c
		}
	}()
	c, err := wire.Dial(bounded(t), addr, key)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	far := <-accepted
	defer far.Close()
	toServer = <-ready
	toServer.Close()
	for side, conn := range map[string]*wire.Conn{"near": c, "far": far} {
		if _, err := conn.Receive(bounded(t)); !errors.Is(err, wire.ErrPeerGone) {
			t.Errorf("%s: %v", side, err)
		}
	}
}

// TestDialHasTheTimeOfItsCaller: a user who gives a host five minutes to answer gives them to the
// handshake too. A unit that is started by the connection may need most of them on a busy host.
func TestDialHasTheTimeOfItsCaller(t *testing.T) {
	for given, want := range map[time.Duration]time.Duration{0: 10 * time.Second, time.Second: time.Second,
		5 * time.Minute: 5 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			ctx, began := t.Context(), time.Now()
			if given > 0 {
				var end context.CancelFunc
				ctx, end = context.WithTimeout(ctx, given)
				defer end()
			}
			bounded, cancel := wire.Patient(ctx)
			defer cancel()
			if deadline, ok := bounded.Deadline(); !ok || deadline.Sub(began) != want {
				t.Errorf("a caller with %v: %v, want %v", given, deadline.Sub(began), want)
			}
		})
	}
}
