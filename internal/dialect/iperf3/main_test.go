package iperf3

import (
	"flag"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/traffic/admission"
	"github.com/linerate/linerate/internal/traffic/traffictest"
)

func TestMain(m *testing.M) {
	// The tests mostly wait. With only as many at a time as there are CPUs, they would take
	// minutes.
	flag.Parse()
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	traffictest.Main(m)
}

// ourServer runs a server of this package for one test. It must have ended cleanly by the end of
// the test.
func ourServer(t *testing.T, address string, limits admission.Limits, change ...func(*Server)) (netip.AddrPort,
	*traffictest.Log) {
	t.Helper()
	said := new(traffictest.Log)
	s, err := Listen(t.Context(), ServerOptions{Address: address, Gate: admission.New(limits), Log: said.Add})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range change {
		c(s)
	}
	stop := traffictest.Serve(t, s)
	t.Cleanup(func() {
		stop()
		if t.Failed() {
			t.Logf("the server said:\n%s", said)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.sessions) != 0 {
			t.Errorf("%d sessions are left", len(s.sessions))
		}
		// All places of strangers are free if one source can take all of its own.
		for i := range maxStrangersPerSource {
			if _, ok := s.strangers.Enter(netip.MustParseAddr("127.0.0.1"), func() {}); !ok {
				t.Fatalf("%d strangers are left", maxStrangersPerSource-i)
			}
		}
	})
	return s.Addr(), said
}

// realClient runs the program as a client of addr to its end and returns its output.
func realClient(t *testing.T, addr netip.AddrPort, args ...string) (string, error) {
	t.Helper()
	testenv.Program(t, "iperf3")
	return clientOutput(t, addr, args...)
}

// clientOutput is realClient for any goroutine, of a test that has asked for the program. The
// program does not repeat a read that a stop of its process has interrupted, and says so.
func clientOutput(t *testing.T, addr netip.AddrPort, args ...string) (out string, err error) {
	args = append([]string{"-c", addr.Addr().String(), "-p", strconv.Itoa(int(addr.Port()))}, args...)
	for range 5 {
		out, err = traffictest.Output(t, time.Minute, "iperf3", args...)
		if !strings.Contains(out, "Interrupted system call") {
			break
		}
	}
	return out, err
}

// realServer starts the program as a server on a free port of loopback; it ends with the test.
func realServer(t *testing.T, args ...string) (netip.AddrPort, *traffictest.Process) {
	t.Helper()
	for range 10 {
		port := testenv.FreePorts(t, 1)
		p := traffictest.Start(t, time.Minute, "iperf3",
			append([]string{"-s", "--forceflush", "-p", strconv.Itoa(port)}, args...)...)
		if p.Says("Server listening") {
			return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(port)), p
		}
		// Another process took that port first.
	}
	t.Fatal("iperf3 does not start")
	return netip.AddrPort{}, nil
}
