package loop

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/experiment/goal"
	"github.com/linerate/linerate/internal/experiment/tune"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/drops"
	"github.com/linerate/linerate/internal/host/tcpinfo"
	"github.com/linerate/linerate/internal/traffic"
)

// elsewhere is a near host with nothing but a CPU, so that no test depends on the machine that runs
// it.
var elsewhere = host.Root{FS: fstest.MapFS{"proc/stat": {Data: []byte("cpu0 100 0 0 100\nbtime 1700000000\n")}}}

func streamResult(edit func(*traffic.Result)) *traffic.Result {
	r := &traffic.Result{
		Test: traffic.Stream, Direction: traffic.Up, Bytes: 2e9, ThroughputBitsPerSec: 8e8, Streams: 1,
		Ends: traffic.Ends{
			Local: traffic.End{
				CPUSecondsPerGigabyte: 0.5,
				TCP: []tcpinfo.TCPInfo{{Sender: true, SegsOut: 1000, RetransSegs: 10,
					MeanRTTSeconds: 0.03, MinRTTSeconds: 0.02}},
				Drops: []drops.Drop{{Place: "qdisc.eth0.drops", Total: 4}},
			},
			Remote: traffic.End{CPUSecondsPerGigabyte: 1.5, TCP: []tcpinfo.TCPInfo{{SegsOut: 500}}},
		},
	}
	if edit != nil {
		edit(r)
	}
	return r
}

func TestObserve(t *testing.T) {
	got := observe(streamResult(func(r *traffic.Result) {
		r.Ends.Local.CPUs = []host.CPUTimes{{CPU: -1, User: 9}, {CPU: 0, System: 0.8, Idle: 0.2},
			{CPU: 1, Idle: 1, Steal: 9}}
		r.Ends.Remote.CPUs = []host.CPUTimes{{CPU: 0, SoftIRQ: 0.3, IRQ: 0.3, Idle: 0.4}}
	}))
	want := tune.Observation{Guards: map[string]float64{
		"retransmit_ratio": 0.01, "rtt_loaded_seconds": 0.03, "cpu_seconds_per_gigabyte": 2, "drops_per_gigabyte": 2,
		"throughput_bits_per_second": 8e8, "cpu_busiest_ratio": 0.8, "cpu_total_ratio": 0.6,
	}}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-9, 0)); diff != "" {
		t.Errorf("observation (-want +got):\n%s", diff)
	}
}

func TestObserveTakesTheSenderFromTheDirection(t *testing.T) {
	r := streamResult(func(r *traffic.Result) {
		r.Direction = traffic.Down
		r.Ends.Local, r.Ends.Remote = r.Ends.Remote, r.Ends.Local
	})
	if got := observe(r).Guards["retransmit_ratio"]; got != 0.01 {
		t.Errorf("retransmit ratio %v, want 0.01 from the far sender", got)
	}
}

func TestObserveLatency(t *testing.T) {
	r := &traffic.Result{Test: traffic.RR, TransactionsPerSec: 23975, RTT: &stats.Latencies{P99: 0.0001}}
	got := observe(r)
	if figure(goal.Latency, r) != 23975 || got.Guards["transaction_seconds"] != 1.0/23975 ||
		got.Guards["rtt_p99_seconds"] != 0.0001 {
		t.Errorf("observation %+v", got)
	}
}

func TestDisturbed(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(*traffic.Result)
		want string
		loss float64
	}{
		{"quiet", nil, "", 0},
		{"steal", func(r *traffic.Result) {
			r.Ends.Remote.CPUs = []host.CPUTimes{{CPU: -1, Steal: 9}, {CPU: 0, User: 0.9, Steal: 0.1}}
		}, "10 % of the CPU time of the far host was stolen", 0.1},
		// Half of the near host's second CPU, and a tenth of the far one's that kept less.
		{"steal of one CPU at each end", func(r *traffic.Result) {
			r.Ends.Local.CPUs = []host.CPUTimes{{CPU: 0, Idle: 1}, {CPU: 1, User: 0.5, Steal: 0.5}}
			r.Ends.Remote.CPUs = []host.CPUTimes{{CPU: 0, SoftIRQ: 0.9, Steal: 0.1}, {CPU: 1, Idle: 1}}
		}, "25 % of the CPU time of the near host was stolen", 1 - 0.5*0.9},
		{"steal, and a link event", func(r *traffic.Result) {
			r.Ends.Local.CPUs = []host.CPUTimes{{CPU: 0, User: 0.9, Steal: 0.1}}
			r.Ends.Remote.Counters = map[string]uint64{"nic.eth0.carrier_changes": 2}
		}, "link event on the far host", 0},
		{"a little steal", func(r *traffic.Result) {
			r.Ends.Remote.CPUs = []host.CPUTimes{{CPU: 0, User: 0.98, Steal: 0.02}}
		}, "", 0},
		{"link event", func(r *traffic.Result) {
			r.Ends.Local.Counters = map[string]uint64{"nic.eth0.carrier_changes": 2, "nic.eth0.rx_bytes": 7}
		}, "link event on the near host", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, loss := disturbed(streamResult(c.edit))
			if (c.want == "") != (got == "") || !strings.Contains(got, c.want) || math.Abs(loss-c.loss) > 1e-9 {
				t.Errorf("got %q and a loss of %v, want %q and %v", got, loss, c.want, c.loss)
			}
		})
	}
}

