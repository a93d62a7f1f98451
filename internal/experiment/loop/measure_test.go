package loop

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/experiment/goal"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/engine"
)

// fakeRuns plays a far end whose tests take no time.
type fakeRuns struct {
	specs []traffic.Spec
	fail  map[int]error // by number of the run
}

func (f *fakeRuns) run(_ context.Context, s traffic.Spec, progress func(traffic.Interval)) (*traffic.Result, error) {
	f.specs = append(f.specs, s)
	if err := f.fail[len(f.specs)-1]; err != nil {
		return nil, err
	}
	if progress != nil {
		progress(traffic.Interval{StartSeconds: 0.5, EndSeconds: 1})
	}
	return &traffic.Result{
		Test: s.Test, Direction: s.Direction, DurationSeconds: 1, WarmUpSeconds: 0.5,
		RTT:                  &stats.Latencies{Mean: 0.01, P50: 0.01, P90: 0.02},
		ThroughputBitsPerSec: 1e9,
	}, nil
}

func TestMeasurePutsALoadTestTogether(t *testing.T) {
	f := &fakeRuns{}
	var ends []float64
	r, err := Measure(t.Context(), f.run, traffic.Spec{Test: traffic.Load, Duration: 4 * time.Second},
		func(i traffic.Interval) { ends = append(ends, i.EndSeconds) })
	if err != nil {
		t.Fatal(err)
	}
	if len(f.specs) != 4 || r.Test != traffic.Load || r.Load.Both == nil || r.DurationSeconds != 4 ||
		r.Load.AddedSeconds != 0.01 {
		t.Errorf("%d runs, %+v", len(f.specs), r)
	}
	if len(ends) != 4 || ends[3] != 5.5 {
		t.Errorf("intervals end at %v", ends)
	}
	// Other tests run as they are.
	f = &fakeRuns{}
	if r, err := Measure(t.Context(), f.run, traffic.Spec{Test: traffic.RR}, nil); err != nil || len(f.specs) != 1 ||
		r.Test != traffic.RR {
		t.Errorf("%v, %d runs", err, len(f.specs))
	}
}

func TestMeasureWithoutAnswers(t *testing.T) {
	load := traffic.Spec{Test: traffic.Load}
	f := &fakeRuns{fail: map[int]error{0: traffic.ErrNoAnswer}}
	if _, err := Measure(t.Context(), f.run, load, nil); !errors.Is(err, traffic.ErrNoAnswer) || len(f.specs) != 1 {
		t.Errorf("no answer: %v after %d runs", err, len(f.specs))
	}
	f = &fakeRuns{fail: map[int]error{2: traffic.ErrNoAnswer}}
	if r, err := Measure(t.Context(), f.run, load, nil); err != nil || r.Load.Down != nil || r.Load.Up == nil ||
		len(r.Warnings) != 1 {
		t.Errorf("no answer while the path is full in one direction: %v, %+v", err, r)
	}
	f = &fakeRuns{fail: map[int]error{1: traffic.ErrRefused}}
	if _, err := Measure(t.Context(), f.run, load, nil); !errors.Is(err, traffic.ErrRefused) || len(f.specs) != 2 {
		t.Errorf("refused: %v after %d runs", err, len(f.specs))
	}
}

// TestJudgementsCopy checks that diagnosing and tuning use the copies that programs make, although
// the engine can do without.
func TestJudgementsCopy(t *testing.T) { synctest.Test(t, judgementsCopy) }

func judgementsCopy(t *testing.T) {
	far := &fakeFar{}
	if _, err := Diagnose(t.Context(), far, DiagnoseOptions{Root: elsewhere}); err != nil {
		t.Fatal(err)
	}
	specs := append(far.runs,
		newProber(far, probing{objective: goal.Objective{Goal: goal.Throughput}, direction: traffic.Up, streams: 1,
			segment: time.Second}).specs[0])
	streams := 0
	for _, s := range specs {
		if s.Test == traffic.Stream {
			streams++
			if s.SendMethod != engine.SendCopy || s.ReceiveMethod != engine.ReceiveCopy {
				t.Errorf("stream sends by %q and receives by %q", s.SendMethod, s.ReceiveMethod)
			}
		}
	}
	if streams != 2 {
		t.Errorf("%d streams", streams)
	}
	every, err := goal.Parse("latency where throughput>1Mb/s and loss<1%")
	if err != nil {
		t.Fatal(err)
	}
	more := newProber(far, probing{objective: every, direction: traffic.Down, streams: 4, segment: time.Second,
		echoes: true}).specs
	if len(more) != 3 || more[0].Test != traffic.RR {
		t.Errorf("bounds on two other tests make segments of %+v", more)
	}
	for _, s := range append(specs, more...) {
		if _, err := s.Normalize(); err != nil {
			t.Errorf("%s: %v", s.Test, err)
		}
	}
}
