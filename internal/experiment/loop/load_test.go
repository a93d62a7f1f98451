package loop

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/drops"
	"github.com/linerate/linerate/internal/traffic"
)

func TestLoadPhasesAreTestsOfTheirOwn(t *testing.T) {
	for _, d := range []time.Duration{0, 200 * time.Millisecond, 3 * time.Second, time.Minute} {
		spec := traffic.Spec{Test: traffic.Load, Duration: d, Streams: 3, Congestion: "reno", SendMethod: "copy",
			Gap: 2 * time.Millisecond}
		phases, err := loadPhases(spec)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, p := range phases {
			names = append(names, p.name)
			n, err := p.spec.Normalize()
			if err != nil {
				t.Errorf("%v %s: %v", d, p.name, err)
			}
			switch p.name {
			case phaseIdle:
				if n.Test != traffic.Ping || n.Gap != 2*time.Millisecond || n.Streams != 1 {
					t.Errorf("idle: %+v", n)
				}
			default:
				if n.Test != traffic.Stream || n.ProbeGap != 2*time.Millisecond || n.Streams != 3 ||
					n.Congestion != "reno" || n.SendMethod != "copy" || n.WarmUp <= 0 {
					t.Errorf("%s: %+v", p.name, n)
				}
			}
		}
		if diff := cmp.Diff([]string{phaseIdle, phaseUp, phaseDown, phaseBoth}, names); diff != "" {
			t.Error(diff)
		}
	}
}

// loadResults are those of a path with a queue of 20 ms upwards and one of 50 ms downwards.
func loadResults() []*traffic.Result {
	retransmits := uint64(3)
	end := traffic.End{
		Host: "a", CPUSeconds: 1, Counters: map[string]uint64{"qdisc.eth0.drops": 2, "conntrack.max": 100},
		Drops: []drops.Drop{{Place: "qdisc.eth0.drops", Total: 2}},
		CPUs:  []host.CPUTimes{{CPU: -1, User: 1, Idle: 1}},
	}
	loaded := func(mean, p90, rate float64) *traffic.Result {
		return &traffic.Result{
			Test: traffic.Stream, DurationSeconds: 2, WarmUpSeconds: 0.5, ThroughputBitsPerSec: rate, Bytes: 1000,
			RetransmitsTotal: &retransmits,
			RTT:              &stats.Latencies{Count: 200, Mean: mean, P50: mean, P90: p90},
			Ends:             traffic.Ends{Local: end, Remote: end}, MTUBytes: 1500,
			Intervals: []traffic.Interval{{StartSeconds: 0, EndSeconds: 0.5, RTTSeconds: 1, Omitted: true},
				{StartSeconds: 0.5, EndSeconds: 2.5, RTTSeconds: 1, ProbeRTTSeconds: p90, ThroughputBitsPerSec: rate}},
			Warnings: []string{"noisy"},
		}
	}
	return []*traffic.Result{
		{
			Test: traffic.Ping, Method: "icmp echo", DurationSeconds: 2,
			RTT:       &stats.Latencies{Count: 200, Mean: 0.011, P50: 0.010, P90: 0.012},
			Intervals: []traffic.Interval{{StartSeconds: 0, EndSeconds: 2, RTTSeconds: 0.01}},
			Ends:      traffic.Ends{Local: end, Remote: end},
		},
		loaded(0.028, 0.030, 9e8), loaded(0.050, 0.060, 8e8), loaded(0.040, 0.045, 15e8),
	}
}

func TestAssembleLoad(t *testing.T) {
	r, err := assembleLoad(traffic.Spec{Test: traffic.Load}, loadResults())
	if err != nil {
		t.Fatal(err)
	}
	l := r.Load
	if math.Abs(l.AddedSeconds-0.050) > 1e-9 || l.RoundTripsPerMinute != 60/0.050 || r.RTT != l.Down {
		t.Errorf("added %v, %v round trips a minute, rtt %+v", l.AddedSeconds, l.RoundTripsPerMinute, r.RTT)
	}
	if l.UpBitsPerSec != 9e8 || l.DownBitsPerSec != 8e8 || l.BothBitsPerSec != 15e8 || l.Both.P90 != 0.045 {
		t.Errorf("%+v", l)
	}
	point := func(at float64, phase string, rtt, rate float64) traffic.LoadPoint {
		return traffic.LoadPoint{AtSeconds: at, Phase: phase, RTTSeconds: rtt, ThroughputBitsPerSec: rate}
	}
	want := []traffic.LoadPoint{
		point(0, phaseIdle, 0.01, 0), point(2, phaseUp, 0, 0), point(2.5, phaseUp, 0.030, 9e8),
		point(4.5, phaseDown, 0, 0),
		point(5, phaseDown, 0.060, 8e8), point(7, phaseBoth, 0, 0), point(7.5, phaseBoth, 0.045, 15e8),
	}
	if diff := cmp.Diff(want, l.Curve); diff != "" {
		t.Errorf("curve (-want +got):\n%s", diff)
	}
	if len(r.Intervals) != len(want) || r.Intervals[6].EndSeconds != 9.5 || r.DurationSeconds != 8 ||
		r.WarmUpSeconds != 1.5 {
		t.Errorf("%d intervals, %v s and %v s", len(r.Intervals), r.DurationSeconds, r.WarmUpSeconds)
	}
	if e := r.Ends.Local; e.CPUSeconds != 4 || e.Counters["qdisc.eth0.drops"] != 8 ||
		e.Counters["conntrack.max"] != 100 || e.Drops[0].Total != 8 || e.CPUs[0].User != 4 || *r.RetransmitsTotal != 9 {
		t.Errorf("%+v", e)
	}
	if diff := cmp.Diff([]string{"load up: noisy", "load down: noisy", "load both: noisy"}, r.Warnings); diff != "" {
		t.Error(diff)
	}
}

func TestAssembleLoadOfWhatThereIs(t *testing.T) {
	phases := loadResults()
	phases[3], phases[2].RTT = nil, nil
	r, err := assembleLoad(traffic.Spec{Test: traffic.Load}, phases)
	if err != nil || r.RTT != r.Load.Up || r.Load.Both != nil || len(r.Warnings) != 4 {
		t.Errorf("%v, %+v", err, r)
	}
	// A path that is faster under load adds nothing.
	phases[1].RTT = &stats.Latencies{Mean: 0.001, P90: 0.002}
	if r, err := assembleLoad(traffic.Spec{Test: traffic.Load}, phases); err != nil || r.Load.AddedSeconds != 0 {
		t.Errorf("%v, %+v", err, r)
	}
	phases[1] = nil
	if _, err := assembleLoad(traffic.Spec{Test: traffic.Load}, phases); !errors.Is(err, traffic.ErrNoAnswer) {
		t.Errorf("no loaded phase: %v", err)
	}
	phases = loadResults()
	phases[0] = nil
	if _, err := assembleLoad(traffic.Spec{Test: traffic.Load}, phases); !errors.Is(err, traffic.ErrNoAnswer) {
		t.Errorf("no idle phase: %v", err)
	}
}
