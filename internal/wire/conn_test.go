package wire_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/wire"
)

// channels are the ways to join two ends; all of them pass the same tests.
var channels = map[string]func(t *testing.T) (a, b *wire.Conn){
	"tls":   joinTLS,
	"pipe":  joinPipe,
	"stdio": joinStdio,
}

func joinTLS(t *testing.T) (a, b *wire.Conn) {
	t.Helper()
	key := wire.NewKey()
	l := listen(t, key)
	type accepted struct {
		c   *wire.Conn
		err error
	}
	far := make(chan accepted, 1)
	go func() {
		c, err := l.Accept()
		far <- accepted{c, err}
	}()
	a, err := wire.Dial(t.Context(), l.Addr().String(), key)
	if err != nil {
		t.Fatal(err)
	}
	got := <-far
	if got.err != nil {
		t.Fatal(got.err)
	}
	t.Cleanup(func() { a.Close(); got.c.Close() })
	return a, got.c
}

func joinPipe(t *testing.T) (a, b *wire.Conn) {
	x, y := net.Pipe()
	a, b = wire.NewConn(x), wire.NewConn(y)
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

// halves makes one stream of two files, like standard input and output.
type halves struct {
	in, out *os.File
}

func (h halves) Read(b []byte) (int, error)  { return h.in.Read(b) }
func (h halves) Write(b []byte) (int, error) { return h.out.Write(b) }
func (h halves) Close() error                { return errors.Join(h.out.Close(), h.in.Close()) }

func joinStdio(t *testing.T) (a, b *wire.Conn) {
	t.Helper()
	r1, w1, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r2, w2, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	a, b = wire.NewConn(halves{r1, w2}), wire.NewConn(halves{r2, w1})
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

func listen(t *testing.T, key wire.Key) *wire.Listener {
	t.Helper()
	l, err := wire.Listen(t.Context(), "127.0.0.1:0", key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// overEach runs a test over every kind of channel.
func overEach(t *testing.T, run func(t *testing.T, a, b *wire.Conn)) {
	for name, join := range channels {
		t.Run(name, func(t *testing.T) {
			a, b := join(t)
			run(t, a, b)
		})
	}
}

func receive(t *testing.T, c *wire.Conn) wire.Message {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	m, err := c.Receive(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestConnCarriesMessages(t *testing.T) {
	overEach(t, func(t *testing.T, a, b *wire.Conn) {
		if err := a.Send(t.Context(), "greet", map[string]int{"answer": 42}); err != nil {
			t.Fatal(err)
		}
		if err := b.Send(t.Context(), "bare", nil); err != nil {
			t.Fatal(err)
		}
		want := wire.Message{Type: "greet", Body: json.RawMessage(`{"answer":42}`)}
		if diff := cmp.Diff(want, receive(t, b)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(wire.Message{Type: "bare"}, receive(t, a)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestConnCarriesLargeMessages(t *testing.T) {
	// From the listening side, as answers are sent.
	overEach(t, func(t *testing.T, b, a *wire.Conn) {
		large := strings.Repeat("0123456789abcdef", 100_000)
		sent := make(chan error, 1)
		go func() { sent <- a.Send(t.Context(), "large", large) }()
		var got string
		if err := json.Unmarshal(receive(t, b).Body, &got); err != nil || got != large {
			t.Errorf("%d bytes arrived as %d, %v", len(large), len(got), err)
		}
		if err := <-sent; err != nil {
			t.Error(err)
		}
		if err := a.Send(t.Context(), "too large", strings.Repeat("x", wire.MaxMessageBytes)); err == nil {
			t.Error("a message over the limit was accepted")
		}
		if err := a.Send(t.Context(), "next", nil); err != nil {
			t.Errorf("the channel did not survive the refused message: %v", err)
		}
		receive(t, b)
	})
}

func TestConnBoundsRequests(t *testing.T) {
	client, server := joinTLS(t)
	if err := client.Send(t.Context(), "request", strings.Repeat("x", wire.MaxRequestBytes)); err != nil &&
		!errors.Is(err, wire.ErrPeerGone) {
		t.Fatal(err)
	}
	<-server.Done()
	if _, err := server.Receive(t.Context()); !errors.Is(err, wire.ErrProtocol) {
		t.Errorf("got %v", err)
	}
}

func TestConnGivesUpASlowMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, y := net.Pipe()
		defer y.Close()
		go io.Copy(io.Discard, y)
		c := wire.NewConnBeating(x, 5*time.Millisecond)
		defer c.Close()
		var writer sync.WaitGroup
		defer writer.Wait()
		writer.Go(func() {
			// A message of the largest size, sent byte by byte: never silent, and never complete.
			for b := []byte{1, 0, 0, 0}; ; b = []byte{' '} {
				if _, err := y.Write(b); err != nil {
					return
				}
				time.Sleep(time.Millisecond)
			}
		})
		<-c.Done()
		if _, err := c.Receive(t.Context()); !errors.Is(err, wire.ErrProtocol) ||
			!strings.Contains(err.Error(), "took longer than") {
			t.Errorf("got %v", err)
		}
	})
}

func TestConnKeepsOrderOfManySenders(t *testing.T) {
	overEach(t, func(t *testing.T, a, b *wire.Conn) {
		const senders, each = 8, 50
		var group sync.WaitGroup
		for s := range senders {
			group.Go(func() {
				for i := range each {
					if err := a.Send(t.Context(), fmt.Sprint(s), i); err != nil {
						t.Error(err)
					}
				}
			})
		}
		next := make(map[string]int)
		for range senders * each {
			m := receive(t, b)
			if got := string(m.Body); got != fmt.Sprint(next[m.Type]) {
				t.Fatalf("sender %s: got message %s, want %d", m.Type, got, next[m.Type])
			}
			next[m.Type]++
		}
		group.Wait()
	})
}

func TestConnOutlivesACancelledReceive(t *testing.T) {
	overEach(t, func(t *testing.T, a, b *wire.Conn) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := b.Receive(ctx); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
		if err := b.Send(ctx, "never", nil); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
		if err := a.Send(t.Context(), "later", nil); err != nil {
			t.Fatal(err)
		}
		if m := receive(t, b); m.Type != "later" {
			t.Errorf("got %q", m.Type)
		}
	})
}

func TestConnCloseUnblocks(t *testing.T) {
	overEach(t, func(t *testing.T, a, b *wire.Conn) {
		got := make(chan error, 1)
		go func() {
			_, err := a.Receive(context.Background())
			got <- err
		}()
		a.Close()
		if err := <-got; !errors.Is(err, net.ErrClosed) {
			t.Errorf("Receive returned %v", err)
		}
		if err := a.Send(t.Context(), "late", nil); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Send returned %v", err)
		}
		<-a.Done()
	})
}

// stuck is a stream whose writes sleep on after it is closed, as those to a pipe of standard output
// do.
type stuck struct {
	io.Reader
	free chan struct{}
}

func (s stuck) Write(b []byte) (int, error) { <-s.free; return len(b), nil }
func (stuck) Close() error                  { return nil }

// TestConnEndsASendThatIsStuck: what waits for a Send winds up when the channel ends, whether this
// side ends it or the peer is silent.
func TestConnEndsASendThatIsStuck(t *testing.T) {
	for _, silence := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r, w := io.Pipe()
			s := stuck{r, make(chan struct{})}
			c := wire.NewConn(s)
			sent := make(chan error, 2)
			for range 2 { // one is being written, and one waits
				go func() { sent <- c.Send(context.Background(), "answer", nil) }()
			}
			synctest.Wait()
			if !silence {
				c.Close()
			}
			<-c.Done()
			for range 2 {
				select {
				case err := <-sent:
					if want := wire.ErrPeerGone; silence && !errors.Is(err, want) {
						t.Errorf("%v, want %v", err, want)
					} else if !silence && !errors.Is(err, net.ErrClosed) {
						t.Errorf("%v, want %v", err, net.ErrClosed)
					}
				case <-time.After(time.Minute):
					t.Error("a Send outlives its channel")
				}
			}
			close(s.free)
			w.Close()
		})
	}
}

func TestConnPeerCloses(t *testing.T) {
	overEach(t, func(t *testing.T, a, b *wire.Conn) {
		for i := range 3 {
			if err := a.Send(t.Context(), "last words", i); err != nil {
				t.Fatal(err)
			}
		}
		a.Close()
		for range 3 {
			receive(t, b)
		}
		_, err := b.Receive(t.Context())
		if !errors.Is(err, wire.ErrPeerGone) || !errors.Is(err, io.EOF) {
			t.Errorf("got %v", err)
		}
		if err := b.Send(t.Context(), "too late", nil); !errors.Is(err, wire.ErrPeerGone) {
			t.Errorf("Send returned %v", err)
		}
	})
}

func TestConnGivesUpASilentPeer(t *testing.T) {
	x, y := net.Pipe()
	defer y.Close()
	go io.Copy(io.Discard, y) // the peer's kernel acknowledges, the peer itself sends nothing
	c := wire.NewConnBeating(x, time.Millisecond)
	defer c.Close()
	_, err := c.Receive(t.Context())
	if !errors.Is(err, wire.ErrPeerGone) || !strings.Contains(err.Error(), "nothing heard for 4ms") {
		t.Errorf("got %v", err)
	}
}

// TestConnBearsSilence makes the channel tolerate more silence: as long as requested, and only
// until a byte from the peer arrives afterwards.
func TestConnBearsSilence(t *testing.T) {
	for name, c := range map[string]struct {
		// beat sends the peer's heartbeat; beaten waits until the channel has counted silence
		use  func(c *wire.Conn, beat, beaten func())
		want string
	}{
		"while in effect": {func(c *wire.Conn, beat, _ func()) { c.Bear(20 * time.Millisecond); beat() }, "24ms"},
		"the longest counts": {func(c *wire.Conn, beat,
			_ func()) {
			c.Bear(20 * time.Millisecond)
			c.Bear(time.Millisecond)()
			beat()
		}, "24ms"},
		"over, without a byte since": {func(c *wire.Conn, _, beaten func()) {
			over := c.Bear(20 * time.Millisecond)
			beaten()
			over()
		}, "24ms"},
		"over, and heard": {func(c *wire.Conn, beat, _ func()) { c.Bear(time.Hour)(); beat() }, "4ms"},
		"second over has no effect": {func(c *wire.Conn, beat, _ func()) {
			c.Bear(20 * time.Millisecond)
			o := c.Bear(time.Millisecond)
			o()
			o()
			beat()
		}, "24ms"},
		"zero duration": {func(c *wire.Conn, _, _ func()) { c.Bear(0) }, "4ms"},
	} {
		t.Run(name, func(t *testing.T) {
			x, y := net.Pipe()
			defer y.Close()
			conn := wire.NewConnBeating(x, time.Millisecond)
			defer conn.Close()
			c.use(conn, func() {
				if _, err := y.Write(make([]byte, 4)); err != nil {
					t.Error(err)
				}
			}, func() {
				if _, err := io.ReadFull(y, make([]byte, 2*4)); err != nil {
					t.Error(err)
				}
			})
			go io.Copy(io.Discard, y)
			_, err := conn.Receive(t.Context())
			if !errors.Is(err, wire.ErrPeerGone) || !strings.Contains(err.Error(), "nothing heard for "+c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestConnBeatsWhileIdle(t *testing.T) {
	x, y := net.Pipe()
	c := wire.NewConnBeating(x, time.Millisecond)
	defer c.Close()
	for range 5 * wire.SilentBeats {
		beat := []byte{1, 1, 1, 1}
		if _, err := io.ReadFull(y, beat); err != nil || !bytes.Equal(beat, make([]byte, 4)) {
			t.Fatalf("read %v, %v instead of a heartbeat", beat, err)
		}
		if _, err := y.Write(beat); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-c.Done():
		t.Error("the channel gave up a peer that beats")
	default:
	}
	y.Close()
}

func TestConnRefusesWhatIsNoMessage(t *testing.T) {
	frame := func(body string) []byte {
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
	}
	for name, raw := range map[string][]byte{
		"not JSON":    frame("hello"),
		"no type":     frame(`{"body":1}`),
		"wrong shape": frame(`["type"]`),
		"too long":    {0xff, 0xff, 0xff, 0xff},
		"flood":       bytes.Repeat(frame(`{"type":"x"}`), wire.MaxInboxMessage+1),
	} {
		t.Run(name, func(t *testing.T) {
			x, y := net.Pipe()
			defer y.Close()
			c := wire.NewConn(x)
			defer c.Close()
			go y.Write(raw)
			<-c.Done()
			var err error
			for err == nil {
				_, err = c.Receive(t.Context())
			}
			if !errors.Is(err, wire.ErrProtocol) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func FuzzReadFrame(f *testing.F) {
	for _, body := range []any{nil, 1, "text", map[string]any{"a": []int{1, 2}}} {
		frame, err := wire.AppendFrame(nil, "seed", body)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(frame)
		f.Add(append(make([]byte, 4), frame...))
		f.Add(frame[:len(frame)-1])
	}
	f.Add([]byte{0, 0, 0, 2, '{', '}'})
	f.Add([]byte{0x00, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, n, err := wire.ReadFrame(bytes.NewReader(raw))
		if err != nil || n == 0 {
			return // not a message
		}
		var body any
		if m.Body != nil {
			body = m.Body
		}
		again, err := wire.AppendFrame(nil, m.Type, body)
		if err != nil {
			t.Fatalf("read %+v, but cannot encode it: %v", m, err)
		}
		back, _, err := wire.ReadFrame(bytes.NewReader(again))
		if err != nil || back.Type != m.Type {
			t.Fatalf("%+v reads back as %+v, %v", m, back, err)
		}
	})
}