func TestCandidatesOnceEachInOrder(t *testing.T) {
	rmem := evidence.Candidate{Knob: "sysctl:net.ipv4.tcp_rmem", Side: "far", Levels: []knob.Value{"1 2 3"},
		Why: "first"}
	again := rmem
	again.Why = "second"
	wmem := evidence.Candidate{Knob: "sysctl:net.ipv4.tcp_wmem", Side: "near"}
	near := rmem
	near.Side = "near"
	seen := evidence.Candidate{Knob: "sysctl:net.core.netdev_budget", Side: "near", Levels: []knob.Value{"600"},
		Why: "seen, and not shown to cost anything"}
	findings := []evidence.Finding{
		{Severity: evidence.Critical, Remedy: evidence.Remedy{Settings: []evidence.Candidate{rmem, wmem}}},
		{Severity: evidence.Warning, Remedy: evidence.Remedy{Settings: []evidence.Candidate{again, near}}},
		{Severity: evidence.Notice, Remedy: evidence.Remedy{Settings: []evidence.Candidate{seen}}},
	}
	var got []string
	for _, c := range candidatesOf(findings, nil) {
		got = append(got, string(c.Side)+" "+string(c.Knob)+" "+c.Why)
	}
	want := []string{"far sysctl:net.ipv4.tcp_rmem first", "near sysctl:net.ipv4.tcp_wmem ",
		"near sysctl:net.ipv4.tcp_rmem first"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("candidates (-want +got):\n%s", diff)
	}
	if only := candidatesOf(findings, func(id knob.ID) bool { return id == wmem.Knob }); len(only) != 1 ||
		only[0].Knob != wmem.Knob {
		t.Errorf("wanted only tcp_wmem, got %v", only)
	}
	if all := candidatesOf(findings, func(knob.ID) bool { return true }); len(all) != 4 {
		t.Errorf("asked for by name, a notice's knob is tried as well: got %v", all)
	}
}

func TestSegmentLengthsFollowTheRoundTrip(t *testing.T) {
	at := func(rtt float64) *Verdict {
		return &Verdict{Case: evidence.Case{
			Runs: []traffic.Result{{Test: traffic.Ping, RTT: &stats.Latencies{P50: rtt}}}}}
	}
	for _, c := range []struct {
		rtt             float64
		warmUp, segment time.Duration
	}{
		{0.0001, 200 * time.Millisecond, 800 * time.Millisecond},
		{0.020, 500 * time.Millisecond, time.Second},
		{0.300, 3 * time.Second, 8 * time.Second},
	} {
		if w, s := warmUpFor(at(c.rtt)), segmentFor(at(c.rtt)); w != c.warmUp || s != c.segment {
			t.Errorf("round trip %v s: warm-up %v, segment %v; want %v, %v", c.rtt, w, s, c.warmUp, c.segment)
		}
	}
	noPing := &Verdict{Case: evidence.Case{Runs: []traffic.Result{*streamResult(nil)}}}
	if got := roundTrip(noPing); got != 20*time.Millisecond {
		t.Errorf("without a ping the round trip is %v, want the stream's least, 20ms", got)
	}
}

