package traffic

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/traffic/datagram"
	"github.com/linerate/linerate/internal/traffic/echo"
	"github.com/linerate/linerate/internal/wire"
)

// A test waits this long for a peer that is silent.
var (
	noSetup   = impatience(func(t *timing) { t.Setup = 500 * time.Millisecond })
	noStart   = impatience(func(t *timing) { t.Setup = 2 * time.Second }) // the connections are there by then
	noBeats   = impatience(func(t *timing) { t.Silence = 400 * time.Millisecond })
	noPeer    = impatience(func(t *timing) { t.Silence, t.Grace = 400*time.Millisecond, time.Second })
	noGoodbye = impatience(func(t *timing) { t.Grace = time.Second })
)

// script plays one end of a test by hand.
type script struct {
	t       *testing.T
	control *wire.Conn
}

func (s script) send(typ string, body any) {
	s.t.Helper()
	if err := s.control.Send(s.t.Context(), typ, body); err != nil {
		s.t.Errorf("script: %v", err)
	}
}

// expect reads until a message of type typ.
func (s script) expect(typ string) wire.Message {
	s.t.Helper()
	for {
		m, err := s.control.Receive(s.t.Context())
		if err != nil {
			s.t.Errorf("script: wait for %s: %v", typ, err)
			return wire.Message{}
		}
		if m.Type == typ {
			return m
		}
		if m.Type != msgBeat && m.Type != msgInterval {
			s.t.Errorf("script: %s instead of %s", m.Type, typ)
			return m
		}
	}
}

// leave reads that the other end stops the test, and goes without a last message.
func (s script) leave() {
	s.t.Helper()
	s.expect(msgStop)
	_ = s.control.Close()
}

// swallow reads the control channel until it ends, as a process that hangs still has a kernel that
// receives.
func (s script) swallow() {
	for {
		if _, err := s.control.Receive(s.t.Context()); err != nil {
			return
		}
	}
}

// playFar runs a scripted far end up to test.go, with all data connections open and unused.
func (w *world) playFar(t *testing.T, spec Spec, then func(script, []*net.TCPConn)) <-chan struct{} {
	t.Helper()
	spec, err := spec.Normalize()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s := script{t, w.farControl}
		s.expect(MsgStart)
		s.send(msgAccept, acceptBody{})
		var conns []*net.TCPConn
		for range spec.Connections() {
			c, _, err := w.accept(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			conns = append(conns, c)
		}
		s.send(msgReady, nil)
		s.expect(msgGo)
		then(s, conns)
	}()
	return done
}

func TestFarEndBreaks(t *testing.T) {
	t.Parallel()
	upWithData := Spec{Test: Stream, Streams: 2, WarmUp: time.Second}
	for _, c := range []struct {
		name string
		spec Spec
		far  func(script, []*net.TCPConn)
		want error
		text string

		timing *timing
	}{
		{"process dies", upWithData, func(s script, conns []*net.TCPConn) {
			for _, c := range conns {
				_ = c.SetLinger(0)
				_ = c.Close()
			}
			_ = s.control.Close()
		}, ErrPeerGone, "", &longPatience},
		{"control channel ends", Spec{Test: RR}, func(s script, _ []*net.TCPConn) {
			_ = s.control.Close()
		}, ErrPeerGone, "", &longPatience},
		{"data connection ends", Spec{Test: Stream, Direction: Down},
			func(s script, conns []*net.TCPConn) {
				_ = conns[0].Close()
				s.swallow()
			}, ErrPeerGone, "receive data", noGoodbye},
		{"machine hangs", upWithData, func(s script, _ []*net.TCPConn) { s.swallow() }, ErrPeerGone,
			"silent for", noPeer},
		{"says why", upWithData, func(s script, conns []*net.TCPConn) {
			_ = conns[0].Close()
			_ = conns[1].Close()
			s.send(msgError, errorBody{Message: "out of coffee"})
			s.expect(msgStop)
		}, ErrFar, "out of coffee", &longPatience},
		{"talks nonsense", upWithData, func(s script, _ []*net.TCPConn) {
			s.send("test.nonsense", nil)
			s.leave()
		}, ErrProtocol, "test.nonsense", &longPatience},
		{"sends a broken interval", upWithData, func(s script, _ []*net.TCPConn) {
			s.send(msgInterval, "not an interval")
			s.leave()
		}, ErrProtocol, "test.interval", &longPatience},
		{"sends a result too early", upWithData, func(s script, _ []*net.TCPConn) {
			s.send(msgResult, resultBody{})
			s.leave()
		}, ErrProtocol, "test.result", &longPatience},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			t.Parallel()
			w.link.timing = c.timing
			// An hour, so that a test that does not notice hangs.
			c.spec.Duration = time.Hour
			done := w.playFar(t, c.spec, c.far)
			_, err := Run(t.Context(), w.link, c.spec, nil)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%v, want %v with %q", err, c.want, c.text)
			}
			_ = w.nearControl.Close()
			<-done
		})
	}
}

