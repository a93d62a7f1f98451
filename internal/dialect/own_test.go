package dialect

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/admission"
)

// TestOneSharedPort runs clients of three dialects against one port, one after another and at the
// same time, by TCP and UDP, and compares what both ends counted.
func TestOneSharedPort(t *testing.T) {
	port := uint16(freePort(t))
	s, j := serve(t, []Acceptance{{"iperf2", port}, {"ttcp", port}, {"nuttcp", uint16(freePort(t))}},
		admission.Limits{})
	control := s.places[2].Address.Port()
	if len(s.servers) != 2 {
		t.Errorf("%d listeners for three dialects on two ports", len(s.servers))
	}
	target := func(scheme string) string {
		if scheme == "nuttcp" {
			return fmt.Sprintf("127.0.0.1:%d", control)
		}
		return fmt.Sprintf("127.0.0.1:%d", port)
	}
	for _, test := range []traffic.Test{traffic.Stream, traffic.UDP} {
		for _, scheme := range []string{"iperf2", "ttcp", "nuttcp"} {
			t.Run(scheme+" "+string(test), func(t *testing.T) {
				spec := traffic.Spec{Test: test, Bytes: 10 * blockBytes}
				if test == traffic.UDP {
					spec.PacketBytes, spec.RateBitsPerSec, spec.Bytes = 500, 5e6, 50_000
				}
				r, err := Run(t.Context(), scheme, target(scheme), spec,
					ClientOptions{HostName: "near", DataPort: int(port)}, nil)
				if err != nil {
					t.Fatal(err)
				}
				proto := "tcp"
				if test == traffic.UDP {
					proto = "udp"
				}
				said := scheme + " " + proto
				if scheme == "nuttcp" {
					said = "by " + proto
				}
				line := j.Await(t, 1, said)[0]
				want := spec.Bytes
				if scheme == "iperf2" && test == traffic.UDP {
					want += 500 // the server counts the datagram that marks the end
				}
				if n := logged(t, line); n != want {
					t.Errorf("server counted %d bytes, want %d: %s", n, want, line)
				}
				if scheme == "ttcp" && test == traffic.UDP {
					if r.UDP != nil || r.Bytes != 0 || len(r.Warnings) != 1 {
						t.Errorf("the result has figures that no end reports: %+v", r)
					}
				} else if r.Bytes != spec.Bytes {
					t.Errorf("result has %d bytes, want %d", r.Bytes, spec.Bytes)
				}
				if a, err := netip.ParseAddr(r.RemoteAddress); scheme != "nuttcp" && (err != nil || !a.IsLoopback()) {
					t.Errorf("remote address %q", r.RemoteAddress)
				}
			})
		}
	}
	t.Run("together", func(t *testing.T) {
		failed := make(chan error, 6)
		for i := range 6 {
			scheme := []string{"iperf2", "ttcp", "nuttcp"}[i%3]
			go func() {
				spec := traffic.Spec{Test: traffic.Stream, Duration: 100 * time.Millisecond}
				_, err := Run(t.Context(), scheme, target(scheme), spec, ClientOptions{DataPort: int(port)}, nil)
				failed <- err
			}()
		}
		for range 6 {
			if err := <-failed; err != nil {
				t.Error(err)
			}
		}
	})
}

// TestIperf2DatagramsRefused requests datagrams of this program's server, which sends none to an
// address that nothing has proved: the test ends with one sentence.
func TestIperf2DatagramsRefused(t *testing.T) {
	t.Parallel()
	port := uint16(freePort(t))
	_, j := serve(t, []Acceptance{{"iperf2", port}}, admission.Limits{})
	_, err := Run(t.Context(), "iperf2", fmt.Sprintf("127.0.0.1:%d", port), traffic.Spec{Test: traffic.UDP,
		Direction: traffic.Down, Duration: 300 * time.Millisecond, RateBitsPerSec: 1e6}, ClientOptions{}, nil)
	if !errors.Is(err, traffic.ErrPeerGone) || !strings.Contains(err.Error(), "the server may refuse them") {
		t.Errorf("%v", err)
	}
	j.Await(t, 1, "turned away: it requests datagrams")
}
