package dialect

import (
	"net"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/admission"
)

// TestIdleSourcesLockNobodyOut connects to every port from 300 addresses of loopback, and says
// nothing. A client of each dialect gets its test all the same.
func TestIdleSourcesLockNobodyOut(t *testing.T) {
	shared := uint16(freePort(t))
	s, _ := serve(t, []Acceptance{{"iperf3", uint16(freePort(t))}, {"iperf2", shared}, {"ttcp", shared},
		{"nuttcp", uint16(freePort(t))}, {"sockperf", uint16(freePort(t))}}, admission.Limits{})
	for _, p := range s.Places() {
		if p.Dialect == "iperf2" {
			continue // its port is that of ttcp
		}
		for i := range 300 {
			d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, byte(1+i/250), byte(1+i%250))}}
			conn, err := d.DialContext(t.Context(), "tcp", p.Address.String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
		}
	}
	for _, p := range s.Places() {
		spec := traffic.Spec{Test: traffic.Stream, Bytes: 1 << 20}
		if p.Dialect == "sockperf" {
			spec = traffic.Spec{Test: traffic.RR, Duration: 100 * time.Millisecond}
		}
		if _, err := Run(t.Context(), p.Dialect, p.Address.String(), spec, ClientOptions{DataPort: int(shared)},
			nil); err != nil {
			t.Errorf("%s: %v", p.Dialect, err)
		}
	}
}
