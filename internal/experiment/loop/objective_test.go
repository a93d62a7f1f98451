package loop

import (
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/experiment/goal"
	"github.com/linerate/linerate/internal/experiment/tune"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/traffic"
)

func objectiveOf(t *testing.T, text string) goal.Objective {
	t.Helper()
	o, err := goal.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestGuardsFor(t *testing.T) {
	guards := guardsFor(objectiveOf(t, "latency where p99_rtt<5ms and throughput>1Gb/s and retransmits<=0%"))
	if g := guards[goal.GuardP99RTT]; g.Limit != 0.005 || g.Bound != tune.DefaultGuards()[goal.GuardP99RTT].Bound ||
		g.LowerIsWorse {
		t.Errorf("a bound on a guard-rail that there is anyway: %+v", g)
	}
	if g := guards[goal.GuardThroughput]; g.Limit != 1e9 || !math.IsInf(g.Bound, 1) || !g.LowerIsWorse {
		t.Errorf("a rate that must not fall: %+v", g)
	}
	if g := guards[goal.GuardRetransmits]; !(g.Limit > 0 && g.Limit < 1e-300) {
		t.Errorf("none at all is no limit: %+v", g)
	}
	if _, bounded := guardsFor(goal.Objective{Goal: goal.Packets})[guardCPUPerMillion]; !bounded {
		t.Error("nothing bounds what a packet costs")
	}
}

// path is a verdict on a path of 20 ms with links of 1 Gb/s, at a rate.
func path(rate float64, codes ...evidence.Code) *Verdict {
	near := &host.Snapshot{Name: "near",
		Interfaces: []host.Interface{{Name: "eth0", Driver: "ixgbe", SpeedBitsPerSec: 1e9,
			Addresses: []string{"192.0.2.1/24"}}}}
	far := &host.Snapshot{Name: "far",
		Interfaces: []host.Interface{{Name: "eth1", Driver: "ixgbe", SpeedBitsPerSec: 1e9,
			Addresses: []string{"192.0.2.2/24"}}}}
	v := &Verdict{Case: evidence.Case{Near: near, Far: far, NearAddress: "192.0.2.1", FarAddress: "192.0.2.2",
		Runs: []traffic.Result{
			{Test: traffic.Ping, RTT: &stats.Latencies{Min: 0.020, P50: 0.0201}},
			*streamResult(func(r *traffic.Result) { r.ThroughputBitsPerSec = rate }),
		}}}
	for _, c := range codes {
		v.Findings = append(v.Findings, evidence.Finding{Code: c, Severity: evidence.Warning})
	}
	return v
}

func TestReach(t *testing.T) {
	p := reachOf(path(3e8, evidence.ReceiveWindowLimited), TuneOptions{})
	if p.IdleRTTSeconds != 0.020 || p.CeilingBitsPerSec != 1e9 || !strings.Contains(p.CeilingWhy, "is a link of") {
		t.Errorf("path %+v", p)
	}
	if err := objectiveOf(t, "throughput where throughput>2Gb/s").Unreachable(p); err == nil ||
		!strings.Contains(err.Error(), "1 Gb/s") && !strings.Contains(err.Error(), "1.00 Gb/s") {
		t.Errorf("twice the link's rate: %v", err)
	}
	// A host that delays its interrupts lengthens the round trip beyond that of the path, and a
	// setting can change that.
	if p := reachOf(path(3e8, evidence.InterruptModerationLatency), TuneOptions{}); p.IdleRTTSeconds != 0 {
		t.Errorf("a round trip that a setting may shorten bounds nothing: %+v", p)
	}
	if p := reachOf(path(9e8, evidence.LinkRateReached), TuneOptions{}); math.Abs(p.CeilingBitsPerSec-945e6) > 1 ||
		!strings.Contains(p.CeilingWhy, "full") {
		t.Errorf("a full path carries no more: %+v", p)
	}
}

func TestUnmet(t *testing.T) {
	o := objectiveOf(t, "throughput where p99_rtt<5ms and cpu<80% and drops<100/GB")
	out := &tune.Outcome{
		Baseline: &tune.Baseline{Guards: map[string]float64{goal.GuardP99RTT: 0.030, goal.GuardCPU: 0.5}},
		Kept:     []tune.Change{{}},
		Guards:   []tune.GuardRun{{Name: goal.GuardP99RTT, Value: 0.012}, {Name: goal.GuardCPU, Value: 0.6}},
	}
	got := strings.Join(unmet(o, out), "; ")
	if !strings.Contains(got, "p99_rtt<5ms is not met: it is 12") ||
		!strings.Contains(got, "whether drops<100/GB holds is unknown") || strings.Contains(got, "cpu") {
		t.Errorf("unmet: %s", got)
	}
	// What the kept set brought to nothing has a value too.
	out.Baseline.Guards[goal.GuardDrops] = 5000
	out.Guards = append(out.Guards, tune.GuardRun{Name: goal.GuardDrops, Value: 0, Limit: 100})
	if got := strings.Join(unmet(o, out), "; "); strings.Contains(got, "drops") {
		t.Errorf("no packet is dropped any more, and: %s", got)
	}
	out.Guards[len(out.Guards)-1].Unseen = true
	if got := strings.Join(unmet(o, out), "; "); !strings.Contains(got, "whether drops<100/GB holds is unknown") {
		t.Errorf("the drops of the kept set were not measured, and: %s", got)
	}
	out.Kept = nil // an undone set gives no values
	if got := strings.Join(unmet(o, out), "; "); !strings.Contains(got, "30") {
		t.Errorf("nothing kept: %s", got)
	}
}

// TestUnreachableGoalWritesNothing checks that the error has the measured number and comes before
// any host changes.
func TestUnreachableGoalWritesNothing(t *testing.T) { synctest.Test(t, unreachableGoalWritesNothing) }

func unreachableGoalWritesNothing(t *testing.T) {
	far := &fakeHost{fakeFar: fakeFar{rtt: 0.020}}
	near := &fakeHost{}
	_, err := Tune(t.Context(), near, far,
		TuneOptions{Root: elsewhere, Objective: objectiveOf(t, "throughput where p99_rtt<1ms")})
	var unreachable *goal.UnreachableError
	if !errors.As(err, &unreachable) || !strings.Contains(err.Error(), "idle round trip is 20.0 ms") {
		t.Errorf("error %v", err)
	}
	if near.writes+far.writes > 0 {
		t.Errorf("%d writes near, %d far", near.writes, far.writes)
	}
}
