package sockperf

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/traffictest"
)

var counts = regexp.MustCompile(`\[Total Run\].*SentMessages=(\d+); ReceivedMessages=(\d+)`)

// TestServerAnswersTheRealClient runs the client in all its modes.
func TestServerAnswersTheRealClient(t *testing.T) {
	testenv.Program(t, "sockperf")
	said := new(traffictest.Log)
	s, stop := startServer(t, ServerOptions{Log: said.Add})
	port := strconv.Itoa(int(s.Addr().Port()))
	cases := []struct {
		name       string
		args       []string
		perMessage int // messages per answer; 0: no answers
	}{
		{"ping-pong udp", []string{"pp", "--mps=5000"}, 1},
		{"ping-pong udp, with its padding checked", []string{"pp", "--data-integrity", "-m", "500", "--mps=2000"}, 1},
		{"ping-pong udp, sizes at random", []string{"pp", "-m", "700", "-r", "600", "--mps=2000"}, 1},
		{"ping-pong udp, largest", []string{"pp", "-m", "65507", "--mps=100"}, 1},
		{"ping-pong tcp", []string{"pp", "--tcp", "-m", "64", "--mps=5000"}, 1},
		{"ping-pong tcp, bursts", []string{"pp", "--tcp", "-b", "10", "-m", "2000", "--mps=5000"}, 1},
		{"under load udp", []string{"ul", "--mps=2000", "--reply-every=10", "-m", "100"}, 10},
		{"under load tcp", []string{"ul", "--tcp", "--mps=5000", "--reply-every=10", "-m", "100"}, 10},
		{"throughput udp", []string{"tp", "--mps=5000", "-m", "1000"}, 0},
	}
	// All at once: the program takes three seconds for a test of one second. A second in which it, or
	// the server, got no CPU has no answer: then the test is longer.
	outputs := make([]chan string, len(cases))
	for i, c := range cases {
		outputs[i] = make(chan string, 1)
		go func() {
			outputs[i] <- traffictest.Longer(time.Second, func(window time.Duration) string {
				return sockperf(t, append([]string{c.args[0], "-i", "127.0.0.1", "-p", port, "-t",
					strconv.Itoa(int(window.Seconds()))}, c.args[1:]...)...)
			}, func(out string) bool {
				return c.perMessage == 0 || !strings.Contains(out, "No messages were received from the server")
			})
		}()
	}
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			out := <-outputs[i]
			if c.perMessage == 0 {
				return
			}
			m := counts.FindStringSubmatch(out)
			if m == nil {
				t.Fatalf("no counts:\n%s", out)
			}
			sent, _ := strconv.Atoi(m[1])
			received, _ := strconv.Atoi(m[2])
			// The scheduler decides how many are answered; never more than were requested.
			if received == 0 || received > sent/c.perMessage+1 {
				t.Errorf("%d messages, %d answers:\n%s", sent, received, out)
			}
		})
	}
	stop()
	said.Await(t, 1, "over udp", "answered")
	said.Await(t, 1, "over tcp", "answers/s")
}

// TestClientAsksTheRealServer runs both tests against the program.
func TestClientAsksTheRealServer(t *testing.T) {
	testenv.Program(t, "sockperf")
	for _, c := range []struct {
		spec traffic.Spec
		args []string
	}{
		{traffic.Spec{Test: traffic.RR, RequestBytes: 64, ResponseBytes: 64}, []string{"--tcp"}},
		{traffic.Spec{Test: traffic.RR, RequestBytes: 20_000, ResponseBytes: 20_000}, []string{"--tcp"}},
		{traffic.Spec{Test: traffic.Ping, Gap: time.Millisecond}, nil},
		{traffic.Spec{Test: traffic.Ping, Gap: 5 * time.Millisecond, RequestBytes: 1472}, nil},
	} {
		t.Run(string(c.spec.Test)+strconv.Itoa(c.spec.RequestBytes), func(t *testing.T) {
			t.Parallel()
			port := strconv.Itoa(testenv.FreePorts(t, 1))
			traffictest.Start(t, 2*time.Minute, "sockperf",
				append([]string{"sr", "-i", "127.0.0.1", "-p", port}, c.args...)...)
			c.spec.Interval, c.spec.WarmUp = 250*time.Millisecond, 50*time.Millisecond
			r := traffictest.Longer(500*time.Millisecond, func(window time.Duration) *traffic.Result {
				c.spec.Duration = window
				return patiently(t, "127.0.0.1:"+port, c.spec)
			}, answered)
			check(t, r, c.spec)
		})
	}
}

// patiently runs a test against a server that may still be starting.
func patiently(t *testing.T, target string, spec traffic.Spec) *traffic.Result {
	t.Helper()
	for until := time.Now().Add(time.Minute); ; {
		r, err := Run(t.Context(), target, spec, ClientOptions{HostName: "near"}, nil)
		if err == nil {
			return r
		}
		if time.Now().After(until) || errors.Is(err, traffic.ErrProtocol) {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// check checks what every result must have.
func check(t *testing.T, r *traffic.Result, spec traffic.Spec) {
	t.Helper()
	if r.Test != spec.Test || r.RTT == nil || r.RTT.Count == 0 || r.RTT.Min <= 0 || r.RTT.P50 < r.RTT.Min ||
		r.RTT.Max < r.RTT.P99 || r.RTT.Max > 60 {
		t.Fatalf("result %+v, rtt %+v", r, r.RTT)
	}
	if d := r.DurationSeconds; d < spec.Duration.Seconds() {
		t.Errorf("measured %g s", d)
	}
	omitted := 0
	for i, v := range r.Intervals {
		if v.Omitted {
			omitted++
		}
		if v.EndSeconds <= v.StartSeconds || i > 0 && v.StartSeconds < r.Intervals[i-1].StartSeconds {
			t.Errorf("interval %+v", v)
		}
	}
	if len(r.Intervals)-omitted < 1 || omitted < 1 {
		t.Errorf("%d intervals, %d omitted", len(r.Intervals), omitted)
	}
	if r.RemoteAddress != "127.0.0.1" || r.Ends.Local.Host != "near" || r.Ends.Remote.Drops == nil {
		t.Errorf("ends %q %+v", r.RemoteAddress, r.Ends)
	}
	switch spec.Test {
	case traffic.RR:
		if r.TransactionsPerSec <= 0 || r.LossRatio != nil {
			t.Errorf("%+v", r)
		}
	case traffic.Ping:
		if r.LossRatio == nil || *r.LossRatio >= 1 || r.PacketsPerSec <= 0 {
			t.Errorf("loss %v, %g packets/s", r.LossRatio, r.PacketsPerSec)
		}
	}
}
