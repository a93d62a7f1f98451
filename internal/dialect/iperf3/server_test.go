package iperf3

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
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

// TestOurClientWithOurServer runs every test that both ends support.
func TestOurClientWithOurServer(t *testing.T) {
	for _, test := range []traffic.Test{traffic.Stream, traffic.UDP} {
		for _, direction := range []traffic.Direction{traffic.Up, traffic.Down, traffic.Bidir} {
			for _, streams := range []int{1, 4} {
				t.Run(fmt.Sprintf("%s %s %d", test, direction, streams), func(t *testing.T) {
					t.Parallel()
					addr, said := ourServer(t, "127.0.0.1:0", admission.Limits{})
					s := traffic.Spec{Test: test, Direction: direction, Streams: streams, Bytes: 256_000}
					if test == traffic.UDP {
						s.RateBitsPerSec, s.PacketBytes = 10e6, 500
					}
					r := checkRun(t, addr.String, s)
					if len(r.Warnings) > 0 {
						t.Errorf("warnings %q", r.Warnings)
					}
					if test == traffic.Stream && direction == traffic.Up && r.Bytes != s.Bytes {
						t.Errorf("%d bytes arrived of %d", r.Bytes, s.Bytes)
					}
					said.Await(t, 1, "linerate",
						map[traffic.Test]string{traffic.Stream: "tcp", traffic.UDP: "udp"}[test])
				})
			}
		}
	}
}

// TestOverIPv6 listens on every address, as servers do, and connects over IPv4 and IPv6.
func TestOverIPv6(t *testing.T) {
	t.Parallel()
	addr, _ := ourServer(t, ":0", admission.Limits{})
	for _, target := range []string{"127.0.0.1", "::1"} {
		for _, s := range []traffic.Spec{
			{Test: traffic.Stream, Bytes: 100_000},
			{Test: traffic.UDP, Bytes: 100_000, PacketBytes: 1000, RateBitsPerSec: 10e6},
		} {
			checkRun(t, func() string { return net.JoinHostPort(target, strconv.Itoa(int(addr.Port()))) }, s)
		}
	}
}

// TestRealClientsOverBothVersions runs the program over IPv4 and IPv6 against a server that listens
// on every address.
func TestRealClientsOverBothVersions(t *testing.T) {
	testenv.Program(t, "iperf3")
	t.Parallel()
	addr, _ := ourServer(t, ":0", admission.Limits{})
	for _, version := range []string{"-4", "-6"} {
		to := netip.AddrPortFrom(netip.IPv6Loopback(), addr.Port())
		if version == "-4" {
			to = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), addr.Port())
		}
		for _, kind := range [][]string{{"-n", "100K"}, {"-u", "-n", "50K", "-b", "10M", "-l", "500"}} {
			if out, err := realClient(t, to, append(kind, version)...); err != nil {
				t.Errorf("%s %v: %v:\n%s", version, kind, err, out)
			}
		}
	}
}

