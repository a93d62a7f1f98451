package wire_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/wire"
)

// bounded returns a context for one step of a test on a possibly slow machine.
func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestListenRefusesNoKey(t *testing.T) {
	if _, err := wire.Listen(t.Context(), "127.0.0.1:0", wire.Key{}); !errors.Is(err, wire.ErrBadKey) {
		t.Errorf("got %v", err)
	}
}

func TestListenPortTaken(t *testing.T) {
	l := listen(t, wire.NewKey())
	for _, when := range []string{"first", "renewed"} {
		other, err := wire.Listen(t.Context(), l.Addr().String(), wire.NewKey())
		if err == nil {
			other.Close()
			t.Fatalf("%s: a second listener got the same port", when)
		}
		if runtime.GOOS == "linux" &&
			(!errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), "address already in use")) {
			t.Errorf("%s: got %v", when, err)
		}
		if err := wire.ForceRenew(l); err != nil && !errors.Is(err, errors.ErrUnsupported) {
			t.Fatal(err)
		}
	}
}

func TestDataConnections(t *testing.T) {
	l := listen(t, wire.NewKey())
	q := l.Expect(wire.NewToken(), 3)
	defer q.Close()
	for _, index := range []int{2, 0, 255} {
		// Payload directly after the preface, usually in the same segment, must arrive complete.
		near, err := wire.DialData(bounded(t), l.Addr().String(), q.Token(), index, wire.DataOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer near.Close()
		if _, err := near.Write([]byte("payload")); err != nil {
			t.Fatal(err)
		}
		far, got, err := q.Accept(bounded(t))
		if err != nil || got != index {
			t.Fatalf("got index %d, %v, want %d", got, err, index)
		}
		defer far.Close()
		text := make([]byte, 7)
		if _, err := io.ReadFull(far, text); err != nil || string(text) != "payload" {
			t.Errorf("got %q, %v", text, err)
		}
	}
	for name, refused := range map[string]struct {
		token wire.Token
		index int
	}{
		"index taken":   {q.Token(), 2},
		"too many":      {q.Token(), 1},
		"unknown token": {wire.NewToken(), 1},
	} {
		conn, err := wire.DialData(bounded(t), l.Addr().String(), refused.token, refused.index, wire.DataOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Read(make([]byte, 1)); err == nil {
			t.Errorf("%s: the connection remained", name)
		}
		conn.Close()
	}
	if n := l.Rejected()["linerate data"]; n != 3 {
		t.Errorf("%d rejections counted, want 3", n)
	}
	if _, err := wire.DialData(t.Context(), l.Addr().String(), q.Token(), wire.MaxDataConns,
		wire.DataOptions{}); err == nil {
		t.Error("a surplus index was accepted")
	}
}

// TestTokenIsBoundToItsClient offers a token from another address than that of the client that it
// was given to. It is worth nothing there, and the client's own connection is accepted.
func TestTokenIsBoundToItsClient(t *testing.T) {
	for _, c := range []struct {
		name   string
		client string
		data   bool // a listener for data only: the control channel may have come another way
		want   bool
	}{
		{"its own address", "127.0.0.1", false, true},
		{"its own address as IPv6", "::ffff:127.0.0.1", false, true},
		{"another address", "127.0.0.2", false, false},
		{"over ssh", "127.0.0.2", true, true},
		{"unknown", "", false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := listen(t, wire.NewKey())
			if c.data {
				var err error
				if l, err = wire.ListenData(t.Context(), "127.0.0.1:0"); err != nil {
					t.Fatal(err)
				}
				defer l.Close()
			}
			rejected := make(chan wire.Rejection, 1)
			l.OnReject(func(r wire.Rejection) { rejected <- r })
			q := l.Expect(wire.NewToken(), 1)
			defer q.Close()
			client, _ := netip.ParseAddr(c.client) // the zero address: unknown
			q.Admit(client)
			conn, err := wire.DialData(bounded(t), l.Addr().String(), q.Token(), 0, wire.DataOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if !c.want {
				if r := <-rejected; !strings.Contains(fmt.Sprint(r.Err), c.client) {
					t.Errorf("rejected: %v", r.Err)
				}
				return
			}
			far, _, err := q.Accept(bounded(t))
			if err != nil {
				t.Fatal(err)
			}
			far.Close()
		})
	}
}

func TestManyDataConnectionsAtOnce(t *testing.T) {
	l := listen(t, wire.NewKey())
	q := l.Expect(wire.NewToken(), wire.MaxDataConns)
	defer q.Close()
	var group sync.WaitGroup
	for i := range wire.MaxDataConns {
		group.Go(func() {
			conn, err := wire.DialData(bounded(t), l.Addr().String(), q.Token(), i, wire.DataOptions{})
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { conn.Close() })
		})
	}
	for range wire.MaxDataConns {
		conn, _, err := q.Accept(bounded(t))
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
	}
	group.Wait()
}

func TestDataQueueEnds(t *testing.T) {
	l := listen(t, wire.NewKey())
	q := l.Expect(wire.NewToken(), 2)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := q.Accept(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	// A connection that was not accepted is closed with the queue. Waiting for a rejection
	// afterwards orders the two.
	near, err := wire.DialData(bounded(t), l.Addr().String(), q.Token(), 0, wire.DataOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	q.Close()
	q.Close()
	if _, err := near.Read(make([]byte, 1)); err == nil {
		t.Error("the connection outlived its queue")
	}
	if _, _, err := q.Accept(t.Context()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v", err)
	}
	l.Close()
	late := l.Expect(wire.NewToken(), 1)
	if _, _, err := late.Accept(t.Context()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a queue of a closed listener returned %v", err)
	}
}

func TestListenerNamesStrangers(t *testing.T) {
	for name, c := range map[string]struct{ sent, want string }{
		"http":   {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP"},
		"ssh":    {"SSH-2.0-OpenSSH_9.2p1\r\n", "SSH"},
		"iperf3": {"abcdefghijklmnopqrstuvwxyz234567abcd\x00", "iperf3"},
		"iperf2": {"\x40\x01\x00\x78\x00\x00\x00\x01\x00\x00\x13\x89\x00\x02\x00\x00\x00\x00\x00\x00\xff\xff" +
			"\xff\x9c", "iperf2"},
		"iperf2 text":  {"0123456789012345678901234567890123456789", "iperf2"},
		"nuttcp":       {"HELO nuttcp v6.1.2\n", "nuttcp"},
		"zeros":        {strings.Repeat("\x00", 64), "nothing but zeros"},
		"unknown":      {"Lorem ipsum dolor sit amet", "something unknown"},
		"half preface": {"LNRD2\n123", "linerate data"},
		"silence":      {"", "nothing"},
		"old TLS":      {"\x16\x03\x01\x00\x05hello", "TLS"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := listen(t, wire.NewKey())
			rejections := make(chan wire.Rejection, 1)
			l.OnReject(func(r wire.Rejection) { rejections <- r })
			conn, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, c.sent); err != nil {
				t.Fatal(err)
			}
			conn.(*net.TCPConn).CloseWrite()
			r := <-rejections
			if r.Dialect != c.want || r.Err == nil || r.Remote.String() != conn.LocalAddr().String() {
				t.Errorf("got %+v, want %q", r, c.want)
			}
			if l.Rejected()[c.want] != 1 {
				t.Errorf("counted %v", l.Rejected())
			}
		})
	}
}

func TestListenerRefusesStrangersOverTLS(t *testing.T) {
	for name, config := range map[string]*tls.Config{
		"no certificate": {InsecureSkipVerify: true, NextProtos: []string{"linerate/1"}},
		"no ALPN":        {InsecureSkipVerify: true},
		"other ALPN":     {InsecureSkipVerify: true, NextProtos: []string{"h2"}},
		"TLS 1.2":        {InsecureSkipVerify: true, NextProtos: []string{"linerate/1"}, MaxVersion: tls.VersionTLS12},
	} {
		t.Run(name, func(t *testing.T) {
			l := listen(t, wire.NewKey())
			rejections := make(chan wire.Rejection, 1)
			l.OnReject(func(r wire.Rejection) { rejections <- r })
			conn, err := tls.Dial("tcp", l.Addr().String(), config)
			if err == nil {
				defer conn.Close()
				_, err = conn.Read(make([]byte, 1))
			}
			if err == nil {
				t.Error("an unauthenticated peer was accepted")
			}
			if r := <-rejections; r.Dialect != "TLS" {
				t.Errorf("rejections %+v", r)
			}
		})
	}
}

func TestListenerOutlastsIdlers(t *testing.T) {
	key := wire.NewKey()
	l := listen(t, key)
	for range 2 * wire.MaxHalfOpen {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	accepted := make(chan *wire.Conn, 1)
	go func() {
		if c, err := l.Accept(); err == nil {
			accepted <- c
		}
	}()
	c, err := wire.Dial(bounded(t), l.Addr().String(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	far := <-accepted
	far.Close()
}

func TestListenerCloseLeavesNothing(t *testing.T) {
	key := wire.NewKey()
	l := listen(t, key)
	idle, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	nobodyAccepts, err := wire.Dial(bounded(t), l.Addr().String(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer nobodyAccepts.Close()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v", err)
	}
	if err := l.Renew(); err == nil {
		t.Error("a closed listener was renewed")
	}
	<-nobodyAccepts.Done()
	if _, err := idle.Read(make([]byte, 1)); err == nil {
		t.Error("a half-open connection survived")
	}
	if left := leaked(time.Minute); strings.Contains(left, "(*Listener)") {
		t.Error(left)
	}
}

func TestRenewKeepsServing(t *testing.T) {
	key := wire.NewKey()
	l := listen(t, key)
	q := l.Expect(wire.NewToken(), 20)
	defer q.Close()
	for i := range 20 {
		if err := wire.ForceRenew(l); errors.Is(err, errors.ErrUnsupported) {
			t.Skip(err)
		} else if err != nil {
			t.Fatal(err)
		}
		near, err := wire.DialData(bounded(t), l.Addr().String(), q.Token(), i, wire.DataOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer near.Close()
		far, _, err := q.Accept(bounded(t))
		if err != nil {
			// A connection in its handshake on the old socket is reset, as the documentation of
			// Renew says.
			if _, readErr := near.Read(make([]byte, 1)); !errors.Is(readErr, syscall.ECONNRESET) {
				t.Fatal(err, readErr)
			}
			continue
		}
		far.Close()
	}
}

func TestTokenText(t *testing.T) {
	token := wire.NewToken()
	text, err := token.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	var back wire.Token
	if err := back.UnmarshalText(text); err != nil || back != token {
		t.Errorf("%s reads back as %x, %v", text, back, err)
	}
	for _, bad := range []string{"", "00", strings.Repeat("g", 32), strings.Repeat("0", 33)} {
		if err := back.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func FuzzPreface(f *testing.F) {
	f.Add(wire.AppendPreface(nil, wire.NewToken(), 7))
	f.Add([]byte("LNRD2\n"))
	f.Add(bytes.Repeat([]byte{0}, wire.PrefaceBytes))
	f.Fuzz(func(t *testing.T, raw []byte) {
		_ = wire.Dialect(raw)
		token, index, ok := wire.ParsePreface(raw)
		if ok != (len(raw) == wire.PrefaceBytes && bytes.HasPrefix(raw, []byte("LNRD2\n")) &&
			binary.BigEndian.Uint16(raw[wire.PrefaceBytes-2:]) < wire.MaxDataConns) {
			t.Fatalf("%q: %v", raw, ok)
		}
		if ok && !bytes.Equal(wire.AppendPreface(nil, token, index), raw) {
			t.Fatalf("%q does not read back", raw)
		}
	})
}
