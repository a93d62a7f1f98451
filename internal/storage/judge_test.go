package storage

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/storage/layers"
)

// of returns evidence of a random read that the disk answered, with changes.
func of(medium layers.Medium, change func(*Evidence)) Evidence {
	e := Evidence{Spec: Spec{Test: RandomRead, Way: Direct, Sync: NoSync, BlockBytes: 4096},
		FileBytes: 100 << 20, OwnBytes: 100 << 20, Bottom: 100 << 20, BottomName: "sda", BackingBefore: -1,
		OperationsPerSec: 5000, BytesPerSec: 20e6, P50Seconds: 10e-3,
		Stack: layers.Stack{FileSystem: "ext4", Layers: []layers.Layer{{Kind: layers.FileSystem, Name: "ext4"},
			{Kind: layers.Disk, Name: "sda", Device: "8:0", Medium: medium,
				Queue: &layers.Queue{ReadAheadBytes: 128 << 10}}}}}
	if change != nil {
		change(&e)
	}
	return e
}

// TestJudge covers what no test can make on every machine: real drives, limits, arrays, networks.
func TestJudge(t *testing.T) {
	for _, c := range []struct {
		name  string
		e     Evidence
		whose Whose
		why   string
	}{
		{"drive", of(layers.HDD, nil), Device, "100 MiB at sda"},
		{"a drive's cache", of(layers.HDD, func(e *Evidence) { e.P50Seconds = 200e-6 }), DeviceCache,
			"needs at least 400 µs"},
		{"flash", of(layers.SSD, func(e *Evidence) { e.P50Seconds = 80e-6 }), Device, ""},
		{"flash that is too fast", of(layers.SSD, func(e *Evidence) { e.P50Seconds = 9e-6 }), DeviceCache, "9.00 µs"},
		{"writes into the cache of flash", of(layers.NVMe, func(e *Evidence) {
			e.P50Seconds, e.Spec.Test = 4e-6, RandomWrite
		}), Device, ""},
		{"virtual disk", of(layers.Virtual, func(e *Evidence) { e.P50Seconds = 20e-6 }), Device,
			"this host cannot see that cache"},
		{"zram", of(layers.Memory, nil), Memory, "sda keeps"},
		{"other programs", of(layers.HDD, func(e *Evidence) { e.Bottom *= 3 }), Device, ""},
		{"other programs beside a cached file", of(layers.HDD, func(e *Evidence) {
			e.Bottom, e.OwnBytes, e.ResidentAfter = 3*e.Bottom, 0, 1
		}), PageCache, "100 % of the file are in memory"},
		{"own bytes unknown", of(layers.HDD, func(e *Evidence) { e.OwnBytes = -1 }), Device, ""},
		{"device unknown", of(layers.HDD, func(e *Evidence) { e.Bottom = -1 }), Unknown, "not known"},
		{"read-ahead of random reads", of(layers.HDD, func(e *Evidence) {
			e.Spec.Way, e.OwnBytes, e.Bottom = Buffered, 4*e.FileBytes, 4*e.FileBytes
		}), ReadAhead, "reads more than the test asked for"},
		{"one operation, and the next read ahead", of(layers.HDD, func(e *Evidence) {
			e.Spec = Spec{Test: SequentialRead, Way: Pinned, BlockBytes: 128 << 10}
			e.Stack.Layers[1].Queue.ReadAheadBytes = 4 << 10
			e.FileBytes, e.OwnBytes, e.Bottom = 128<<10, 256<<10, 256<<10
		}), Device, "read ahead for operations after the end"},
		{"journal beside synchronous writes", of(layers.HDD, func(e *Evidence) {
			e.Spec.Test, e.OwnBytes, e.Bottom = RandomWrite, 2*e.FileBytes, 2*e.FileBytes
		}), Device, "journal"},
		{"buffered writes", of(layers.HDD, func(e *Evidence) {
			e.Spec.Test, e.Spec.Way, e.OwnBytes, e.Bottom = RandomWrite, Buffered, 0, 0
		}), PageCache, "not written the rest yet"},
		{"limit of bytes", of(layers.NVMe, func(e *Evidence) {
			e.Limit = &layers.Limit{Group: "/a", Source: "io.max", BytesPerSec: 21e6}
		}), ControlGroup, "io.max of /a"},
		{"limit of operations", of(layers.NVMe, func(e *Evidence) {
			e.Limit = &layers.Limit{Group: "/a", Source: "blkio.throttle.read_iops_device", OperationsPerSec: 5000}
		}), ControlGroup, "5000 operations/s"},
		{"a limit far above", of(layers.NVMe, func(e *Evidence) {
			e.Limit = &layers.Limit{BytesPerSec: 1e9, OperationsPerSec: 1e6}
		}), Device, ""},
		{"compressed, and as many bytes by chance", of(layers.HDD, func(e *Evidence) { e.EncodedRatio = 1 }), Compression,
			"compressed 100 %"},
		{"nfs", of(layers.HDD, func(e *Evidence) { e.Stack.FileSystem = "nfs4" }), Network, "another host"},
		{"nothing done", of(layers.HDD, func(e *Evidence) { e.FileBytes = 0 }), Unknown, "No operation"},
		{"unexplained", of(layers.HDD, func(e *Evidence) { e.OwnBytes, e.Bottom = 0, 0 }), Unknown,
			"Nothing that is visible"},
		{"4 % less is the same", of(layers.HDD, func(e *Evidence) { e.OwnBytes = 96 << 20 }), Device, ""},
		{"6 % less is not", of(layers.HDD, func(e *Evidence) { e.OwnBytes = 94 << 20 }), Unknown, ""},
	} {
		v := Judge(c.e)
		if v.Whose != c.whose || !strings.Contains(strings.Join(v.Because, "\n"), c.why) {
			t.Errorf("%s: %s, because %q; want %s and %q", c.name, v.Whose, v.Because, c.whose, c.why)
		}
	}
}