// TestManyClientsAtOnce runs more clients at once than the program would serve, which is one.
func TestManyClientsAtOnce(t *testing.T) {
	testenv.Program(t, "iperf3")
	t.Parallel()
	addr, _ := ourServer(t, "127.0.0.1:0", admission.Limits{})
	done := make(chan error, 6)
	for i := range cap(done) {
		go func() {
			args := []string{"-n", "200K"}
			if i%2 == 1 {
				args = []string{"-u", "-b", "5M", "-l", "500", "-n", "100K"}
			}
			if i%3 == 2 {
				args = append(args, "-R")
			}
			out, err := clientOutput(t, addr, args...)
			if err != nil {
				err = fmt.Errorf("%v: %w: %s", args, err, out)
			}
			done <- err
		}()
	}
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestBusyServersSayNo(t *testing.T) {
	testenv.Program(t, "iperf3")
	t.Parallel()
	addr, said := ourServer(t, "127.0.0.1:0", admission.Limits{Clients: 1})
	first := dialParams(t, addr, `{"tcp":true,"time":1,"parallel":1}`)
	expectState(t, first, createStreams)
	out, err := realClient(t, addr, "-n", "1K")
	if err == nil || !strings.Contains(out, "busy") {
		t.Errorf("%v:\n%s", err, out)
	}
	_, err = Run(t.Context(), addr.String(), traffic.Spec{Test: traffic.Stream, Bytes: 1000}, ClientOptions{}, nil)
	if !errors.Is(err, traffic.ErrRefused) {
		t.Errorf("our client: %v", err)
	}
	said.Await(t, 1, "turned away", "is being served")
	_ = first.Close()
	traffictest.Eventually(t, "room for the next", func() bool {
		_, err := realClient(t, addr, "-n", "1K")
		return err == nil
	})
	// The program refuses this package's client too.
	real, _ := realServer(t)
	holder, err := net.Dial("tcp", real.String())
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close()
	if _, err := holder.Write([]byte(seenCookie)); err != nil {
		t.Fatal(err)
	}
	expectState(t, holder, paramExchange)
	if _, err := holder.Write([]byte("\x00\x00\x00\x80" + strings.Replace(seenParams, "102400", "999999",
		1))); err != nil {
		t.Fatal(err)
	}
	expectState(t, holder, createStreams)
	if _, err = Run(t.Context(), real.String(), traffic.Spec{Test: traffic.Stream, Bytes: 1000}, ClientOptions{},
		nil); !errors.Is(err, traffic.ErrRefused) {
		t.Errorf("the program: %v", err)
	}
}

// TestLimitsAreKept exceeds each limit and checks what the program prints.
func TestLimitsAreKept(t *testing.T) {
	testenv.Program(t, "iperf3")
	t.Parallel()
	addr, said := ourServer(t, "127.0.0.1:0",
		admission.Limits{Duration: 5 * time.Second, Bytes: 3 << 20, BitsPerSecond: 1e12})
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-t", "20"}, "longer than"},
		{[]string{"-n", "10M"}, "bytes are more than"},
		{[]string{"-b", "2T", "-n", "1K"}, "this host allows"},
		{[]string{"-t", "3"}, "bytes"}, // reaches its budget
		{[]string{"-t", "3", "-R"}, "bytes"},
	} {
		out, err := realClient(t, addr, c.args...)
		if err == nil || !strings.Contains(out, "error") {
			t.Errorf("%v: %v:\n%s", c.args, err, out)
		}
		said.Await(t, 1, "refused", c.want)
	}
}

// TestRateLimit checks that incoming data over the rate end the test, and that outgoing data are
// paced.
func TestRateLimit(t *testing.T) {
	testenv.Program(t, "iperf3")
	t.Parallel()
	addr, said := ourServer(t, "127.0.0.1:0", admission.Limits{BitsPerSecond: 20e6})
	if out, err := realClient(t, addr, "-t", "5"); err == nil || !strings.Contains(out, "error") {
		t.Errorf("%v:\n%s", err, out)
	}
	said.Await(t, 1, "refused", "faster")
	r, err := Run(t.Context(), addr.String(),
		traffic.Spec{Test: traffic.Stream, Direction: traffic.Down, Bytes: 1 << 20}, ClientOptions{}, nil)
	if err != nil || r.Bytes < 1<<20 {
		t.Errorf("paced: %+v, %v", r, err)
	}
}

// TestDatagramsThatGetNoAnswer has a server whose UDP port is closed.
func TestDatagramsThatGetNoAnswer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = c.Write([]byte("\x09\x0a"))
		_, _ = io.Copy(io.Discard, c)
	}()
	_, err = Run(t.Context(), l.Addr().String(), traffic.Spec{Test: traffic.UDP, Streams: 3, Bytes: 10_000},
		ClientOptions{}, nil)
	if err == nil || !strings.Contains(err.Error(), "over UDP were not answered") {
		t.Error(err)
	}
}

