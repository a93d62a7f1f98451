package reporttest

import (
	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/storage"
	"github.com/linerate/linerate/internal/storage/layers"
)

// diskDocuments are the documents of disk: a virtual disk with a ladder, an old drive whose cable
// is bad, and a file system in memory.
func diskDocuments() []Document {
	return []Document{
		{"disk", report.NewDisk(Envelope(), virtualDisk(), []storage.Result{
			diskResult(storage.SequentialRead, storage.Device, 1), ladderResult(), syncedResult()})},
		{"disk-drive", report.NewDisk(Envelope(), oldDrive(), []storage.Result{
			diskResult(storage.RandomRead, storage.DeviceCache, 0.98)})},
		{"disk-memory", report.NewDisk(Envelope(), storage.Subject{Path: "/dev/shm", Kind: "own-file", SizeBytes: 64 << 20,
			Stack: layers.Stack{FileSystem: "tmpfs", Layers: []layers.Layer{{Kind: layers.FileSystem, Name: "tmpfs",
				Device: "0:23", About: "tmpfs rw", Source: "/proc/self/mountinfo"}}}},
			[]storage.Result{memoryResult()})},
		{"disk-pinned", report.NewDisk(Envelope(), virtualDisk(), []storage.Result{waysResult(storage.Buffered),
			waysResult(storage.Pinned), waysResult(storage.Grouped)})},
	}
}

func virtualDisk() storage.Subject {
	return storage.Subject{Path: "/srv", Kind: "own-file", SizeBytes: 1 << 30, HostCache: "unknown",
		Stack: layers.Stack{FileSystem: "ext4", Options: "rw,discard", Layers: []layers.Layer{
			{Kind: layers.FileSystem, Name: "ext4", Device: "254:1", About: "/dev/vda1 rw,discard",
				Source: "/proc/self/mountinfo"},
			{Kind: layers.Partition, Name: "vda1", Device: "254:1", About: "from byte 1048576",
				Source: "/sys/devices/pci0000:00/0000:00:02.0/virtio1/block/vda/vda1"},
			{Kind: layers.Disk, Name: "vda", Device: "254:0", Medium: layers.Virtual,
				Source: "/sys/devices/pci0000:00/0000:00:02.0/virtio1/block/vda",
				Queue: &layers.Queue{Scheduler: "bfq", Schedulers: []string{"none", "mq-deadline", "bfq"}, Requests: 16,
					ReadAheadBytes: 8 << 20, WriteCache: "write back", LogicalBytes: 512, PhysicalBytes: 4096,
					HardwareQueues: 1, Rotational: true}},
		}}}
}

func oldDrive() storage.Subject {
	return storage.Subject{Path: "/dev/sdb", Kind: "device", SizeBytes: 500 << 30,
		Stack: layers.Stack{Layers: []layers.Layer{{Kind: layers.Disk, Name: "sdb", Device: "8:16",
			About: "ATA ST500NM0011", Medium: layers.HDD, Source: "/sys/devices/pci0000:00/0000:00:1f.2/ata2/…/sdb",
			Errors: 3, Link: &layers.Link{Kind: "sata", BitsPerSecond: 1.5e9, MaxBitsPerSecond: 6e9,
				Source: "/sys/class/ata_link/link2/sata_spd"},
			Queue: &layers.Queue{Scheduler: "none", Schedulers: []string{"none", "mq-deadline", "bfq"}, Requests: 64,
				ReadAheadBytes: 128 << 10, WriteCache: "write back", LogicalBytes: 512, PhysicalBytes: 512,
				Rotational: true, DeviceQueueLength: 1}}},
			Unknown: []string{"mounts: open /proc/self/mountinfo: permission denied"}}}
}

// diskResult is a test of which the device moved a share of the bytes.
func diskResult(t storage.Test, whose storage.Whose, share float64) storage.Result {
	resident := 0.0
	r := storage.Result{Test: t, Engine: storage.Psync, Way: storage.Direct, Sync: storage.NoSync, BlockBytes: 128 << 10,
		Depth: 1, Verdict: storage.Verdict{Whose: whose, LatencyWhose: whose,
			Because:     []string{"2.50 GiB read at the file, 2.50 GiB at vda."},
			DeviceRatio: &share, ResidentRatio: &resident, ResidentBefore: &resident},
		DurationSeconds: 5, Operations: 20480, Bytes: 20480 * 128 << 10, ThroughputBytesPerSec: 536870912,
		OperationsPerSec: 4096, CPUSeconds: 1.2, CPUSecondsPerOp: 58.6e-6,
		Latency: &storage.Latency{Latencies: stats.Latencies{Count: 20480, Min: 50e-6, Mean: 240e-6, P50: 198e-6,
			P90: 400e-6, P99: 1.57e-3, P999: 3.97e-3, Max: 12e-3, StdDev: 0.2e-3},
			Histogram: []storage.Bucket{{UpToSeconds: 181e-6, Count: 9000}, {UpToSeconds: 256e-6, Count: 11000},
				{UpToSeconds: 362e-6}, {UpToSeconds: 12e-3, Count: 480}}},
		Intervals: []storage.Sample{{DurationSeconds: 1, ThroughputBytesPerSec: 536870912, OperationsPerSec: 4096,
			MeanSeconds: 240e-6}},
		Layers: []storage.Counted{{Name: "vda", Device: "254:0", ReadBytes: 20480 * 128 << 10, BusyRatio: 0.97,
			Bottom: true}},
	}
	if t.Random() {
		r.BlockBytes = 4096
	}
	return r
}

func ladderResult() storage.Result {
	r := diskResult(storage.RandomRead, storage.Device, 1)
	r.Engine, r.Depth, r.Knee, r.OperationsPerSec = storage.IOUring, 32, 32, 81000
	r.Ladder = []storage.Rung{{Depth: 1, OperationsPerSec: 12900, ThroughputBytesPerSec: 52838400, P50: 68e-6, P99: 144e-6,
		Whose: storage.Device}, {Depth: 32, OperationsPerSec: 81000, ThroughputBytesPerSec: 331776000, P50: 380e-6,
		P99: 900e-6, Whose: storage.Device}}
	r.OthersRatio = 0.25
	return r
}

func syncedResult() storage.Result {
	r := diskResult(storage.RandomWrite, storage.Device, 1)
	r.RateOperationsPerSec, r.Missed, r.OperationsPerSec = 20000, 79520, 4096
	r.Warnings = []string{"79520 of 100000 operations were due and did not start before the end: the rate is more than " +
		"the target carries with 1 in flight"}
	return r
}

// waysResult is one test with several ways past the cache.
func waysResult(way storage.Way) storage.Result {
	r := diskResult(storage.SequentialRead, storage.Device, 1)
	r.Way = way
	switch way {
	case storage.Buffered:
		r = diskResult(storage.SequentialRead, storage.PageCache, 0.02)
		r.Way, r.Because = way, []string{"9.31 GiB read at the file, 190 MiB at the device."}
	case storage.Pinned:
		r.LatencyWhose, r.PinnedBytes = storage.ReadAhead, 195<<20
	default:
		r.LatencyWhose, r.GroupBytes = storage.ReadAhead, 17<<20
	}
	return r
}

func memoryResult() storage.Result {
	r := diskResult(storage.SequentialRead, storage.Memory, 0)
	r.Because = []string{"tmpfs keeps the file in memory."}
	r.DeviceRatio, r.Layers = nil, nil
	return r
}
