package traffic

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestRateNotKept checks that a result has a warning if its sender did not keep the rate: otherwise
// its figure looks like the path's.
func TestRateNotKept(t *testing.T) {
	spec := Spec{Test: UDP, Direction: Up, Streams: 1, PacketBytes: 1000, RateBitsPerSec: 100e6, Duration: time.Second}
	for _, tc := range []struct {
		name  string
		bytes int64 // sent in one second, of 12.5 MB requested
		spec  func(*Spec)
		want  []string
	}{
		{name: "kept", bytes: 12_500_000},
		{name: "kept but for the ends of the window", bytes: 12_000_000},
		{name: "half of it", bytes: 6_250_000, want: []string{"only 50.0 Mb/s of the 100 Mb/s asked for were sent"}},
		{name: "as fast as it goes", bytes: 1_000_000, spec: func(s *Spec) { s.RateBitsPerSec = 0 }},
		{name: "an amount that time cut short", bytes: 12_500_000, spec: func(s *Spec) { s.Bytes = 20_000_000 },
			want: []string{"only 12500000 of 20000000 bytes were sent within 1s"}},
		{name: "an amount", bytes: 12_500_000, spec: func(s *Spec) { s.Bytes = 12_499_500 }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := spec
			if tc.spec != nil {
				tc.spec(&s)
			}
			r := &Result{}
			near := resultBody{Seconds: 1, UDPSent: &udpSent{Packets: tc.bytes / 1000, Bytes: tc.bytes}}
			far := resultBody{Seconds: 1, UDPReceived: &udpReceived{Bytes: tc.bytes, Seconds: 1}}
			udpTest{}.datagrams(r, s, near, far)
			if diff := cmp.Diff(tc.want, r.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOneDoubtOnce checks that two ends with one name do not report the same doubt twice.
func TestOneDoubtOnce(t *testing.T) {
	got := joined([]string{"a", "b"}, []string{"b", "c"})
	if want := []string{"a", "b", "c"}; !slices.Equal(got, want) {
		t.Errorf("got %q; want %q", got, want)
	}
}
