package sockperf

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/admission"
	"github.com/linerate/linerate/internal/traffic/engine"
	"github.com/linerate/linerate/internal/traffic/traffictest"
)

func TestClientWithOwnServer(t *testing.T) {
	t.Parallel()
	said := new(traffictest.Log)
	s, stop := startServer(t, ServerOptions{Log: said.Add, Address: "[::1]:0"})
	s4, _ := startServer(t, ServerOptions{Address: ":0"})
	for _, c := range []struct {
		name, target string
		spec         traffic.Spec
	}{
		{"rr over IPv6", s.Addr().String(), traffic.Spec{Test: traffic.RR, Streams: 3}},
		{"rr with options", s4Loopback(s4), traffic.Spec{Test: traffic.RR, TOS: 0x10, WindowBytes: 1 << 16,
			MSSBytes: 1000}},
		{"ping with a type of service", s4Loopback(s4),
			traffic.Spec{Test: traffic.Ping, Gap: time.Millisecond, TOS: 0x10}},
		{"ping over IPv6", s.Addr().String(), traffic.Spec{Test: traffic.Ping, Gap: time.Millisecond}},
		{"ping, server on all addresses", s4Loopback(s4),
			traffic.Spec{Test: traffic.Ping, Gap: time.Millisecond, RequestBytes: 1000}},
		// 127.0.0.2 answers only if the server answers from the address that was asked.
		{"ping, another address of the host",
			net.JoinHostPort("127.0.0.2", strings.TrimPrefix(s4.Addr().String(), "[::]:")),
			traffic.Spec{Test: traffic.Ping, Gap: time.Millisecond}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.spec.TOS != 0 && runtime.GOOS != "linux" {
				testenv.Missing(t, testenv.Network, "socket options are set on bare descriptors only")
			}
			c.spec.WarmUp = 50 * time.Millisecond
			var n uint64
			sample := func() (*host.Counters, error) {
				n++
				return &host.Counters{
					Time: time.Now(), Values: map[string]uint64{"Udp.InDatagrams": n},
					CPUs: []host.CPUTimes{{CPU: -1, User: float64(n), System: float64(n), Idle: float64(n)}},
				}, nil
			}
			var seen []traffic.Interval
			r := traffictest.Longer(100*time.Millisecond, func(window time.Duration) *traffic.Result {
				seen, c.spec.Duration = nil, window
				r, err := Run(t.Context(), c.target, c.spec, ClientOptions{Sample: sample, HostName: "near"},
					func(i traffic.Interval) { seen = append(seen, i) })
				if err != nil {
					t.Fatal(err)
				}
				return r
			}, answered)
			if len(seen) != len(r.Intervals) || len(seen) < 2 {
				t.Errorf("%d intervals, %d reported", len(r.Intervals), len(seen))
			}
			if r.Ends.Local.CPUSeconds <= 0 || r.Ends.Local.Counters["Udp.InDatagrams"] != 1 {
				t.Errorf("end %+v", r.Ends.Local)
			}
			if r.RTT == nil || r.RTT.Count == 0 || (c.spec.Test == traffic.Ping) != (r.LossRatio != nil) {
				t.Errorf("%+v loss %v", r.RTT, r.LossRatio)
			}
			if c.spec.Test == traffic.RR && (r.RetransmitsTotal == nil || len(r.Warnings) != 1 ||
				!strings.Contains(r.Warnings[0], "14 bytes instead of 1")) {
				t.Errorf("retransmits %v, warnings %q", r.RetransmitsTotal, r.Warnings)
			}
		})
	}
	t.Cleanup(func() { // after the parallel tests
		stop()
		said.Await(t, 1, "over udp", "answered")
	})
}

// answered reports whether a test has the time of a round trip.
func answered(r *traffic.Result) bool { return r.RTT != nil && r.RTT.Count > 0 }

// s4Loopback returns the IPv4 loopback address of a server on all addresses.
func s4Loopback(s *Server) string {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), s.Addr().Port()).String()
}

func TestBadSpecsAreRefused(t *testing.T) {
	off := false
	for _, c := range []struct {
		spec traffic.Spec
		want string
	}{
		{traffic.Spec{Test: traffic.Stream}, "not stream"},
		{traffic.Spec{Test: traffic.UDP}, "not udp"},
		{traffic.Spec{Test: traffic.RR, RequestBytes: 20, ResponseBytes: 30}, "answers 20 bytes with as many"},
		{traffic.Spec{Test: traffic.RR, RequestBytes: 1 << 17, ResponseBytes: 1 << 17}, "65507"},
		{traffic.Spec{Test: traffic.RR, BusyPoll: true}, "spin"},
		{traffic.Spec{Test: traffic.RR, NoDelay: &off}, "Nagle"},
		{traffic.Spec{Test: traffic.RR, FarCPUs: []int{1}}, "CPUs"},
	} {
		_, err := Run(t.Context(), "127.0.0.1:9", c.spec, ClientOptions{}, nil)
		if !errors.Is(err, traffic.ErrBadSpec) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.spec, err)
		}
	}
}