// TestSegmentsFitTheBudget checks that a budget slightly too small for a pilot, a trial and a
// confirmation gets shorter segments, that a hopeless one does not, and that lengths set by flags
// stay.
func TestSegmentsFitTheBudget(t *testing.T) {
	whole := probing{objective: goal.Objective{Goal: goal.Throughput}, streams: 1, segment: 5 * time.Second,
		warmUp: 2500 * time.Millisecond}
	for name, c := range map[string]struct {
		left            time.Duration
		o               TuneOptions
		segment, warmUp time.Duration
	}{
		"room":     {10 * time.Minute, TuneOptions{}, 5 * time.Second, 2500 * time.Millisecond},
		"tight":    {286 * time.Second, TuneOptions{}, 4500 * time.Millisecond, 2250 * time.Millisecond},
		"hopeless": {time.Minute, TuneOptions{}, 5 * time.Second, 2500 * time.Millisecond},
		"by flag": {280 * time.Second, TuneOptions{Segment: 5 * time.Second}, 5 * time.Second,
			1750 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			got := whole.within(c.left, c.o)
			if got.segment.Round(time.Millisecond) != c.segment || got.warmUp.Round(time.Millisecond) != c.warmUp {
				t.Errorf("segment %v, warm-up %v; want %v, %v", got.segment, got.warmUp, c.segment, c.warmUp)
			}
		})
	}
	short := probing{objective: goal.Objective{Goal: goal.Throughput}, streams: 1, segment: leastSegment,
		warmUp: leastWarmUp}
	if got := short.within(30*time.Second, TuneOptions{}); got.segment != leastSegment || got.warmUp != leastWarmUp {
		t.Errorf("segment %v, warm-up %v are shorter than processor time can be counted in", got.segment, got.warmUp)
	}
}

func TestNothingToTune(t *testing.T) {
	v := &Verdict{
		Case:     evidence.Case{Runs: []traffic.Result{*streamResult(nil)}},
		Findings: []evidence.Finding{{Code: "link-rate-reached", Title: "the path delivers a steady 94 Mb/s"}},
	}
	o := nothingToTune(v, goal.Throughput)
	if o.State != tune.StateUndone || len(o.Kept) != 0 || o.Baseline.Objective != 8e8 ||
		!strings.Contains(o.Reason, "94 Mb/s") {
		t.Errorf("outcome %+v", o)
	}
}

func TestChangesOf(t *testing.T) {
	kept := []tune.Change{{Knob: "link:eth0/mtu", Side: tune.Far, From: "1500", To: "9000", ID: "7"}}
	if got := changesOf(&tune.Outcome{State: tune.StateUndone, Kept: kept}); got != nil {
		t.Errorf("an undone experiment leaves no changes, got %v", got)
	}
	got := changesOf(&tune.Outcome{State: tune.StateCommitted, Kept: kept})
	if len(got) != 1 || got[0].State != journal.Committed || got[0].Side != "far" || got[0].ID != "7" {
		t.Errorf("changes %+v", got)
	}
}

// fakeFar answers every run and can fail pings.
type fakeFar struct {
	ping error
	rtt  float64 // of pings; 0: none reported
	runs []traffic.Spec
}

func (f *fakeFar) Snapshot(context.Context) (*host.Snapshot, error) {
	return &host.Snapshot{Name: "far"}, nil
}

func (f *fakeFar) Run(_ context.Context, s traffic.Spec, _ func(traffic.Interval)) (*traffic.Result, error) {
	f.runs = append(f.runs, s)
	if s.Test == traffic.Ping && f.ping != nil {
		return nil, f.ping
	}
	r := streamResult(nil)
	r.Test, r.Direction = s.Test, s.Direction
	if s.Test == traffic.Ping && f.rtt > 0 {
		r.RTT = &stats.Latencies{Min: f.rtt, P50: f.rtt}
	}
	return r, nil
}

func TestDiagnoseGoesOnWithoutEcho(t *testing.T) { synctest.Test(t, diagnoseGoesOnWithoutEcho) }

func diagnoseGoesOnWithoutEcho(t *testing.T) {
	far := &fakeFar{ping: errors.New("echo filtered")}
	v, err := Diagnose(t.Context(), far, DiagnoseOptions{Root: elsewhere, Direction: traffic.Down})
	if err != nil {
		t.Fatal(err)
	}
	if v.Stream() == nil || v.Stream().Direction != traffic.Down || len(v.Findings) == 0 {
		t.Errorf("verdict %+v", v)
	}
	if !strings.Contains(v.Refused[runPing], "echo filtered") {
		t.Errorf("the missing round trip is not reported: %q", v.Refused)
	}
	for _, s := range far.runs {
		if s.Test == traffic.Stream && s.ProbeGap != 0 {
			t.Error("pings beside the load, though nothing answers them")
		}
	}
}

func TestOutcomeError(t *testing.T) {
	if err := outcomeError([]journal.Outcome{{Restored: true}}); err != nil {
		t.Errorf("restored, yet %v", err)
	}
	err := outcomeError([]journal.Outcome{
		{Change: journal.Change{Knob: "link:eth0/mtu"}, Foreign: "1400"},
		{Change: journal.Change{Knob: "link:eth1/mtu"}, Error: "no such device"},
	})
	if err == nil || !strings.Contains(err.Error(), "1400") || !strings.Contains(err.Error(), "no such device") {
		t.Errorf("error %v", err)
	}
}
