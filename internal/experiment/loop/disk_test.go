package loop_test

import (
	"context"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/experiment/loop"
	"github.com/linerate/linerate/internal/experiment/tune"
	"github.com/linerate/linerate/internal/storage"
	"github.com/linerate/linerate/internal/storage/layers"
)

// simulatedDisk is a disk with a rate for large requests and a time for each request, read through
// a queue whose read-ahead is the size of the requests of sequential buffered reads.
type simulatedDisk struct {
	knobs map[knob.ID]knob.Value
	whose storage.Whose
	noise *rand.Rand
}

const (
	simulatedAhead = knob.ID("block:sda/read_ahead_kb")
	simulatedQueue = knob.ID("block:sda/nr_requests")
)

func newSimulatedDisk(ahead, requests knob.Value) *simulatedDisk {
	return &simulatedDisk{knobs: map[knob.ID]knob.Value{simulatedAhead: ahead, simulatedQueue: requests},
		whose: storage.Device, noise: rand.New(rand.NewPCG(1, 2))}
}

// Run returns a result at 300 requests a second of at most 100 MB/s, and 32 times as many with 32
// in flight.
func (d *simulatedDisk) Run(_ context.Context, s storage.Spec, _ func(storage.Sample)) (*storage.Result, error) {
	s, err := s.Normalize()
	if err != nil {
		return nil, err
	}
	if s.Way == storage.Auto {
		s.Way = storage.Direct
	}
	number := func(id knob.ID) float64 {
		x, err := strconv.ParseFloat(string(d.knobs[id]), 64)
		if err != nil {
			panic(err) // a level of the catalogue
		}
		return x
	}
	one := 1 + 0.02*d.noise.NormFloat64()
	bytes := float64(s.BlockBytes)
	if s.Way == storage.Dropped && s.Test == storage.SequentialRead {
		bytes = max(4096, number(simulatedAhead)*1024)
	}
	inFlight := min(float64(s.Depth), number(simulatedQueue), 32)
	rate := min(300*inFlight*bytes, 100e6) * one
	ratio := 1.0
	r := &storage.Result{Test: s.Test, Way: s.Way, BlockBytes: s.BlockBytes, Depth: s.Depth, ThroughputBytesPerSec: rate,
		OperationsPerSec: rate / float64(s.BlockBytes), CPUSecondsPerOp: 20e-6,
		Verdict: storage.Verdict{Whose: d.whose, DeviceRatio: &ratio}}
	return r, nil
}

func (d *simulatedDisk) Climb(ctx context.Context, s storage.Spec, _ func(storage.Rung),
	_ func(storage.Sample)) (*storage.Result, error) {
	var ladder []storage.Rung
	for depth := 1; depth <= 64; depth *= 2 {
		s.Depth = depth
		r, err := d.Run(ctx, s, nil)
		if err != nil {
			return nil, err
		}
		ladder = append(ladder, storage.Rung{Depth: depth, OperationsPerSec: r.OperationsPerSec})
	}
	s.Depth = storage.Knee(ladder)
	r, err := d.Run(ctx, s, nil)
	if r != nil {
		r.Ladder, r.Knee = ladder, s.Depth
	}
	return r, err
}

// The knobs of the disk.

func (d *simulatedDisk) Read(_ context.Context, id knob.ID) (knob.Value, error) {
	if v, ok := d.knobs[id]; ok {
		return v, nil
	}
	return "", knob.ErrNotSupported
}

func (d *simulatedDisk) Apply(_ context.Context, _ string, settings ...knob.Setting) ([]string, error) {
	var ids []string
	for _, s := range settings {
		ids = append(ids, string(s.Knob)+"="+string(d.knobs[s.Knob]))
		d.knobs[s.Knob] = s.Value
	}
	return ids, nil
}

func (d *simulatedDisk) Undo(_ context.Context, ids ...string) error {
	for i := len(ids) - 1; i >= 0; i-- {
		id, was, _ := strings.Cut(ids[i], "=")
		d.knobs[knob.ID(id)] = knob.Value(was)
	}
	return nil
}

func (d *simulatedDisk) Commit(context.Context, ...string) error { return nil }

// subject is the disk with the settings of its queue.
func (d *simulatedDisk) subject() storage.Subject {
	return storage.Subject{Path: "/srv", Kind: "own-file", Stack: layers.Stack{Layers: []layers.Layer{{
		Kind: layers.Disk, Name: "sda", Device: "8:0", Medium: layers.SSD, Source: "/sys/block/sda",
		Queue: &layers.Queue{Scheduler: "mq-deadline", Schedulers: []string{"none", "mq-deadline"}, Requests: 256,
			ReadAheadBytes: 128 << 10}}}}}
}

// TestTuneDisk: a read-ahead of one page is found and mended; on a sound disk there is nothing to
// do, and a knob that the user names stays as it is; figures of a cache are not tuned.
func TestTuneDisk(t *testing.T) {
	run := func(d *simulatedDisk, g loop.DiskGoal, o loop.TuneOptions) *loop.Tuning {
		t.Helper()
		s := d.subject()
		s.Stack.Layers[0].Queue.ReadAheadBytes = 4096
		o.Allow, o.Seed = knob.DisturbsNewSockets, 7
		got, err := loop.TuneDisk(t.Context(), d, d, s, g, o)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	d := newSimulatedDisk("4", "256")
	got := run(d, loop.DiskThroughput, loop.TuneOptions{})
	if got.Outcome.State != tune.StateCommitted || d.knobs[simulatedAhead] == "4" || got.Outcome.Final.Ratio < 10 {
		t.Errorf("planted read-ahead: %s, knobs %v, %v, %s", got.Outcome.State, d.knobs, got.Outcome.Final,
			got.Outcome.Reason)
	}
	d = newSimulatedDisk("4096", "256")
	got = run(d, loop.DiskThroughput, loop.TuneOptions{})
	if len(got.Outcome.Trials) != 0 || len(got.Outcome.Kept) != 0 || d.knobs[simulatedAhead] != "4096" ||
		!strings.Contains(got.Outcome.Reason, "nothing to tune") {
		t.Errorf("sound disk: %+v", got.Outcome)
	}
	wide, named := knob.Catalogue().Widened("block:sda/nr_requests")
	got = run(d, loop.DiskThroughput, loop.TuneOptions{Wide: wide, Knobs: named})
	if len(got.Outcome.Trials) != 1 || len(got.Outcome.Kept) != 0 || d.knobs[simulatedQueue] != "256" {
		t.Errorf("useless knob: %+v", got.Outcome.Trials)
	}
	d.whose = storage.PageCache
	got = run(d, loop.DiskLatency, loop.TuneOptions{})
	if !strings.Contains(got.Outcome.Reason, "those of page-cache") {
		t.Errorf("cache: %s", got.Outcome.Reason)
	}
}