// TestClientsThatGoAway kills the program in the middle of a test: as a client of our server in
// every direction, and as a server of our client.
func TestClientsThatGoAway(t *testing.T) {
	testenv.Program(t, "iperf3")
	t.Parallel()
	addr, said := ourServer(t, "127.0.0.1:0", admission.Limits{})
	for _, args := range [][]string{{"-b", "10M"}, {"-b", "10M", "-R"}, {"-u", "-b", "1M"}, {"-u", "-b", "1M", "-R"}} {
		args = append(args, "-t", "60", "-i", "0.1", "--forceflush", "-c", "127.0.0.1", "-p",
			strconv.Itoa(int(addr.Port())))
		p := traffictest.Start(t, time.Minute, "iperf3", args...)
		for tries := 0; !p.Says("0.00-", "sec"); tries++ {
			if tries == 5 || len(p.Find("Interrupted system call")) == 0 { // as in clientOutput
				t.Fatalf("no interval of a running test:\n%s", p)
			}
			p = traffictest.Start(t, time.Minute, "iperf3", args...)
		}
		_ = p.OS.Kill()
		p.Wait()
	}
	said.Await(t, 4, "broken off")
	if out, err := realClient(t, addr, "-n", "1K"); err != nil {
		t.Errorf("the next client: %v:\n%s", err, out)
	}
	real, process := realServer(t)
	ended := make(chan error, 1)
	go func() {
		_, err := Run(t.Context(), real.String(), traffic.Spec{
			Test: traffic.Stream, Duration: 5 * time.Minute, Interval: 100 * time.Millisecond, RateBitsPerSec: 10e6,
		}, ClientOptions{}, func(i traffic.Interval) {
			_ = process.OS.Kill() // in the first interval; later calls find no process
		})
		ended <- err
	}()
	if err := <-ended; !errors.Is(err, traffic.ErrPeerGone) && !errors.Is(err, traffic.ErrFar) {
		t.Errorf("a killed server: %v", err)
	}
}

// TestCancelledRuns checks that cancelled tests end at both ends.
func TestCancelledRuns(t *testing.T) {
	t.Parallel()
	addr, said := ourServer(t, "127.0.0.1:0", admission.Limits{})
	for _, test := range []traffic.Test{traffic.Stream, traffic.UDP} {
		stop := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		_, err := Run(ctx, addr.String(),
			traffic.Spec{Test: test, Duration: time.Minute, Interval: 100 * time.Millisecond, RateBitsPerSec: 1e6},
			ClientOptions{}, func(traffic.Interval) { cancel(stop) })
		if !errors.Is(err, stop) {
			t.Errorf("%s: %v", test, err)
		}
	}
	said.Await(t, 2, errTerminated.Error())
}

// TestClientsNameWhatAnswers runs the client against servers of other protocols.
func TestClientsNameWhatAnswers(t *testing.T) {
	t.Parallel()
	for banner, want := range map[string]string{
		"SSH-2.0-OpenSSH_9.2p1\r\n":        "SSH answers there",
		"HTTP/1.1 400 Bad Request\r\n\r\n": "HTTP answers there",
		"":                                 "closed without an answer",
		"\x09\x0a\x0d":                     "EXCHANGE_RESULTS at the wrong time",
		"\x09\x0a\x01\x02\x0b":             "server was stopped",
		"\x09\xfe\x00\x00\x00\x1b\x00\x00\x00\x00": "total rate",
		"\x09\xfe\x00\x00\x00\xc8\x00\x00\x00\x6f": "errno 111",
		"\xff": "busy",
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					_, _ = c.Write([]byte(banner))
					_ = c.(*net.TCPConn).CloseWrite()
					_, _ = io.Copy(io.Discard, c)
					_ = c.Close()
				}()
			}
		}()
		_, err = Run(t.Context(), l.Addr().String(), traffic.Spec{Test: traffic.Stream, Bytes: 1000},
			ClientOptions{}, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", banner, err, want)
		}
		_ = l.Close()
	}
	if _, err := Run(t.Context(), "127.0.0.1:1", traffic.Spec{Test: traffic.Stream}, ClientOptions{},
		nil); !errors.Is(err, traffic.ErrPeerGone) {
		t.Errorf("a closed port: %v", err)
	}
}

