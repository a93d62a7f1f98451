package dialect

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/traffictest"
)

// runt is how the program says that it has not read the beginning of a connection.
const runt = "(runt) failed"

// flowed reports whether bytes arrived in each direction.
func flowed(r *traffic.Result) bool {
	return r.Bytes > 0 && (r.Direction != traffic.Bidir || r.UpBitsPerSec > 0 && r.DownBitsPerSec > 0)
}

// csv returns the fields of the lines of iperf -y C that describe a connection.
func csv(out string) (lines [][]string) {
	for line := range strings.Lines(out) {
		if f := strings.Split(strings.TrimSpace(line), ","); len(f) >= 9 && f[5] != "-1" {
			lines = append(lines, f)
		}
	}
	return lines
}

func field(t *testing.T, f []string, i int) int64 {
	t.Helper()
	if i >= len(f) {
		t.Fatalf("no field %d in %q", i, f)
	}
	n, err := strconv.ParseInt(f[i], 10, 64)
	if err != nil {
		t.Fatalf("%q: %v", f, err)
	}
	return n
}

// TestIperf2RealServer runs our client against iperf and compares what both counted.
func TestIperf2RealServer(t *testing.T) {
	testenv.Program(t, "iperf")
	for _, streams := range []int{1, 4} {
		for _, bounded := range []bool{true, false} {
			for _, way := range []traffic.Direction{traffic.Up, traffic.Down, traffic.Bidir} {
				t.Run(fmt.Sprintf("tcp streams=%d bytes=%v %s", streams, bounded, way), func(t *testing.T) {
					t.Parallel()
					spec := traffic.Spec{Test: traffic.Stream, Direction: way, Streams: streams}
					var out string
					r := traffictest.Longer(300*time.Millisecond, func(window time.Duration) *traffic.Result {
						port := freePort(t)
						p := start(t, port, "iperf", "-s", "-p", fmt.Sprint(port), "-y", "C", "-P", fmt.Sprint(streams))
						if spec.Duration = window; bounded {
							spec.Duration, spec.Bytes = 0, int64(streams)<<20
						}
						r, err := Run(t.Context(), "iperf2", fmt.Sprintf("127.0.0.1:%d", port), spec, ClientOptions{}, nil)
						// The program may give up a connection whose first bytes are late (2.1.8), and says so.
						// Such a test has no result.
						if err != nil && !p.Says(runt) {
							t.Fatal(err)
						}
						if err == nil {
							out = p.Wait()
						}
						return r
					}, func(r *traffic.Result) bool {
						return r != nil && !strings.Contains(out, runt) && (bounded || flowed(r))
					})
					if r == nil {
						t.Fatalf("the program gives up every connection: %s", runt)
					}
					var theirs int64
					for _, f := range csv(out) {
						theirs += field(t, f, 7)
					}
					// With full duplex, the program prints one direction per line, and the sum of
					// both in another line.
					if way == traffic.Bidir {
						if r.Bytes == 0 || r.UpBitsPerSec == 0 || r.DownBitsPerSec == 0 {
							t.Errorf("result: %d bytes, up %g, down %g", r.Bytes, r.UpBitsPerSec, r.DownBitsPerSec)
						}
					} else if r.Bytes != theirs || theirs == 0 {
						t.Errorf("result has %d bytes, server counted %d:\n%s", r.Bytes, theirs, out)
					}
					// A server rounds a requested amount up to whole writes.
					if bounded && way == traffic.Up && r.Bytes != spec.Bytes {
						t.Errorf("%d bytes, want %d", r.Bytes, spec.Bytes)
					}
					if !strings.HasPrefix(r.Method, "iperf2, tcp, ") || r.ThroughputBitsPerSec <= 0 {
						t.Errorf("method %q, throughput %g", r.Method, r.ThroughputBitsPerSec)
					}
				})
			}
			t.Run(fmt.Sprintf("udp streams=%d bytes=%v", streams, bounded), func(t *testing.T) {
				t.Parallel()
				// So few that all of them fit into the socket while the program waits for a CPU.
				spec := traffic.Spec{
					Test: traffic.UDP, Streams: streams, Duration: 300 * time.Millisecond, PacketBytes: 500,
					RateBitsPerSec: 2e6,
				}
				if bounded {
					spec.Duration, spec.Bytes = 0, int64(streams)*10_000
				}
				r, out := reported(t, spec)
				var theirs, lost int64
				for _, f := range csv(out) {
					theirs += field(t, f, 7)
					lost += field(t, f, 10)
				}
				// The program counts the datagram that ends a stream; this package does not.
				if want := r.Bytes + int64(streams*spec.PacketBytes); theirs != want || uint64(lost) != r.UDP.Lost {
					t.Errorf("result has %d bytes, %d lost; server %d (want %d), %d lost:\n%s", r.Bytes, r.UDP.Lost,
						theirs, want, lost, out)
				}
				// The protocol does not report duplicates.
				if r.UDP.Duplicates != nil || r.UDP.Reordered == nil {
					t.Errorf("duplicates %v, reordered %v", r.UDP.Duplicates, r.UDP.Reordered)
				}
				if bounded && (r.UDP.Sent != uint64(streams)*20 || r.UDP.Received+r.UDP.Lost != r.UDP.Sent) {
					t.Errorf("%+v", r.UDP.DatagramCounts)
				}
			})
		}
	}
}

