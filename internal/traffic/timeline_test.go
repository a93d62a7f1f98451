package traffic

import (
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/linerate/linerate/internal/traffic/engine"
)

// TestTimelineIsBounded checks that intervals that a far end makes up do not fill the near end's
// memory.
func TestTimelineIsBounded(t *testing.T) {
	var emitted int
	line := newTimeline(Spec{Test: Stream, Direction: Up}, func(Interval) { emitted++ })
	for i := range 3 * maxIntervals {
		line.addFar(part{Measured: true, Index: i, End: 1, Bytes: 1})
	}
	if n := len(line.far); n > 2*maxIntervals {
		t.Errorf("%d intervals kept", n)
	}
	line.addOwn(part{Measured: true, End: 1})
	if emitted != 1 {
		t.Errorf("%d intervals emitted of one", emitted)
	}
}

// TestIntervalsMeetAfterAPause: an end that stood still for some intervals has one long part, and
// the parts after it belong to the same moments at both ends.
func TestIntervalsMeetAfterAPause(t *testing.T) {
	parts := func(still bool) (all []part) {
		for i := 0; i < 7; i++ {
			p := part{Measured: true, Index: i, Start: float64(i), End: float64(i + 1), Bytes: int64(1000 * i), Packets: 9}
			if still && i == 2 {
				p.Skipped, p.End, p.Bytes, p.Packets = 2, 5, 2000+3000+4000, 27
				i = 4
			}
			all = append(all, p)
		}
		return all
	}
	for _, tc := range []struct {
		name     string
		own, far bool // stood still
		want     []float64
	}{
		{"neither", false, false, []float64{0, 1000, 2000, 3000, 4000, 5000, 6000}},
		{"the near end", true, false, []float64{0, 1000, 3000, 5000, 6000}},
		{"the far end", false, true, []float64{0, 1000, 3000, 3000, 3000, 5000, 6000}},
		{"both", true, true, []float64{0, 1000, 3000, 5000, 6000}},
	} {
		var live []Interval
		line := newTimeline(Spec{Test: UDP, Direction: Up}, func(i Interval) { live = append(live, i) })
		for _, p := range parts(tc.own) {
			p.Bytes, p.Packets = 0, 0 // it sends
			line.addOwn(p)
		}
		for _, p := range parts(tc.far) {
			line.addFar(p)
		}
		line.finish(parts(tc.far))
		for _, got := range [][]Interval{live, line.intervals} {
			if len(got) != len(tc.want) {
				t.Fatalf("%s: %d intervals, want %d", tc.name, len(got), len(tc.want))
			}
			for i, want := range tc.want {
				if rate := got[i].ThroughputBitsPerSec / 8; math.Abs(rate-want) > 1 || got[i].PacketsPerSec != 9 {
					t.Errorf("%s: interval %d has %.0f bytes and %v packets a second, want %.0f and 9", tc.name, i, rate,
						got[i].PacketsPerSec, want)
				}
			}
		}
	}
}

// TestPartsCountEdges: the index of a part is that of its interval, also after edges that this end
// has missed.
func TestPartsCountEdges(t *testing.T) {
	for _, tc := range []struct {
		at   []time.Duration
		want [][2]int // index and edges skipped
	}{
		{[]time.Duration{1000, 2000, 3000}, [][2]int{{0, 0}, {1, 0}, {2, 0}}},
		{[]time.Duration{1000, 4200, 5000, 6000}, [][2]int{{0, 0}, {1, 2}, {4, 0}, {5, 0}}},
		{[]time.Duration{1998, 2000, 3000}, [][2]int{{0, 0}, {1, 1}}}, // two milliseconds are no part
	} {
		synctest.Test(t, func(t *testing.T) {
			spec, err := Spec{Test: UDP}.Normalize()
			if err != nil {
				t.Fatal(err)
			}
			c := newFarConductor(spec, &session{timing: patience}, &engine.Phase{}, cast{}, Limits{})
			c.sampler.begin()
			c.nextBin, c.nextBeat, c.nextPart = never, never, c.times.interval
			for _, at := range tc.at {
				time.Sleep(at*time.Millisecond - c.now())
				if err := c.tick(c.now(), c); err != nil {
					t.Fatal(err)
				}
			}
			var got [][2]int
			for _, p := range c.parts {
				got = append(got, [2]int{p.Index, p.Skipped})
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("edges seen at %v ms: %v, want %v", tc.at, got, tc.want)
			}
		})
	}
}
