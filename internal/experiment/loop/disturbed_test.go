package loop

import (
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/host/tcpinfo"
	"github.com/linerate/linerate/internal/traffic"
)

// carried is a segment of a second in which both NICs carried foreign bytes beside the hundred
// megabytes of the test.
func carried(foreign uint64, edit func(*traffic.Result)) *traffic.Result {
	return streamResult(func(r *traffic.Result) {
		r.DurationSeconds, r.Bytes, r.MSSBytes = 1, 100e6, 1000
		r.Ends.Local.TCP = []tcpinfo.TCPInfo{{Sender: true, SegsOut: 100_000, SegsIn: 50_000}}
		r.Ends.Remote.TCP = nil
		r.Ends.Local.Counters = map[string]uint64{"nic.eth0.tx_bytes": 108e6 + foreign, "nic.eth0.rx_bytes": 4e6,
			"nic.eth9.tx_bytes": 900e6}
		r.Ends.Remote.Counters = map[string]uint64{"nic.eth1.rx_bytes": 108e6 + foreign}
		if edit != nil {
			edit(r)
		}
	})
}

// TestCrossTraffic checks that intermittent traffic is found, on the NICs of the path alone, and
// that constant traffic counts as part of the path.
func TestCrossTraffic(t *testing.T) {
	for _, c := range []struct {
		name   string
		usual  uint64
		last   *traffic.Result
		reason string
	}{
		{"quiet", 0, carried(0, nil), ""},
		{"a backup begins", 0, carried(60e6, nil), "cross traffic on eth0 of the near host: 5"},
		{"a little", 0, carried(15e6, nil), ""},
		{"a busy server, as always", 60e6, carried(60e6, nil), ""},
		{"a busy server becomes busier", 60e6, carried(120e6, nil), "cross traffic"},
		{"a slow path with talkative neighbours", 0, carried(0, func(r *traffic.Result) {
			r.Bytes, r.Ends.Local.TCP[0].SegsOut, r.Ends.Local.TCP[0].SegsIn = 100_000, 100, 50
			r.Ends.Local.Counters["nic.eth0.rx_bytes"] = 4_000
			r.Ends.Local.Counters["nic.eth0.tx_bytes"], r.Ends.Remote.Counters["nic.eth1.rx_bytes"] = 250_000, 250_000
		}), ""},
		{"a short segment, with its start and end in the counters", 0, carried(0, func(r *traffic.Result) {
			r.DurationSeconds = 0.1
			r.Ends.Local.Counters["nic.eth0.tx_bytes"], r.Ends.Remote.Counters["nic.eth1.rx_bytes"] = 170e6, 170e6
		}), ""},
		{"headers that the card saves", 0, carried(0, func(r *traffic.Result) {
			r.Ends.Local.Counters["nic.eth0.tx_bytes"] = 100e6
		}), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			watch := crossTraffic{cards: [2]string{"eth0", "eth1"}}
			for range 6 {
				if reason := watch.judge(0, carried(c.usual, nil)); reason != "" {
					t.Fatalf("as usual, yet %q", reason)
				}
			}
			if got := watch.judge(0, c.last); (got == "") != (c.reason == "") || !strings.Contains(got, c.reason) {
				t.Errorf("got %q, want %q", got, c.reason)
			}
		})
	}
}

// TestCrossTrafficKnowsLittleAtFirst checks that nothing is judged in the first segments, when the
// usual is unknown, nor without a known NIC.
func TestCrossTrafficKnowsLittleAtFirst(t *testing.T) {
	watch := crossTraffic{cards: [2]string{"eth0", ""}}
	for i, foreign := range []uint64{0, 90e6, 0, 90e6} {
		if got := watch.judge(0, carried(foreign, nil)); got != "" {
			t.Errorf("segment %d: %q", i, got)
		}
	}
	unknown := crossTraffic{}
	for range 10 {
		unknown.judge(0, carried(0, nil))
	}
	if got := unknown.judge(0, carried(1e9, nil)); got != "" {
		t.Errorf("no card is known, yet %q", got)
	}
}

// TestCrossTrafficAndSegmentSizes checks the estimate of headers: with small segments that a NIC
// splits itself, the estimate has far more headers than the NIC counts. Larger segments, as the
// effect of a knob, end that error without any other traffic.
func TestCrossTrafficAndSegmentSizes(t *testing.T) {
	watch := crossTraffic{cards: [2]string{"eth0", ""}}
	cut := func(mss, segments uint64) *traffic.Result {
		return carried(0, func(r *traffic.Result) {
			r.MSSBytes = int(mss)
			r.Ends.Local.TCP[0].SegsOut, r.Ends.Local.TCP[0].SegsIn = segments, segments/2
			r.Ends.Local.Counters["nic.eth0.tx_bytes"] = 102e6 // one header for many segments
		})
	}
	for range 6 {
		watch.judge(0, cut(244, 410_000))
	}
	if got := watch.judge(0, cut(1448, 69_000)); got != "" {
		t.Errorf("larger segments are no other traffic: %q", got)
	}
}

// TestCrossTrafficOfASteadyRate checks that constant traffic of another program, a small share of a
// fast arm and a large one of a slow arm, disturbs neither.
func TestCrossTrafficOfASteadyRate(t *testing.T) {
	watch := crossTraffic{cards: [2]string{"eth0", ""}}
	const steady = 10e6
	slow := func() *traffic.Result {
		return carried(0, func(r *traffic.Result) {
			r.Bytes, r.Ends.Local.TCP[0].SegsOut, r.Ends.Local.TCP[0].SegsIn = 10e6, 10_000, 5_000
			r.Ends.Local.Counters["nic.eth0.tx_bytes"], r.Ends.Local.Counters["nic.eth0.rx_bytes"] = 10.9e6+
				steady, 0.4e6
		})
	}
	for i := range 12 {
		r := carried(steady, nil)
		if i%2 == 1 {
			r = slow()
		}
		if got := watch.judge(0, r); got != "" {
			t.Errorf("segment %d: %q", i, got)
		}
	}
	busier := slow()
	busier.Ends.Local.Counters["nic.eth0.tx_bytes"] += 3 * steady
	if got := watch.judge(0, busier); got == "" {
		t.Error("four times the usual traffic of others is not found")
	}
}
