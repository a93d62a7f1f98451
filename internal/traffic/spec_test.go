package traffic

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestNormalizeFillsIn(t *testing.T) {
	for _, c := range []struct{ in, want Spec }{
		{
			Spec{Test: Stream},
			Spec{Test: Stream, Direction: Up, Streams: 1, Duration: 10 * time.Second, Interval: time.Second},
		},
		{
			Spec{Test: Stream, Duration: 24 * time.Hour},
			Spec{Test: Stream, Direction: Up, Streams: 1, Duration: 24 * time.Hour, Interval: 24 * time.Second},
		},
		{
			Spec{Test: Stream, Duration: time.Hour},
			Spec{Test: Stream, Direction: Up, Streams: 1, Duration: time.Hour, Interval: time.Second},
		},
		{
			Spec{Test: RR, WarmUp: -1, Streams: 3},
			Spec{Test: RR, Direction: Up, Streams: 3, Duration: 10 * time.Second, WarmUp: -1, Interval: time.Second,
				RequestBytes: 1, ResponseBytes: 1},
		},
		{
			Spec{Test: Stream, Bytes: 1 << 20, WarmUp: -1},
			Spec{Test: Stream, Direction: Up, Streams: 1, Duration: 10 * time.Minute, Interval: time.Second,
				Bytes: 1 << 20},
		},
		{
			Spec{Test: UDP, WarmUp: -1},
			Spec{Test: UDP, Direction: Up, Streams: 1, Duration: 10 * time.Second, Interval: time.Second,
				PacketBytes: 1400},
		},
		{
			Spec{Test: Ping, WarmUp: -1, Duration: time.Second},
			Spec{Test: Ping, Direction: Up, Streams: 1, Duration: time.Second, Interval: time.Second, RequestBytes: 56,
				Gap: 10 * time.Millisecond},
		},
	} {
		got, err := c.in.Normalize()
		if err != nil {
			t.Errorf("%+v: %v", c.in, err)
			continue
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%+v (-want +got):\n%s", c.in, d)
		}
		again, err := got.Normalize()
		if err != nil || !cmp.Equal(again, got) {
			t.Errorf("not idempotent: %+v, %v", again, err)
		}
	}
}

