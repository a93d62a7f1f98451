package wire_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/wire"
)

// hostile are the ways in which attackers and unrelated programs use a port. Each may end early,
// when the other side has closed.
var hostile = map[string]func(c net.Conn, token wire.Token){
	"silence":    func(net.Conn, wire.Token) {},
	"half close": func(c net.Conn, _ wire.Token) { _ = c.(*net.TCPConn).CloseWrite() },
	"garbage": func(c net.Conn, _ wire.Token) {
		b := make([]byte, 4096)
		for i := range b {
			b[i] = byte(rand.Uint32())
		}
		_, _ = c.Write(b)
	},
	"every dialect": func(c net.Conn, _ wire.Token) {
		for _, heads := range firstBytes { // map order is random
			_, _ = io.WriteString(c, heads[0])
			return
		}
	},
	"cut preface":     func(c net.Conn, token wire.Token) { _, _ = c.Write(wire.AppendPreface(nil, token, 0)[:9]) },
	"unknown token":   func(c net.Conn, _ wire.Token) { _, _ = c.Write(wire.AppendPreface(nil, wire.NewToken(), 0)) },
	"index too large": func(c net.Conn, token wire.Token) { _, _ = c.Write(wire.AppendPreface(nil, token, 0xffff)) },
	"one too many":    func(c net.Conn, token wire.Token) { _, _ = c.Write(wire.AppendPreface(nil, token, 0)) },
	"cut hello":       func(c net.Conn, _ wire.Token) { _, _ = io.WriteString(c, "\x16\x03\x01\x02\x00\x01\x00") },
	"oversized record": func(c net.Conn, _ wire.Token) {
		_, _ = io.WriteString(c, "\x16\x03\x01\xff\xff"+strings.Repeat("x", 1<<16))
	},
	"slow hello": func(c net.Conn, _ wire.Token) {
		for _, b := range []byte("\x16\x03\x01\x40\x00\x01" + strings.Repeat("\x00", 4096)) {
			if _, err := c.Write([]byte{b}); err != nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	},
	"TLS of another protocol": func(c net.Conn, _ wire.Token) {
		_ = tls.Client(c, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}).Handshake()
	},
	"TLS without a key": func(c net.Conn, _ wire.Token) {
		s := tls.Client(c, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"linerate/1"}})
		_ = s.Handshake()
		_, _ = s.Write(make([]byte, 1<<14))
	},
}

// TestListenerAmongHostiles serves one honest client among hundreds of hostile connections. Each of
// them must be rejected, and none may leave anything behind.
func TestListenerAmongHostiles(t *testing.T) {
	testenv.Need(t, testenv.Long) // silent connections hold their place for five seconds
	const each = 25
	key := wire.NewKey()
	l := listen(t, key)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Handle(func(m wire.Message) { go c.Send(context.Background(), m.Type, m.Body) }, func() {})
		}
	}()
	q := l.Expect(wire.NewToken(), 1)
	defer q.Close()
	taken, err := wire.DialData(bounded(t), l.Addr().String(), q.Token(), 0, wire.DataOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if accepted, _, err := q.Accept(bounded(t)); err != nil {
		t.Fatal(err)
	} else {
		defer accepted.Close()
	}
	before := runtime.NumGoroutine()
	var strangers sync.WaitGroup
	for name, attack := range hostile {
		for range each {
			strangers.Go(func() {
				c, err := net.Dial("tcp", l.Addr().String())
				if err != nil {
					t.Error(err)
					return
				}
				defer c.Close()
				attack(c, q.Token())
				_ = c.SetReadDeadline(time.Now().Add(time.Minute))
				if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("%s: still connected", name)
				}
			})
		}
	}
	over := make(chan struct{})
	go func() { strangers.Wait(); close(over) }()
	for served := 0; ; served++ {
		c, err := wire.Dial(bounded(t), l.Addr().String(), key)
		if err != nil {
			t.Fatalf("the honest client is locked out after %d connections: %v", served, err)
		}
		if err := c.Send(t.Context(), "ping", served); err != nil {
			t.Fatal(err)
		}
		if m := receive(t, c); string(m.Body) != fmt.Sprint(served) {
			t.Fatalf("the honest client got %+v", m)
		}
		c.Close()
		select {
		case <-over:
		default:
			continue
		}
		break
	}
	sum := uint64(0)
	for _, n := range l.Rejected() {
		sum += n
	}
	if want := uint64(each * len(hostile)); sum < want {
		t.Errorf("%d rejections counted for %d hostile connections: %v", sum, want, l.Rejected())
	}
	for end := time.Now().Add(time.Minute); runtime.NumGoroutine() > before+10; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines before and %d after", before, runtime.NumGoroutine())
		}
	}
}

