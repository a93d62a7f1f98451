package disks_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/disks"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/storage"
	"github.com/linerate/linerate/internal/storage/layers"
)

func subject(change func(*layers.Layer)) storage.Subject {
	l := layers.Layer{Kind: layers.Disk, Name: "sda", Device: "8:0", Medium: layers.SSD, Source: "/sys/block/sda",
		Queue: &layers.Queue{Scheduler: "mq-deadline", Schedulers: []string{"none", "mq-deadline", "bfq"}, Requests: 64,
			ReadAheadBytes: 128 << 10, WriteCache: "write through", DeviceQueueLength: 32}}
	if change != nil {
		change(&l)
	}
	return storage.Subject{Stack: layers.Stack{Layers: []layers.Layer{l}}}
}

func result(change func(*storage.Result)) storage.Result {
	ratio := 1.0
	r := storage.Result{Test: storage.RandomRead, Way: storage.Direct, Sync: storage.NoSync, OperationsPerSec: 30_000,
		Verdict: storage.Verdict{Whose: storage.Device, DeviceRatio: &ratio}}
	if change != nil {
		change(&r)
	}
	return r
}

// TestFindings plants each fault, and its healthy counterpart.
func TestFindings(t *testing.T) {
	ladder := func(one, knee float64) func(*storage.Result) {
		return func(r *storage.Result) {
			r.Knee, r.Ladder = 128, []storage.Rung{{Depth: 1, OperationsPerSec: one}, {Depth: 128, OperationsPerSec: knee}}
		}
	}
	sequential := func(way storage.Way, rate float64) storage.Result {
		return result(func(r *storage.Result) {
			r.Test, r.Way, r.ThroughputBytesPerSec = storage.SequentialRead, way, rate
		})
	}
	write := func(sync storage.Sync) storage.Result {
		return result(func(r *storage.Result) { r.Test, r.Sync = storage.RandomWrite, sync })
	}
	for name, c := range map[string]struct {
		layer   func(*layers.Layer)
		results []storage.Result
		code    evidence.Code // empty: none
		title   string
		knob    string
	}{
		"healthy": {nil, []storage.Result{result(nil)}, "", "", ""},
		"cache": {nil, []storage.Result{result(func(r *storage.Result) { r.Whose = storage.PageCache })},
			evidence.DiskCacheMeasured, "random-read (page-cache)", ""},
		"failed": {nil, []storage.Result{result(func(r *storage.Result) { r.Errors = 1 })},
			evidence.DiskIOErrors, "1 errors", ""},
		"counted": {func(l *layers.Layer) { l.Errors = 4 }, nil, evidence.DiskIOErrors, "4 errors", ""},
		"cable": {func(l *layers.Layer) {
			l.Link = &layers.Link{Kind: "sata", BitsPerSecond: 3e9, MaxBitsPerSecond: 6e9}
		}, nil, evidence.DiskLinkLow, "3.00 Gb/s of 6.00 Gb/s", ""},
		"full speed": {func(l *layers.Layer) {
			l.Link = &layers.Link{Kind: "sata", BitsPerSecond: 6e9, MaxBitsPerSecond: 6e9}
		}, nil, "", "", ""},
		"others": {nil, []storage.Result{result(func(r *storage.Result) { r.OthersRatio = 0.5 })}, evidence.DiskSaturated,
			"50.0 %", ""},
		"few others": {nil, []storage.Result{result(func(r *storage.Result) { r.OthersRatio = 0.05 })}, "", "", ""},
		"depth": {nil, []storage.Result{result(ladder(10e3, 80e3))}, evidence.DiskQueueDepth, "80.0 k operations/s with 128",
			"block:sda/nr_requests"},
		"flat ladder": {nil, []storage.Result{result(ladder(10e3, 15e3))}, "", "", ""},
		"bfq": {func(l *layers.Layer) { l.Queue.Scheduler = "bfq" }, []storage.Result{result(nil)}, evidence.DiskScheduler,
			"under bfq", "block:sda/scheduler"},
		"slow under bfq": {func(l *layers.Layer) { l.Queue.Scheduler = "bfq" },
			[]storage.Result{result(func(r *storage.Result) { r.OperationsPerSec = 100 })}, "", "", ""},
		"unsorted": {func(l *layers.Layer) {
			l.Medium, l.Queue.Scheduler, l.Queue.DeviceQueueLength = layers.HDD, "none", 1
		}, []storage.Result{result(nil)}, evidence.DiskScheduler, "sorts no requests", "block:sda/scheduler"},
		"much ahead": {nil, []storage.Result{result(func(r *storage.Result) {
			ratio := 8.0
			r.Whose, r.DeviceRatio = storage.ReadAhead, &ratio
		})}, evidence.DiskReadAhead, "8.0 times", "block:sda/read_ahead_kb"},
		"little ahead": {nil, []storage.Result{sequential(storage.Direct, 1e9), sequential(storage.Dropped, 3e8)},
			evidence.DiskReadAhead, "reach 286 MiB/s", "block:sda/read_ahead_kb"},
		"well ahead": {nil, []storage.Result{sequential(storage.Direct, 1e9), sequential(storage.Dropped, 9e8)}, "", "", ""},
		"volatile": {func(l *layers.Layer) { l.Queue.WriteCache = "write back" }, []storage.Result{write(storage.NoSync)},
			evidence.DiskWriteCache, "did not flush", ""},
		"flushed": {func(l *layers.Layer) { l.Queue.WriteCache = "write back" }, []storage.Result{write(storage.Dsync)},
			"", "", ""},
	} {
		all := disks.Findings(subject(c.layer), c.results)
		i := slices.IndexFunc(all, func(f evidence.Finding) bool { return f.Code == c.code })
		if c.code == "" {
			if len(all) != 0 {
				t.Errorf("%s: %s: %s", name, all[0].Code, all[0].Title)
			}
			continue
		}
		if i < 0 {
			t.Errorf("%s: no %s in %+v", name, c.code, all)
			continue
		}
		f := all[i]
		if !strings.Contains(f.Title, c.title) || f.Remedy.Text == "" || f.Where != "near" {
			t.Errorf("%s: title %q, remedy %q", name, f.Title, f.Remedy.Text)
		}
		if c.knob != "" && !slices.Contains(f.Remedy.Knobs, c.knob) {
			t.Errorf("%s: knobs %v, want %s", name, f.Remedy.Knobs, c.knob)
		}
		for _, s := range f.Remedy.Settings {
			if _, ok := knob.Catalogue().Lookup(s.Knob); !ok {
				t.Errorf("%s: the catalogue has no %s", name, s.Knob)
			}
		}
	}
}