func TestNormalizeRefuses(t *testing.T) {
	for _, c := range []struct {
		in   Spec
		want string
	}{
		{Spec{}, `no test ""`},
		{Spec{Test: "sctp"}, `no test "sctp"`},
		{Spec{Test: Stream, Direction: "sideways"}, `no direction "sideways"`},
		{Spec{Test: RR, Direction: Down}, "rr has no direction"},
		{Spec{Test: Ping, Direction: Bidir}, "ping has no direction"},
		{Spec{Test: Stream, Streams: -1}, "-1 streams"},
		{Spec{Test: Stream, Streams: 1025}, "1025 streams are not within 1 to 1024"},
		{Spec{Test: Ping, Streams: 2}, "ping runs one stream, not 2"},
		{Spec{Test: Stream, Duration: -time.Second}, "duration -1s"},
		{Spec{Test: Stream, Duration: time.Millisecond}, "duration 1ms"},
		{Spec{Test: Stream, Duration: 48 * time.Hour}, "duration 48h0m0s"},
		{Spec{Test: Stream, WarmUp: 2 * time.Hour}, "warm-up 2h0m0s"},
		{Spec{Test: Stream, Interval: time.Millisecond}, "interval 1ms"},
		{Spec{Test: Stream, Interval: math.MaxInt64}, "interval 2562047h47m16.854775807s"},
		{Spec{Test: Stream, Duration: 20 * time.Hour, Interval: time.Second}, "72000 intervals"},
		{Spec{Test: Stream, Congestion: "a-name-too-long-for-it"}, "15 letters"},
		{Spec{Test: RR, RequestBytes: -1}, "request and response"},
		{Spec{Test: RR, ResponseBytes: 2 << 20}, "request and response"},
		{Spec{Test: Ping, RequestBytes: 23}, "a ping of 23 bytes"},
		{Spec{Test: Ping, RequestBytes: 65001}, "a ping of 65001 bytes"},
		{Spec{Test: Ping, Gap: time.Microsecond}, "gap 1µs"},
		{Spec{Test: Ping, Gap: time.Minute}, "gap 1m0s"},
		{Spec{Test: RR, Gap: time.Minute}, "pause of 1m0s"},
		{Spec{Test: CRR, Direction: Down}, "crr has no direction"},
		{Spec{Test: CRR, SourcePort: 4000}, "crr has no choice of ports"},
		{Spec{Test: UDP, PacketBytes: 15}, "datagrams of 15 bytes"},
		{Spec{Test: UDP, PacketBytes: 65508}, "datagrams of 65508 bytes"},
		{Spec{Test: UDP, Batch: "bulk"}, `no batch "bulk"`},
		{Spec{Test: UDP, RateBitsPerSec: -1}, "a rate of -1 bits per second"},
		{Spec{Test: UDP, RateBitsPerSec: math.NaN()}, "a rate of NaN bits per second"},
		{Spec{Test: UDP, RatePacketsPerSec: 1e14}, "a rate of 1e+14 packets per second"},
		{Spec{Test: UDP, RateBitsPerSec: 1e6, RatePacketsPerSec: 100}, "not in both"},
		{Spec{Test: UDP, Congestion: "cubic"}, "udp does not run over TCP"},
		{Spec{Test: Stream, RatePacketsPerSec: 100}, "stream runs at no packet rate"},
		{Spec{Test: RR, RateBitsPerSec: 100}, "rr runs at no rate"},
		{Spec{Test: Stream, Bytes: -1}, "an amount of -1 bytes"},
		{Spec{Test: Stream, Bytes: 3, Streams: 4}, "3 bytes are not enough for 4 streams"},
		{Spec{Test: RR, Bytes: 100}, "rr runs for a time"},
		{Spec{Test: Stream, SendMethod: "pigeon"}, `no way to send "pigeon"`},
		{Spec{Test: Stream, ReceiveMethod: "pigeon"}, `no way to receive "pigeon"`},
		{Spec{Test: RR, SendMethod: "copy"}, "rr has no choice of how to send"},
		{Spec{Test: Stream, Batch: "gso"}, "stream sends no batches"},
		{Spec{Test: Stream, DontFragment: true}, "stream has no choice about fragments"},
		{Spec{Test: Stream, BusyPoll: true}, "stream does not busy-poll"},
		{Spec{Test: Stream, PacketBytes: 64}, "stream sends no datagrams"},
		{Spec{Test: Stream, WindowBytes: -1}, "a window of -1 bytes"},
		{Spec{Test: Stream, MSSBytes: 87}, "a segment size of 87 bytes"},
		{Spec{Test: Stream, TOS: 256}, "a type of service of 256"},
		{Spec{Test: Stream, SourcePort: 80}, "source ports from 80 on"},
		{Spec{Test: Stream, Direction: Bidir, Streams: 100, SourcePort: 65400}, "source ports from 65400 on"},
		{Spec{Test: Stream, NearCPUs: []int{0, -1}}, "no processor -1"},
		{Spec{Test: Stream, FarCPUs: []int{1 << 13}}, "no processor 8192"},
		{Spec{Test: Stream, ProbeGap: time.Microsecond}, "gap 1µs of the pings"},
		{Spec{Test: Ping, ProbeGap: time.Millisecond}, "no pings run beside ping"},
		{Spec{Test: CRR, Gap: time.Second}, "crr has no gap between packets"},
		{Spec{Test: Stream, Gap: time.Second}, "stream has no gap between packets"},
		{Spec{Test: UDP, Gap: time.Second}, "udp has no gap between packets"},
	} {
		_, err := c.in.Normalize()
		if !errors.Is(err, ErrBadSpec) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.in, err, c.want)
		}
	}
}