// TestIperf2DatagramsDown has the program send datagrams, and compares what both counted.
func TestIperf2DatagramsDown(t *testing.T) {
	testenv.Program(t, "iperf")
	for _, bounded := range []bool{true, false} {
		t.Run(fmt.Sprintf("bytes=%v", bounded), func(t *testing.T) {
			t.Parallel()
			port := freePort(t)
			p := start(t, port, "iperf", "-s", "-u", "-p", fmt.Sprint(port), "-P", "1")
			// So few that all of them fit into the socket while this program waits for a CPU.
			spec := traffic.Spec{Test: traffic.UDP, Direction: traffic.Down, Duration: 300 * time.Millisecond,
				PacketBytes: 500, RateBitsPerSec: 2e6}
			if bounded {
				spec.Duration, spec.Bytes = 0, 20_000
			}
			r, err := Run(t.Context(), "iperf2", fmt.Sprintf("127.0.0.1:%d", port), spec, ClientOptions{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			out := p.Wait()
			m := regexp.MustCompile(`Sent (\d+) datagrams`).FindStringSubmatch(out)
			if m == nil {
				t.Fatalf("program:\n%s", out)
			}
			// It prints one more than it sends, and sends one that ends the test.
			theirs, _ := strconv.ParseUint(m[1], 10, 64)
			if u := r.UDP; u.Lost != 0 || u.Sent+2 != theirs || r.Bytes != int64(u.Received)*500 || r.Bytes == 0 {
				t.Errorf("%+v, %d bytes; the program prints %d:\n%s", u.DatagramCounts, r.Bytes, theirs, out)
			}
		})
	}
}

// reported runs a UDP test against a server of the program and returns the result and the program's
// output. While the program takes a new client over, it drops the datagrams of all others (2.1.8),
// and on a busy machine it may never report a stream. Such a test has no result, so it is repeated.
func reported(t *testing.T, spec traffic.Spec) (*traffic.Result, string) {
	t.Helper()
	for range 5 {
		port := freePort(t)
		p := start(t, port, "iperf", "-s", "-u", "-p", fmt.Sprint(port), "-y", "C", "-P", fmt.Sprint(spec.Streams))
		r, err := Run(t.Context(), "iperf2", fmt.Sprintf("127.0.0.1:%d", port), spec, ClientOptions{}, nil)
		switch {
		case err == nil:
			return r, p.Wait()
		case !errors.Is(err, traffic.ErrPeerGone):
			t.Fatal(err)
		}
		t.Logf("no report: %v", err)
	}
	t.Fatal("the program never reported all streams")
	return nil, ""
}
