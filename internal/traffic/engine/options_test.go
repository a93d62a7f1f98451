package engine

import (
	"errors"
	"net"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/host/tcpinfo"
	"github.com/linerate/linerate/internal/kernel/sys"
)

// TestOptionsBeforeTheHandshake dials with a chosen port and segment size and checks the
// connection.
func TestOptionsBeforeTheHandshake(t *testing.T) {
	lc := net.ListenConfig{Control: DialControl(ConnOptions{WindowBytes: 100_000})}
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := testenv.FreePorts(t, 1)

	o := ConnOptions{MSSBytes: 1000, WindowBytes: 50_000, TOS: 0x28, Congestion: "reno", LocalPort: port, NoDelay: true,
		PacingBytesPerSec: 1e9}
	d := net.Dialer{Control: DialControl(o)}
	raw, err := d.DialContext(t.Context(), "tcp", l.Addr().String())
	if errors.Is(err, sys.ErrNotSupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if got := accepted.RemoteAddr().(*net.TCPAddr).Port; got != port {
		t.Errorf("connected from port %d, want %d", got, port)
	}
	near, err := Adopt(raw.(*net.TCPConn), o)
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	far, err := Adopt(accepted.(*net.TCPConn), ConnOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	// Twice the requested size, as socket(7) says; and ten milliseconds of the pacing rate.
	if d := cmp.Diff(tcpinfo.Buffers{SendBytes: 100_000, ReceiveBytes: 100_000, Congestion: "reno",
		UnsentBytes: int64(o.PacingBytesPerSec / 100)}, near.Buffers()); d != "" {
		t.Errorf("near (-want +got):\n%s", d)
	}
	if b := far.Buffers(); b.SendBytes != 200_000 || b.ReceiveBytes != 200_000 {
		t.Errorf("far: %+v", b)
	}
	for name, c := range map[string]*Conn{"near": near, "far": far} {
		info, err := c.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.SndMSSBytes > 1000 {
			t.Errorf("%s sends segments of %d bytes", name, info.SndMSSBytes)
		}
	}
	if info, err := near.Info(); err != nil || info.MaxPacingRateBytes != pacingHeadroom*1e9 {
		t.Errorf("pacing rate %d, %v", info.MaxPacingRateBytes, err)
	}
}

// TestRefusedOptionsCloseTheConnection checks that Adopt closes the connection, which it has taken
// by then.
func TestRefusedOptionsCloseTheConnection(t *testing.T) {
	near, far := socketPair(t)
	defer far.Close()
	if c, err := Adopt(near, ConnOptions{Congestion: "carrier pigeon"}); err == nil {
		c.Close()
		t.Error("an unknown congestion control was accepted")
	}
	if _, err := near.Write([]byte{0}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the connection was not closed: %v", err)
	}
}

// TestBusyPoll runs transactions of several sizes that spin; none allocates. Only a few of them:
// AllocsPerRun leaves one logical processor to both ends, which then get it in turns of 10 ms.
func TestBusyPoll(t *testing.T) {
	for size, runs := range map[int]int{1: 5, 100_000: 1} {
		near, far := connPair(t, ConnOptions{NoDelay: true})
		p := &Phase{}
		p.Set(Measured)
		o := TransactionOptions{RequestBytes: size, ResponseBytes: size, BusyPoll: true}
		wq, err := NewRequester(p, near, o)
		if errors.Is(err, sys.ErrNotSupported) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		wa, err := NewResponder(p, far, o)
		if err != nil {
			t.Fatal(err)
		}
		if wq.Method != "busy-poll" || wa.Method != "busy-poll" || !wq.Spins || !wa.Spins {
			t.Errorf("methods %q and %q", wq.Method, wa.Method)
		}
		ended := make(chan error, 1)
		go func() { ended <- wa.Run(-1) }()
		q := wq.body.(*requester)
		// The least of a few: with so few runs, a thread that the runtime starts meanwhile would count.
		n := 1.0
		for tries := 0; n != 0 && tries < 5; tries++ {
			n = testing.AllocsPerRun(runs, func() {
				if err := q.round(wq); err != nil {
					t.Fatal(err)
				}
			})
		}
		if n != 0 {
			t.Errorf("%v allocations per transaction", n)
		}
		p.Set(Stopped)
		wa.Wake()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// TestSpinningPairIsApart keeps the two ends of a busy-polling pair off each other's CPU.
func TestSpinningPairIsApart(t *testing.T) {
	cpus := []int{4, 5, 6}
	for _, c := range []struct {
		w    *Worker
		want int
	}{
		{&Worker{Role: Requester}, 4},
		{&Worker{Role: Responder}, 4},
		{&Worker{Role: Requester, Spins: true}, 4},
		{&Worker{Role: Responder, Spins: true}, 6},
	} {
		if got := c.w.Place(cpus, 0); got != c.want {
			t.Errorf("role %d, spins %v: cpu %d, want %d", c.w.Role, c.w.Spins, got, c.want)
		}
	}
}

func TestExchangesAreBounded(t *testing.T) {
	to := netip.MustParseAddrPort("127.0.0.1:9")
	for _, o := range []ConnectOptions{
		{To: to, Prefix: make([]byte, maxPrefixBytes+1), RequestBytes: 1, ResponseBytes: 1},
		{To: to, ResponseBytes: 1},
		{To: to, RequestBytes: 1},
		{To: to, RequestBytes: -1, ResponseBytes: 1},
		{To: to, RequestBytes: maxExchangeBytes + 1, ResponseBytes: 1},
		{To: to, RequestBytes: 1, ResponseBytes: maxExchangeBytes + 1},
	} {
		if w, err := NewConnector(&Phase{}, o); err == nil {
			w.Close()
			t.Errorf("%d bytes after a prefix of %d, answered by %d, were accepted", o.RequestBytes, len(o.Prefix),
				o.ResponseBytes)
		}
		if w, _, err := NewAcceptor(&Phase{}, AcceptOptions{Prefix: o.Prefix, RequestBytes: o.RequestBytes,
			ResponseBytes: o.ResponseBytes}); err == nil {
			w.Close()
			t.Errorf("an acceptor of the same was made")
		}
	}
}