func TestWhatTheProtocolHasNoWordsFor(t *testing.T) {
	for name, s := range map[string]traffic.Spec{
		"rr":      {Test: traffic.RR},
		"streams": {Test: traffic.Stream, Streams: 129},
		"warm-up": {Test: traffic.Stream, WarmUp: 20 * time.Minute},
		"probes":  {Test: traffic.Stream, ProbeGap: time.Millisecond},
		"cpus":    {Test: traffic.Stream, FarCPUs: []int{1}},
		"window":  {Test: traffic.Stream, WindowBytes: 1 << 30},
		"nothing": {},
	} {
		if _, err := Run(t.Context(), "127.0.0.1:1", s, ClientOptions{}, nil); !errors.Is(err, traffic.ErrBadSpec) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTargets(t *testing.T) {
	for target, want := range map[string]string{
		"host": "host:5201", "host:99": "host:99", "::1": "[::1]:5201", "[::1]": "[::1]:5201", "[::1]:7": "[::1]:7",
		"10.0.0.1": "10.0.0.1:5201",
	} {
		if got := address(target); got != want {
			t.Errorf("%s: %s, want %s", target, got, want)
		}
	}
}

// TestWhatTheHostSaw provides counters at both ends.
func TestWhatTheHostSaw(t *testing.T) {
	t.Parallel()
	var n uint64
	sample := func() (*host.Counters, error) {
		n++
		return &host.Counters{
			Time: time.Now(), Values: map[string]uint64{"nic.eth0.rx_dropped": 3 * n, "Tcp.RetransSegs": n},
			CPUs: []host.CPUTimes{{CPU: -1, User: float64(n), System: 2 * float64(n), Idle: 5 * float64(n)}},
		}, nil
	}
	addr, _ := ourServer(t, "127.0.0.1:0", admission.Limits{})
	r, err := Run(t.Context(), addr.String(), traffic.Spec{Test: traffic.UDP, Bytes: 50_000, RateBitsPerSec: 10e6},
		ClientOptions{Sample: sample}, nil)
	if err != nil {
		t.Fatal(err)
	}
	l := r.Ends.Local
	if l.CPUSeconds <= 0 || l.CPUSeconds > 3 || len(l.Drops) != 1 || l.Drops[0].Total != 3 ||
		l.Counters["Tcp.RetransSegs"] != 1 || l.CPUSecondsPerGigabyte <= 0 {
		t.Errorf("%+v", l)
	}
	if r.Pacing == nil || r.Pacing.Method != "user" || r.Pacing.AchievedBitsPerSec <= 0 {
		t.Errorf("pacing %+v", r.Pacing)
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
}

// TestTheWayIsSaid checks that the operator and the client read when the server does not copy,
// which the program does, and that Copy makes it do the same.
func TestTheWayIsSaid(t *testing.T) {
	for _, copying := range []bool{false, true} {
		addr, said := ourServer(t, "127.0.0.1:0", admission.Limits{}, func(s *Server) { s.options.Copy = copying })
		spec := traffic.Spec{Test: traffic.Stream, Direction: traffic.Bidir, Bytes: 1 << 20}
		if _, err := Run(t.Context(), addr.String(), spec, ClientOptions{}, nil); err != nil {
			t.Fatal(err)
		}
		line := said.Await(t, 1, "received")[0]
		// What is fastest depends on the host; the worker has chosen the same way as a new one would.
		probe := engine.ProbeStream()
		sends, receives := !copying && probe.Fastest != engine.SendCopy, !copying && probe.Truncate == nil
		want := 0
		for _, other := range []bool{sends, receives} {
			if other {
				want++
			}
		}
		if got := strings.Count(line, "without copying"); got != want {
			t.Errorf("copy %v: %d ways without copying, want %d: %s", copying, got, want, line)
		}
	}
}
