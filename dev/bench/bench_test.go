package main

import (
	"context"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPeersAreUnderstood(t *testing.T) {
	t.Run("iperf3 tcp", func(t *testing.T) {
		v, b, err := parseIperf3([]byte(`{"end":{"sum_received":{"bytes":1000,"bits_per_second":8000}}}`), false)
		if v != 8000 || b != 1000 || err != nil {
			t.Error(v, b, err)
		}
	})
	t.Run("iperf3 udp", func(t *testing.T) {
		v, _, err := parseIperf3([]byte(`{"end":{"sum":{"packets":1100,"lost_packets":100,"seconds":2}}}`), true)
		if v != 500 || err != nil {
			t.Error(v, err)
		}
	})
	t.Run("iperf3 fails", func(t *testing.T) {
		if _, _, err := parseIperf3([]byte(`{"error":"unable to connect"}`), false); err == nil {
			t.Error("no error")
		}
	})
	t.Run("iperf2", func(t *testing.T) {
		v, b, err := parseIperf2(
			[]byte("20261120130910,198.18.0.1,53454,198.18.0.2,5001,1,0.0-1.0,1587675196,12671686463\n"))
		if v != 12671686463 || b != 1587675196 || err != nil {
			t.Error(v, b, err)
		}
		if _, _, err := parseIperf2([]byte("connect failed: Connection refused\n")); err == nil {
			t.Error("no error")
		}
	})
	t.Run("nuttcp", func(t *testing.T) {
		v, b, err := parseNuttcp(
			[]byte("megabytes=10.0000 real_seconds=1.00 rate_Mbps=83.8861 tx_cpu=1 rx_cpu=9 retrans=0 rtt_ms=0.03\n"))
		if v != 83886100 || b != 10<<20 || err != nil {
			t.Error(v, b, err)
		}
	})
	t.Run("sockperf", func(t *testing.T) {
		v, _, err := parseSockperf(
			[]byte("sockperf: [Valid Duration] RunTime=0.550 sec; SentMessages=6087; ReceivedMessages=5500\n"))
		if math.Abs(v-10000) > 1e-6 || err != nil {
			t.Error(v, err)
		}
	})
	t.Run("cpu time of a process", func(t *testing.T) {
		v, err := parseOwn([]byte("7 (a b) c) S 1 7 7 0 -1 4194560 9 0 0 0 150 50 7 3 20 0 1 0 99 0 0\n"))
		if v != 2.1 || err != nil {
			t.Error(v, err)
		}
		if _, err := parseOwn([]byte("7 (a) S 1")); err == nil {
			t.Error("no error")
		}
	})
	t.Run("cpu time", func(t *testing.T) {
		v, err := parseBusy([]byte("cpu  100 20 300 9999 5 6 74 8 0 0\ncpu0 1 1 1 1 1 1 1 1\n"))
		if v != 5 || err != nil {
			t.Error(v, err)
		}
		if _, err := parseBusy([]byte("intr 5\n")); err == nil {
			t.Error("no error")
		}
	})
}

// TestRatiosAreFormedWithinRounds lets the figures of every program fall from round to round, as on
// a machine that gets busier.
func TestRatiosAreFormedWithinRounds(t *testing.T) {
	falling := func(name, needs string, factor float64) program {
		round := 0.0
		return program{name: name, needs: needs, run: func(context.Context, *world, float64) (float64, float64, error) {
			round++
			return factor * 1000 / round, 0, nil
		}}
	}
	r := row{test: "x", unit: "/s", scale: 10, goal: 1.9, programs: []program{
		falling("ours", "", 2), falling("slow", "", 0.5), falling("fast", "", 1), falling("gone", "gone", 9),
	}}
	o, err := r.play(t.Context(), &world{}, 7, 1, map[string]string{"gone": "not installed"})
	if err != nil {
		t.Fatal(err)
	}
	want := outcome{
		Test: "x", Unit: "/s", Ours: 50, Peers: map[string]float64{"slow": 12.5, "fast": 25}, BestPeer: "fast",
		Ratio: 2, Low: 2, High: 2, Goal: 1.9, Rounds: 7, Skipped: []string{"gone: not installed"},
	}
	o.Others = 0 // of whatever runs beside the test
	near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })
	if d := cmp.Diff(want, o, near); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if !o.met() {
		t.Error("goal not met")
	}
}

func TestWorseOutcome(t *testing.T) {
	failed, low, high := outcome{}, outcome{Rounds: 7, Ratio: 1.2}, outcome{Rounds: 7, Ratio: 2.4}
	for _, c := range []struct {
		o, other outcome
		want     bool
	}{{low, high, true}, {high, low, false}, {failed, high, true}, {low, failed, false}} {
		if got := c.o.worse(c.other); got != c.want {
			t.Errorf("%+v worse than %+v: %v", c.o, c.other, got)
		}
	}
}

func TestVerdict(t *testing.T) {
	good := outcome{Rounds: 7, BestPeer: "p", Ratio: 2, Low: 1.95, High: 2.04, Goal: 2, Steady: 0.05}
	for _, c := range []struct {
		change func(*outcome)
		want   string
		met    bool
	}{
		{func(*outcome) {}, "met", true},
		{func(o *outcome) { o.Ratio = 1.99 }, "NOT MET", false},
		{func(o *outcome) { o.High = 2.2 }, "NOT STEADY: ±10 %", false},
		{func(o *outcome) { o.Low, o.High = 0, 0 }, "NOT STEADY: ±0 %", false}, // too few rounds for an interval
		{func(o *outcome) { o.High, o.Steady = 2.2, 0 }, "met", true},
		{func(o *outcome) { o.Others = 0.3 }, "not judged: others used 30 % of the CPUs", true},
		{func(o *outcome) { o.BestPeer = "" }, "no peer", true},
		{func(o *outcome) { *o = outcome{} }, "FAILED", true},
	} {
		o := good
		c.change(&o)
		if got := o.verdict(); got != c.want || o.met() != c.met {
			t.Errorf("%+v: %s, %v", o, got, o.met())
		}
	}
}

func TestOthersAreWhatOthersUsed(t *testing.T) {
	before := usage{at: time.Unix(100, 0), busy: 50, own: 3}
	wall := float64(runtime.NumCPU())
	d := usage{at: time.Unix(101, 0), busy: 50 + 0.75*wall, own: 3 + 0.5*wall}.less(before)
	if got := d.others(); math.Abs(got-0.25) > 1e-9 {
		t.Error(got)
	}
}

// TestRowsAreFair: every row of TCP streams is played under the default of most hosts and under
// BBR, and every row says what another program could do as well.
func TestRowsAreFair(t *testing.T) {
	for _, r := range rows("linerate", "key", "bench") {
		tcp := strings.HasPrefix(r.test, "stream") || strings.HasPrefix(r.test, "pacing tcp")
		if tcp != slices.Equal(r.congestion, []string{"cubic", "bbr"}) {
			t.Errorf("%s: congestion controls %q", r.test, r.congestion)
		}
		if r.ways == "" {
			t.Errorf("%s: no word of what another program could do", r.test)
		}
	}
}