// TestClimb checks that a ladder ends after two steps without a gain, and where its knee is.
func TestClimb(t *testing.T) {
	var depths []int
	run := func(_ context.Context, s Spec, _ func(Sample)) (*Result, error) {
		depths = append(depths, s.Depth)
		return &Result{OperationsPerSec: float64(min(s.Depth, 12)) * 1000}, nil
	}
	ladder, err := climb(context.Background(), run, Spec{Duration: time.Second}, nil)
	if err != nil || len(ladder) != 7 || Knee(ladder) != 16 {
		t.Errorf("depths %v, knee %d, %v", depths, Knee(ladder), err)
	}
	broken := errors.New("broken")
	ladder, err = climb(context.Background(), func(_ context.Context, s Spec, _ func(Sample)) (*Result, error) {
		if s.Depth > 2 {
			return nil, broken
		}
		return &Result{OperationsPerSec: 1}, nil
	}, Spec{}, nil)
	if !errors.Is(err, broken) || len(ladder) != 2 {
		t.Errorf("%d steps, %v", len(ladder), err)
	}
	if Knee(nil) != 0 {
		t.Error("a ladder without steps has a knee")
	}
}

// TestNormalize checks defaults and refusals.
func TestNormalize(t *testing.T) {
	s, err := Spec{Test: RandomWrite}.Normalize()
	if err != nil || s.BlockBytes != 4096 || s.Depth != 1 || s.Sync != NoSync || s.Way != Auto {
		t.Errorf("%+v, %v", s, err)
	}
	for _, bad := range []Spec{{}, {Test: "x"}, {Test: RandomRead, BlockBytes: 100}, {Test: RandomRead, Depth: -1},
		{Test: RandomRead, Depth: MaxDepth + 1}, {Test: RandomRead, Duration: 48 * time.Hour},
		{Test: RandomRead, Interval: 1}, {Test: RandomRead, Rate: -1}, {Test: RandomRead, Sync: Dsync},
		{Test: RandomWrite, Sync: "x"}, {Test: RandomRead, Way: "x"}, {Test: RandomRead, Engine: "x"},
		{Test: RandomRead, BlockBytes: MaxBlockBytes + 512}} {
		if _, err := bad.Normalize(); !errors.Is(err, ErrBadSpec) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

func TestFloorBytes(t *testing.T) {
	for total, want := range map[int64]int64{64 << 20: 16 << 20, 100 << 30: 4 << 30, 20 << 30: 1 << 30} {
		if got := FloorBytes(total); got != want {
			t.Errorf("of %d: %d, want %d", total, got, want)
		}
	}
}