// TestStalledStreamEndsOnTime has a far receiver that never reads, so the sender sleeps in write
// for the whole test.
func TestStalledStreamEndsOnTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	spec := shortSpec(Stream)
	done := w.playFar(t, spec, func(s script, _ []*net.TCPConn) {
		s.expect(msgMark)
		s.send(msgOpened, nil)
		s.send(msgDone, nil)
		s.expect(msgStop)
		s.send(msgResult, resultBody{Seconds: 0.3})
	})
	r, err := Run(t.Context(), w.link, spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	<-done
	if r.Bytes != 0 || r.ThroughputBitsPerSec != 0 || r.DurationSeconds != 0.3 {
		t.Errorf("%+v", r)
	}
}

func TestNearEndBreaks(t *testing.T) {
	t.Parallel()
	long := Spec{Test: Stream, Duration: 10 * time.Minute, Interval: 100 * time.Millisecond}
	dialAll := func(w *world, t *testing.T, n int) []*net.TCPConn {
		var conns []*net.TCPConn
		for i := range n {
			c, err := w.dial(t.Context(), i, wire.DataOptions{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			conns = append(conns, c)
		}
		return conns
	}
	for _, c := range []struct {
		name string
		near func(script, *world)
		want error
		text string

		timing *timing
		early  int // data connections that are open before the far end waits for them
	}{
		{"goes before it connects", func(s script, w *world) {
			s.expect(msgAccept)
			_ = s.control.Close()
		}, ErrPeerGone, "", &longPatience, 0},
		{"never connects", func(s script, _ *world) {
			s.expect(msgAccept)
			s.expect(msgError)
			s.send(msgStop, nil)
		}, ErrPeerGone, "accept data connections", noSetup, 0},
		{"changes its mind", func(s script, _ *world) {
			s.expect(msgAccept)
			s.send(msgStop, nil)
			s.expect(msgError)
		}, errStopped, "", &longPatience, 0},
		{"connects twice", func(s script, w *world) {
			s.expect(msgAccept)
			c, err := w.dial(s.t.Context(), 1, wire.DataOptions{})
			if err != nil {
				s.t.Error(err)
			}
			defer c.Close()
			s.expect(msgError)
			s.send(msgStop, nil)
		}, ErrProtocol, "data connection 1 is out of place", &longPatience, 0},
		{"never starts", func(s script, w *world) {
			s.expect(msgAccept)
			s.expect(msgReady)
			s.expect(msgError)
			s.send(msgStop, nil)
		}, ErrPeerGone, "wait for test.go", noStart, 1},
		{"dies while sending", func(s script, w *world) {
			s.expect(msgAccept)
			conns := dialAll(w, s.t, 1)
			s.expect(msgReady)
			s.send(msgGo, nil)
			s.expect(msgBeat)
			_ = conns[0].SetLinger(0)
			_ = conns[0].Close()
			_ = s.control.Close()
		}, ErrPeerGone, "", &longPatience, 0},
		{"hangs", func(s script, w *world) {
			s.expect(msgAccept)
			dialAll(w, s.t, 1)
			s.expect(msgReady)
			s.send(msgGo, nil)
			s.expect(msgError)
			s.send(msgStop, nil)
		}, ErrPeerGone, "silent for", noBeats, 0},
		{"stops before its time", func(s script, w *world) {
			s.expect(msgAccept)
			dialAll(w, s.t, 1)
			s.expect(msgReady)
			s.send(msgGo, nil)
			s.send(msgMark, nil)
			s.expect(msgOpened)
			s.send(msgStop, nil)
			s.expect(msgError)
		}, errStopped, "", &longPatience, 0},
		{"opens the window twice", func(s script, w *world) {
			s.expect(msgAccept)
			dialAll(w, s.t, 1)
			s.expect(msgReady)
			s.send(msgGo, nil)
			s.send(msgMark, nil)
			s.expect(msgOpened)
			s.send(msgMark, nil)
			s.expect(msgError)
			s.send(msgStop, nil)
		}, ErrProtocol, "test.mark", &longPatience, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			t.Parallel()
			w.far.timing = c.timing
			dialAll(w, t, c.early)
			done := make(chan error, 1)
			go func() { done <- w.far.Respond(t.Context(), StartBody{Spec: long}) }()
			c.near(script{t, w.nearControl}, w)
			if err := <-done; !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%v, want %v with %q", err, c.want, c.text)
			}
		})
	}
}

