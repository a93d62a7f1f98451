package traffic

import (
	"context"
	"flag"
	"io"
	"net"
	"net/netip"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/traffic/traffictest"
	"github.com/linerate/linerate/internal/wire"
)

// TestMain also fails when the tests leave goroutines or descriptors behind. Most tests wait for a
// window to pass, so by default 16 of them run at once.
func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Lookup("test.parallel").Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		_ = flag.Set("test.parallel", "16")
	}
	traffictest.Main(m)
}

// world is two ends of a test in one process: a pipe as control channel and real TCP connections
// over loopback.
type world struct {
	link Link
	far  Responder

	nearControl, farControl *wire.Conn
	listener                *net.TCPListener
}

// longPatience is that of tests in which no peer is silent: a slow machine is no silent peer.
var longPatience = timing{
	Setup: time.Minute, Silence: time.Minute, Grace: time.Minute, Slack: time.Minute, Beat: 50 * time.Millisecond,
}

// impatience is longPatience with some waits that a test must wait out.
func impatience(change func(*timing)) *timing {
	t := longPatience
	change(&t)
	return &t
}

func newWorld(t testing.TB) *world {
	t.Helper()
	a, b := net.Pipe()
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{nearControl: wire.NewConn(a), farControl: wire.NewConn(b), listener: listener}
	for _, c := range []*wire.Conn{w.nearControl, w.farControl} {
		c.Bear(time.Minute) // a machine that starves both ends silences neither
	}
	t.Cleanup(func() {
		_ = w.nearControl.Close()
		_ = w.farControl.Close()
		_ = listener.Close()
	})
	w.link = Link{Control: w.nearControl, Dial: w.dial, PeerIP: "127.0.0.1", HostName: "near", Sample: counterOf(t),
		timing: &longPatience}
	w.far = Responder{Control: w.farControl, Accept: w.accept, HostName: "far", PeerIP: "127.0.0.1",
		Sample: counterOf(t), timing: &longPatience}
	return w
}

// counterOf returns a host whose counters move by one with every reading.
func counterOf(testing.TB) func() (*host.Counters, error) {
	var n uint64
	return func() (*host.Counters, error) {
		n++
		return &host.Counters{
			Time: time.Now(),
			Values: map[string]uint64{
				"nic.eth0.rx_dropped": n, "Tcp.RetransSegs": 2 * n, "softnet.dropped": 7,
				"TcpExt.TCPBacklogDrop": 3 * n,
			},
			CPUs: []host.CPUTimes{{CPU: -1, User: float64(n), System: float64(n), Idle: 2 * float64(n)}},
		}, nil
	}
}

func (w *world) dial(ctx context.Context, index int, _ wire.DataOptions) (*net.TCPConn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", w.listener.Addr().String())
	if err != nil {
		return nil, err
	}
	if _, err := c.Write([]byte{byte(index)}); err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

func (w *world) accept(ctx context.Context) (*net.TCPConn, int, error) {
	stop := context.AfterFunc(ctx, func() { _ = w.listener.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	for {
		c, err := w.listener.AcceptTCP()
		if err != nil {
			return nil, 0, err
		}
		var index [1]byte
		if _, err := io.ReadFull(c, index[:]); err != nil {
			_ = c.Close() // the other end gave up
			continue
		}
		return c, int(index[0]), nil
	}
}

// serve plays the far end of one test as package peer does: it reads the first message and passes
// the Spec on.
func (w *world) serve(ctx context.Context) <-chan error {
	done := make(chan error, 1)
	go func() {
		m, err := w.farControl.Receive(ctx)
		if err != nil {
			done <- err
			return
		}
		var start StartBody
		if err := decode(m, &start); err != nil {
			done <- err
			return
		}
		done <- w.far.Respond(ctx, start)
	}()
	return done
}

var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})