// TestHandshakesGiveWay has one source hold every place for a handshake without continuing. An
// honest client must get through without waiting for the end of all of them.
func TestHandshakesGiveWay(t *testing.T) {
	key := wire.NewKey()
	l := listen(t, key)
	crowded := make(chan struct{}, 1)
	l.OnReject(func(r wire.Rejection) {
		if strings.Contains(r.Err.Error(), "gave way") {
			select {
			case crowded <- struct{}{}:
			default:
			}
		}
	})
	for range wire.MaxHandshakes {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, "\x16\x03\x01\x02\x00\x01"); err != nil {
			t.Fatal(err)
		}
	}
	go func() {
		if c, err := l.Accept(); err == nil {
			c.Handle(func(wire.Message) {}, func() {})
		}
	}()
	c, err := wire.Dial(bounded(t), l.Addr().String(), key)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	select {
	case <-crowded:
	default:
		// Possibly not all hostile connections were in their handshake when the honest client
		// dialled; then none had to be dropped.
		t.Log("no connection had to be dropped")
	}
}

// TestManySourcesLockNobodyOut has hundreds of addresses hold back the rest of their first message.
// An honest client must have its turn before its patience ends. TestQueueOfHandshakes is about
// those that send all of it.
func TestManySourcesLockNobodyOut(t *testing.T) {
	key := wire.NewKey()
	l := listen(t, key)
	for i := range 400 {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 1, byte(i>>8), byte(i))}}
		c, err := d.DialContext(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			testenv.Missing(t, testenv.Network, "many loopback addresses: ", err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, "\x16\x03\x01\x02\x00\x01"); err != nil {
			t.Fatal(err)
		}
	}
	go func() {
		if c, err := l.Accept(); err == nil {
			c.Handle(func(wire.Message) {}, func() {})
		}
	}()
	c, err := wire.Dial(bounded(t), l.Addr().String(), key)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

// TestHelloOfAnySize reads first messages that come in pieces, are empty, or are too long.
func TestHelloOfAnySize(t *testing.T) {
	for _, c := range []struct {
		head, rest string
		want       int // bytes; 0: refused
	}{
		{"\x16", "\x03\x01\x00\x02ab", 7},
		{"\x16\x03\x01\x00\x02", "ab", 7},
		{"\x16\x03\x01\x00\x02abcd", "", 9},
		{"\x16\x03\x01\x00\x00", "", 5},
		{"\x16\x03", "", 0},
		{"\x16\x03\x01\x00\x02", "a", 0},
		{"\x16\x03\x01\xff\xff", strings.Repeat("a", 1<<16), 0},
	} {
		got, err := wire.WholeHello(iotest.OneByteReader(strings.NewReader(c.rest)), []byte(c.head))
		if (err == nil) != (c.want > 0) || err == nil && string(got) != (c.head + c.rest)[:c.want] {
			t.Errorf("%q %.20q: %d bytes, %v", c.head, c.rest, len(got), err)
		}
	}
}

// TestHalfOpenAreShared fills the listener from one address; a client from another address must
// find room. A round in which the machine was so slow that the silence of that client was its end
// shows nothing.
func TestHalfOpenAreShared(t *testing.T) {
	for {
		began := time.Now()
		err := onlyOfItsSource(t)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
		if time.Since(began) < wire.HelloWithin {
			t.Fatalf("the only connection of its source was dropped: %v", err)
		}
	}
}

// onlyOfItsSource returns how a read ends on the only connection of its source.
func onlyOfItsSource(t *testing.T) error {
	l := listen(t, wire.NewKey())
	for range wire.MaxHalfOpen + 10 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	other, err := d.DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		testenv.Missing(t, testenv.Network, "a second loopback address: ", err)
	}
	defer other.Close()
	// It sends nothing but is not the one to be dropped: its source has one connection, the other
	// source a thousand.
	late, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	_ = other.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	_, err = other.Read(make([]byte, 1))
	return err
}