// TestBadSpecIsRefused gives the far end what a near end of another version might send.
func TestBadSpecIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	done := make(chan error, 1)
	go func() { done <- w.far.Respond(t.Context(), StartBody{Spec: Spec{Test: "quantum"}}) }()
	s := script{t, w.nearControl}
	var body errorBody
	if err := decode(s.expect(msgError), &body); err != nil {
		t.Fatal(err)
	}
	if !body.Refused || !strings.Contains(body.Message, `no test "quantum"`) {
		t.Errorf("%+v", body)
	}
	s.send(msgStop, nil)
	if err := <-done; !errors.Is(err, ErrBadSpec) {
		t.Errorf("far: %v", err)
	}
}

// TestDialFails has one data connection that cannot be opened; the other ones must be closed.
func TestDialFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	refused := errors.New("no more ports")
	w.link.Dial = func(ctx context.Context, index int, o wire.DataOptions) (*net.TCPConn, error) {
		if index == 2 {
			return nil, refused
		}
		return w.dial(ctx, index, o)
	}
	done := w.serve(t.Context())
	spec := shortSpec(Stream)
	spec.Streams = 4
	if _, err := Run(t.Context(), w.link, spec, nil); !errors.Is(err, refused) {
		t.Errorf("near: %v", err)
	}
	if err := <-done; !errors.Is(err, errStopped) {
		t.Errorf("far: %v", err)
	}
}

func TestUnknownCongestionControl(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	done := w.serve(t.Context())
	spec := shortSpec(Stream)
	spec.Congestion = "nosuch"
	if _, err := Run(t.Context(), w.link, spec, nil); err == nil || !strings.Contains(err.Error(), `"nosuch"`) {
		t.Errorf("near: %v", err)
	}
	<-done
}

// TestDatagramsBreak has one end of a udp test end in the middle, in several ways.
func TestDatagramsBreak(t *testing.T) {
	t.Parallel()
	onlyLinux(t)
	long := Spec{Test: UDP, Duration: 10 * time.Minute, Interval: 100 * time.Millisecond, RateBitsPerSec: 1e6,
		Direction: Bidir}
	for _, c := range []struct {
		name string
		do   func(w *world, cancelFar func())
		want error
	}{
		{"the far side gives up", func(_ *world, cancel func()) { cancel() }, ErrFar},
		{"the channel breaks", func(w *world, _ func()) { _ = w.farControl.Close() }, ErrPeerGone},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.withEcho(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := w.serve(ctx)
			once := sync.OnceFunc(func() { c.do(w, cancel) })
			_, err := Run(t.Context(), w.link, long, func(Interval) { once() })
			if !errors.Is(err, c.want) {
				t.Errorf("near: %v", err)
			}
			if err := <-done; err == nil {
				t.Error("far: no error")
			}
		})
	}
}

// TestHelloGoesUnheard has a far end whose UDP port leads nowhere, as behind a firewall. Whichever
// end loses patience first says so.
func TestHelloGoesUnheard(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		near, far *timing
		want      error
	}{
		"near": {noStart, &longPatience, ErrNoAnswer}, // the far end accepts the test before that
		"far":  {&longPatience, noSetup, ErrFar},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.withEcho(t)
			w.link.timing, w.far.timing = c.near, c.far
			w.link.Echo = fmt.Sprintf("127.0.0.1:%d", testenv.FreePorts(t, 1))
			done := w.serve(t.Context())
			if _, err := Run(t.Context(), w.link, shortSpec(UDP), nil); !errors.Is(err, c.want) {
				t.Errorf("near: %v, want %v", err, c.want)
			}
			if err := <-done; err == nil {
				t.Error("far: no error")
			}
		})
	}
}

// TestStrangersGetNothing sends hellos with a wrong token, and from a wrong address, to a far end
// that waits for some.
func TestStrangersGetNothing(t *testing.T) {
	t.Parallel()
	onlyLinux(t)
	w := newWorld(t)
	w.withEcho(t)
	w.far.timing = noSetup
	w.far.PeerIP = "127.0.0.2" // the far end expects another near end
	done := make(chan error, 1)
	go func() { done <- w.far.Respond(t.Context(), StartBody{Spec: shortSpec(UDP)}) }()
	s := script{t, w.nearControl}
	var accepted acceptBody
	if err := decode(s.expect(msgAccept), &accepted); err != nil {
		t.Fatal(err)
	}
	socket, err := datagram.Dial(netip.AddrPortFrom(loopback, uint16(accepted.EchoPort)), datagram.SocketOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	var p [echo.HelloBytes]byte
	for _, token := range []echo.Token{echo.Token(accepted.EchoToken), {1, 2, 3}} {
		echo.PutHello(p[:], token, 0)
		if err := socket.Send(p[:]); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := socket.Receive(p[:], 200*time.Millisecond); err == nil {
		t.Errorf("%d bytes for a stranger", n)
	}
	s.expect(msgError)
	s.send(msgStop, nil)
	if err := <-done; !errors.Is(err, ErrPeerGone) {
		t.Errorf("far: %v", err)
	}
}
