package traffic

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/traffic/engine"
)

// windowed returns a conductor after its window, with one sender whose kernel reported nothing.
func windowed(before, after *host.Counters) *nearConductor {
	w := &engine.Worker{Role: engine.Sender, Conn: &engine.Conn{}}
	c := newNearConductor(Spec{Test: Stream}, nil, &engine.Phase{}, cast{workers: []*engine.Worker{w}})
	c.window = window{
		open: reading{at: time.Second}, shut: reading{at: 3 * time.Second}, before: before, after: after,
	}
	return c
}

func TestDoubtsAboutTheBench(t *testing.T) {
	at := time.Unix(1000, 0)
	before := &host.Counters{Time: at, Values: map[string]uint64{},
		CPUs: []host.CPUTimes{{CPU: -1}, {CPU: 0}, {CPU: 1}}}
	after := &host.Counters{Time: at.Add(2 * time.Second), Values: map[string]uint64{"qdisc.eth0.drops": 4},
		CPUs: []host.CPUTimes{
			{CPU: -1, System: 2.5, Steal: 0.2, Idle: 1.3}, {CPU: 0, System: 1.9, SoftIRQ: 0.09, Idle: 0.01},
			{CPU: 1, System: 0.51, Steal: 0.2, Idle: 1.29},
		}}
	c := windowed(before, after)
	c.warn("host counters not read: %s", "no coffee")
	e := c.end("lab1")
	if e.CPUSeconds != 2.5 || len(e.Drops) != 1 || len(e.TCP) != 0 {
		t.Errorf("%+v", e)
	}
	// A rate that climbs by half over the window, in bins with a little jitter.
	for i := range 100 {
		c.series = append(c.series, 1e9+float64(i)*5e6+float64(i%7)*1e5)
	}
	got := strings.Join(c.doubts(e, "lab1"), "\n")
	for _, want := range []string{
		"no coffee", "the hypervisor took 5.0 % of the CPU time of lab1 for other guests",
		"CPU 0 of lab1 was 100 % busy", "series measured at lab1: drifts by",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "cpu 1") || strings.Contains(got, "cpu -1") {
		t.Errorf("false alarm in\n%s", got)
	}
}

func TestTimelinePairsBothSides(t *testing.T) {
	own := func(measured bool, index int, start float64) part {
		return part{Measured: measured, Index: index, Start: start, End: start + 1, RTT: 0.01, Cwnd: 1000,
			Retransmits: 2}
	}
	far := func(measured bool, index int, bytes int64) part {
		return part{Measured: measured, Index: index, Start: 10, End: 12, Bytes: bytes}
	}
	var live []Interval
	line := newTimeline(Spec{Test: Stream, Direction: Up}, func(i Interval) { live = append(live, i) })

	line.addOwn(own(false, 0, 0))
	line.addOwn(own(true, 0, 1))
	if len(live) != 0 {
		t.Fatalf("shown before the far side counted: %+v", live)
	}
	line.addFar(far(true, 0, 1000)) // the one of the warm-up was lost on the way
	if len(live) != 2 || live[0].ThroughputBitsPerSec != 0 || live[1].ThroughputBitsPerSec != 4000 {
		t.Fatalf("%+v", live)
	}
	line.addFar(far(true, 1, 2000)) // early
	line.addOwn(own(true, 1, 2))
	line.addOwn(own(true, 2, 3))
	line.finish([]part{far(false, 0, 500), far(true, 0, 1000), far(true, 1, 2000), far(true, 2, 3000)})
	want := []Interval{
		{StartSeconds: 0, EndSeconds: 1, RTTSeconds: 0.01, CwndBytes: 1000, RetransmitsTotal: 2, Omitted: true},
		{StartSeconds: 1, EndSeconds: 2, ThroughputBitsPerSec: 4000, RTTSeconds: 0.01, CwndBytes: 1000,
			RetransmitsTotal: 2},
		{StartSeconds: 2, EndSeconds: 3, ThroughputBitsPerSec: 8000, RTTSeconds: 0.01, CwndBytes: 1000,
			RetransmitsTotal: 2},
		{StartSeconds: 3, EndSeconds: 4, ThroughputBitsPerSec: 12000, RTTSeconds: 0.01, CwndBytes: 1000,
			RetransmitsTotal: 2},
	}
	if d := cmp.Diff(want, live); d != "" {
		t.Errorf("live (-want +got):\n%s", d)
	}
	want[0].ThroughputBitsPerSec = 2000 // known at last
	if d := cmp.Diff(want, line.intervals); d != "" {
		t.Errorf("final (-want +got):\n%s", d)
	}
}