func TestLimits(t *testing.T) {
	slow := Limits{MaxBitsPerSecond: 1e6, MaxPacketsPerSecond: 100}
	narrow := Limits{MaxDuration: time.Minute, MaxStreams: 4, MaxMessageBytes: 1000, MinGap: 20 * time.Millisecond}
	for _, c := range []struct {
		limits Limits
		spec   Spec
		want   string
	}{
		{Limits{}, Spec{Test: Stream}, ""},
		{Limits{}, Spec{Test: Stream, Streams: 128, Direction: Bidir}, ""},
		{Limits{}, Spec{Test: Stream, Duration: 11 * time.Minute},
			"a test of 11m0s is longer than the 10m0s this host allows"},
		{Limits{}, Spec{Test: Ping, Gap: 200 * time.Microsecond},
			"a ping every 200µs is more frequent than every 1ms, the limit of this host"},
		{narrow, Spec{Test: Stream, Duration: 50 * time.Second, WarmUp: 11 * time.Second},
			"a test of 1m1s is longer than the 1m0s this host allows"},
		{narrow, Spec{Test: Stream, Streams: 5}, "5 streams are more than the 4 this host allows"},
		{narrow, Spec{Test: RR, ResponseBytes: 1001},
			"messages of 1001 bytes are larger than the 1000 this host allows"},
		{narrow, Spec{Test: Ping}, "a ping every 10ms is more frequent than every 20ms, the limit of this host"},
		{narrow, Spec{Test: Ping, Gap: 20 * time.Millisecond}, ""},
		{narrow, Spec{Test: RR, ProbeGap: 10 * time.Millisecond},
			"a ping every 10ms is more frequent than every 20ms, the limit of this host"},
		{Limits{}, Spec{Test: RR, Gap: time.Second, ProbeGap: 200 * time.Microsecond},
			"a ping every 200µs is more frequent than every 1ms, the limit of this host"},
		{Limits{}, Spec{Test: RR, Gap: 200 * time.Microsecond}, ""},
		{Limits{}, Spec{Test: Stream, Bytes: 9 << 40}, "9 TiB are more than the 8 TiB this host allows"},
		{slow, Spec{Test: Stream}, "this host allows 1.00 Mb/s: ask for that rate or less"},
		{slow, Spec{Test: UDP, RatePacketsPerSec: 90, PacketBytes: 1400},
			"1.01 Mb/s are more than the 1.00 Mb/s this host allows"},
		{slow, Spec{Test: UDP, RateBitsPerSec: 1e6, PacketBytes: 100},
			"1250 packets per second are more than the 100 this host allows"},
		{slow, Spec{Test: UDP, RateBitsPerSec: 1e6}, ""},
		{slow, Spec{Test: RR}, ""},
	} {
		spec, err := c.spec.Normalize()
		if err != nil {
			t.Fatal(err)
		}
		if got := c.limits.Refuse(spec); got != c.want {
			t.Errorf("%+v: %q, want %q", c.spec, got, c.want)
		}
	}
}

// FuzzSpec parses what may arrive over the control channel. A Spec that passes is within bounds
// that no allocation or timer chokes on.
func FuzzSpec(f *testing.F) {
	for _, s := range []Spec{
		{Test: Stream, Direction: Bidir, Streams: 128},
		{Test: RR, RequestBytes: 1 << 20},
		{Test: Ping, Gap: time.Millisecond, WarmUp: -1},
		{Test: Stream, Duration: 1<<63 - 1, WarmUp: 1<<63 - 1},
	} {
		b, err := json.Marshal(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var raw Spec
		if json.Unmarshal(b, &raw) != nil {
			return
		}
		s, err := raw.Normalize()
		if err != nil {
			if !errors.Is(err, ErrBadSpec) {
				t.Fatalf("%+v: %v", raw, err)
			}
			return
		}
		if n := s.Connections(); n < 0 || n > 2*MaxStreams {
			t.Fatalf("%+v: %d connections", s, n)
		}
		if n := s.channels(); n < 0 || n > 2*MaxStreams || s.SteadyBound() <= 0 || s.RequestBytes < 0 ||
			s.ResponseBytes < 0 {
			t.Fatalf("%+v", s)
		}
		if !(s.BitRate() >= 0 && s.PacketRate() >= 0) {
			t.Fatalf("%+v", s)
		}
		again, err := s.Normalize()
		if err != nil || !cmp.Equal(again, s) {
			t.Fatalf("not idempotent: %+v, then %+v, %v", s, again, err)
		}
	})
}