// TestClientNamesWhatIsNoServer has silent, closed and foreign servers.
func TestClientNamesWhatIsNoServer(t *testing.T) {
	t.Parallel()
	rr, ping := traffic.Spec{Test: traffic.RR, RequestBytes: 100, ResponseBytes: 100}, traffic.Spec{Test: traffic.Ping}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("SSH-2.0-OpenSSH_9.2\r\n"))
			_ = c.Close()
		}
	}()
	if _, err := Run(t.Context(), l.Addr().String(), rr, ClientOptions{greetWait: 100 * time.Millisecond},
		nil); !errors.Is(err, traffic.ErrProtocol) || !strings.Contains(err.Error(), "SSH") {
		t.Errorf("an ssh server: %v", err)
	}
	closed := "127.0.0.1:" + strconv.Itoa(testenv.FreePorts(t, 1))
	if _, err := Run(t.Context(), closed, ping, ClientOptions{greetWait: 100 * time.Millisecond},
		nil); !errors.Is(err, traffic.ErrNoAnswer) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("a closed udp port: %v", err)
	}
	if _, err := Run(t.Context(), closed, rr, ClientOptions{greetWait: 100 * time.Millisecond}, nil); err == nil ||
		!strings.Contains(err.Error(), "refused") {
		t.Errorf("a closed tcp port: %v", err)
	}
	silent, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	if _, err := Run(t.Context(), silent.LocalAddr().String(), ping, ClientOptions{greetWait: 100 * time.Millisecond},
		nil); !errors.Is(err, traffic.ErrNoAnswer) || !strings.Contains(err.Error(), "3 messages were sent") {
		t.Errorf("a silent udp port: %v", err)
	}
}

func TestClientEndsWithItsContext(t *testing.T) {
	s, _ := startServer(t, ServerOptions{})
	for _, test := range []traffic.Test{traffic.RR, traffic.Ping} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("enough")
		_, err := Run(ctx, s.Addr().String(), traffic.Spec{Test: test, Interval: 100 * time.Millisecond},
			ClientOptions{}, func(traffic.Interval) { cancel(cause) })
		if !errors.Is(err, cause) {
			t.Errorf("%s: %v", test, err)
		}
		cancel(nil)
	}
}

func TestClientSeesItsServerGo(t *testing.T) {
	s, stop := startServer(t, ServerOptions{})
	_, err := Run(t.Context(), s.Addr().String(), traffic.Spec{Test: traffic.RR, Interval: 100 * time.Millisecond},
		ClientOptions{}, func(traffic.Interval) { stop() })
	if err == nil || !strings.Contains(err.Error(), "receive answer") &&
		!strings.Contains(err.Error(), "send message") {
		t.Errorf("%v", err)
	}
}

func TestAddress(t *testing.T) {
	for in, want := range map[string]string{
		"host": "host:11111", "host:5": "host:5", "192.0.2.1": "192.0.2.1:11111", "::1": "[::1]:11111",
		"[::1]": "[::1]:11111", "[::1]:7": "[::1]:7",
	} {
		if got := address(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

// TestRoundsDoNotAllocate counts allocations at both ends of ping-pong.
func TestRoundsDoNotAllocate(t *testing.T) {
	s, _ := startServer(t, ServerOptions{Gate: admission.New(admission.Limits{PacketsPerSecond: admission.Unlimited})})
	phase := &engine.Phase{}
	m := &meter{spec: traffic.Spec{Test: traffic.RR}, phase: phase}
	end, _, _, err := m.dial(t.Context(), s.Addr().String(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer end.close()
	a := &asker{end: end, message: newMessage(64), answer: make([]byte, 64)}
	w := engine.New(engine.Requester, phase, a)
	w.RTT = newHistogram()
	if n := testing.AllocsPerRun(100, func() {
		if err := a.round(w, 0); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations per round trip over tcp, both ends together", n)
	}
	udp, err := openUDP(s.Addr(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer udp.close()
	p := newPinger(udp, 64, time.Millisecond)
	w = engine.New(engine.Pinger, phase, p)
	w.RTT = newHistogram()
	if n := testing.AllocsPerRun(100, func() {
		if err := p.send(w); err != nil {
			t.Fatal(err)
		}
		if n, err := p.end.readWithin(p.answer, time.Minute); err != nil || !p.take(w, p.answer[:n]) {
			t.Fatalf("no answer: %v", err)
		}
	}); n != 0 {
		t.Errorf("%v allocations per round trip over udp, both ends together", n)
	}
}
