package dialect

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/admission"
	"github.com/linerate/linerate/internal/traffic/traffictest"
)

// TestNuttcpRealServer runs our client against nuttcp.
func TestNuttcpRealServer(t *testing.T) {
	testenv.Program(t, "nuttcp")
	for _, c := range []struct {
		name string
		spec traffic.Spec
		want int64
	}{
		{"tcp up", traffic.Spec{Test: traffic.Stream, Bytes: 10_000_000}, 10_000_000},
		{"tcp up time", traffic.Spec{Test: traffic.Stream, Duration: 300 * time.Millisecond}, 0},
		{"tcp up 4", traffic.Spec{Test: traffic.Stream, Streams: 4, Bytes: 10_000_000}, 10_000_000},
		{"tcp up 4 time", traffic.Spec{Test: traffic.Stream, Streams: 4, Duration: 300 * time.Millisecond}, 0},
		{"tcp down", traffic.Spec{Test: traffic.Stream, Direction: traffic.Down, Bytes: 100 * blockBytes},
			100 * blockBytes},
		{"tcp down time", traffic.Spec{Test: traffic.Stream, Direction: traffic.Down, Duration: 300 * time.Millisecond},
			0},
		{"tcp down 4", traffic.Spec{Test: traffic.Stream, Direction: traffic.Down, Streams: 4, Bytes: 100 * blockBytes},
			100 * blockBytes},
		// So few that all of them fit into the socket while the program waits for a CPU.
		{"udp up", traffic.Spec{Test: traffic.UDP, PacketBytes: 500, RateBitsPerSec: 2e6,
			Duration: 300 * time.Millisecond}, 0},
		{"udp up bytes", traffic.Spec{Test: traffic.UDP, PacketBytes: 500, RateBitsPerSec: 2e6, Bytes: 50_000}, 50_000},
		{"udp down", traffic.Spec{Test: traffic.UDP, Direction: traffic.Down, PacketBytes: 500, RateBitsPerSec: 2e6,
			Duration: 300 * time.Millisecond}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := traffictest.Longer(c.spec.Duration, func(window time.Duration) *traffic.Result {
				port, data := freePort(t), freePort(t)
				start(t, port, "nuttcp", "-S", "-1", "--nofork", "-P", fmt.Sprint(port))
				c.spec.Duration = window
				r, err := Run(t.Context(), "nuttcp", fmt.Sprintf("127.0.0.1:%d", port), c.spec,
					ClientOptions{DataPort: data}, nil)
				if err != nil {
					t.Fatal(err)
				}
				return r
			}, func(r *traffic.Result) bool { return c.spec.Bytes > 0 || flowed(r) })
			checkNuttcp(t, r, c.want)
		})
	}
}

// TestNuttcpOwnServerAlone sends datagrams to our server on a data port that no other dialect
// shares: the port closes at the end of the test.
func TestNuttcpOwnServerAlone(t *testing.T) {
	s, said := serve(t, []Acceptance{{"nuttcp", uint16(freePort(t))}}, admission.Limits{})
	r, err := Run(t.Context(), "nuttcp", s.places[0].Address.String(),
		traffic.Spec{Test: traffic.UDP, PacketBytes: 500, RateBitsPerSec: 2e6, Bytes: 50_000},
		ClientOptions{DataPort: freePort(t)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	checkNuttcp(t, r, 50_000)
	if n := logged(t, said.Await(t, 1, "by udp")[0]); n != 50_000 {
		t.Errorf("the server counted %d bytes", n)
	}
}

// TestCostEndsWithTheData checks that the CPU time of this host covers the data and not the wait
// for the report of the far end, while losses are read after it.
func TestCostEndsWithTheData(t *testing.T) {
	s, _ := serve(t, []Acceptance{{"nuttcp", uint16(freePort(t))}}, admission.Limits{})
	readings := 0
	sample := func() (*host.Counters, error) {
		busy := []float64{100, 101, 900}[min(readings, 2)]
		lost := []uint64{5, 5, 8}[min(readings, 2)]
		readings++
		return &host.Counters{CPUs: []host.CPUTimes{{CPU: -1, User: busy}},
			Values: map[string]uint64{"Udp.RcvbufErrors": lost}}, nil
	}
	r, err := Run(t.Context(), "nuttcp", s.places[0].Address.String(),
		traffic.Spec{Test: traffic.UDP, PacketBytes: 500, RateBitsPerSec: 2e6, Bytes: 50_000},
		ClientOptions{DataPort: freePort(t), Sample: sample}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if e := r.Ends.Local; readings != 3 || e.CPUSeconds != 1 || e.Counters["Udp.RcvbufErrors"] != 3 {
		t.Errorf("%d readings: %g CPU seconds, want 1; counters %v", readings, e.CPUSeconds, e.Counters)
	}
}

// TestNuttcpClosesWhatItReceived checks that a receiving client closes its connections at the end
// of the data: our server waits for that, five seconds, before it reports.
func TestNuttcpClosesWhatItReceived(t *testing.T) {
	s, said := serve(t, []Acceptance{{"nuttcp", uint16(freePort(t))}}, admission.Limits{})
	for _, streams := range []int{1, 3} {
		r, err := Run(t.Context(), "nuttcp", s.places[0].Address.String(), traffic.Spec{Test: traffic.Stream,
			Direction: traffic.Down, Streams: streams, Bytes: 30 * blockBytes}, ClientOptions{DataPort: freePort(t)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		checkNuttcp(t, r, 30*blockBytes)
		if line := said.Await(t, 1, "sent 1966080 bytes")[0]; strings.Contains(line, "kept them open") {
			t.Error(line)
		}
	}
}

const blockBytes = 65536

func checkNuttcp(t *testing.T, r *traffic.Result, want int64) {
	t.Helper()
	if r.Bytes <= 0 || r.ThroughputBitsPerSec <= 0 || want > 0 && r.Bytes != want {
		t.Errorf("%d bytes, want %d; %g bit/s", r.Bytes, want, r.ThroughputBitsPerSec)
	}
	if len(r.Warnings) > 0 {
		t.Errorf("warnings: %q", r.Warnings)
	}
	if r.Test == traffic.UDP && (r.UDP == nil || r.UDP.Sent == 0 || r.UDP.Lost != 0 || r.LossRatio == nil) {
		t.Errorf("udp: %+v", r.UDP)
	}
}

var loggedBytes = regexp.MustCompile(`(?:received|sent) (?:\d+(?: of \d+)? datagrams, )?(\d+) bytes`)

// logged returns the number of bytes in a server's log line.
func logged(t *testing.T, line string) int64 {
	t.Helper()
	m := loggedBytes.FindStringSubmatch(line)
	if m == nil {
		t.Fatalf("no bytes in %q", line)
	}
	n, _ := strconv.ParseInt(m[1], 10, 64)
	return n
}
