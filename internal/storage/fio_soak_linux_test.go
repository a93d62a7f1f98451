//go:build soak

package storage_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/lab/guest"
	"github.com/linerate/linerate/internal/lab/guest/guesttest"
	"github.com/linerate/linerate/internal/storage"
)

// TestMain is the first process of the guest, and the tests.
func TestMain(m *testing.M) {
	guesttest.MainIn(m, guest.Options{Counted: true, MemoryBytes: 768 << 20,
		Modules: []string{"null_blk nr_devices=0", "dm_mod"}, Programs: []string{"fio", "dmsetup"}})
}

// beside is what one program measured.
type beside struct{ rate, p50, p99, cpu float64 }

// nullDevice makes a disk of the kernel that completes each operation after a time. The disk has
// the name of its directory.
func nullDevice(t *testing.T, name string, latency time.Duration) {
	t.Helper()
	dir := filepath.Join("/sys/kernel/config/nullb", name)
	must(t, os.Mkdir(dir, 0o755))
	for _, x := range [][2]string{{"size", "256"}, {"blocksize", "4096"}, {"irqmode", "2"}, {"queue_mode", "2"},
		{"hw_queue_depth", "256"}, {"completion_nsec", strconv.FormatInt(int64(latency), 10)}, {"power", "1"}} {
		must(t, os.WriteFile(filepath.Join(dir, x[0]), []byte(x[1]), 0))
	}
}

// mixed makes a disk whose latencies are known: 31 of 32 operations take 10 ms, and one 40 ms, so
// p50 and p99 are the disk's.
func mixed(t *testing.T) (device string) {
	t.Helper()
	const name = "/dev/dm-0"
	if _, err := os.Stat(name); err == nil { // of the test before
		return name
	}
	must(t, unix.Mount("none", "/sys/kernel/config", "configfs", 0, ""))
	nullDevice(t, "nullb0", 10*time.Millisecond)
	nullDevice(t, "nullb1", 40*time.Millisecond)
	var table strings.Builder
	const stripe, tail = 31744, 1024 // sectors: 15.5 and 0.5 MiB
	for i := range 8 {
		at := i * (stripe + tail)
		fmt.Fprintf(&table, "%d %d linear /dev/nullb0 %d\n%d %d linear /dev/nullb1 %d\n", at, stripe, i*stripe, at+stripe,
			tail, i*tail)
	}
	dm := exec.Command("dmsetup", "create", "mixed", "--noudevrules", "--noudevsync")
	dm.Stdin = strings.NewReader(table.String())
	if out, err := dm.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return name
}

// blocks is how often A B B A is measured.
const blocks = 1

// compared is a test of both programs.
type compared struct {
	name string
	spec storage.Spec
	fio  string
	// most is the bound of the processor time of an operation, as a share of fio's. Where it is above
	// 1, docs/evidence/disk.md says why.
	most float64
}

// besideFio compares with fio on a disk of known latencies. The clock counts instructions: neither
// program's figure depends on what else the machine does. Pairs are in the order A B B A.
func besideFio(t *testing.T, all ...compared) {
	testenv.Need(t, testenv.Long)
	if !guesttest.In(t) {
		return
	}
	device := mixed(t)
	for _, c := range all {
		// Idle time costs a counted guest nothing: one in flight gets enough operations for a p99.
		c.spec.Duration = time.Second
		if c.spec.Depth == 1 {
			c.spec.Duration = 16 * time.Second
		}
		c.spec.Interval, c.spec.BlockBytes = time.Second, 4096
		var ratios [4][]float64
		var last [2]beside
		for pair := range 2 * blocks {
			for half := range 2 {
				if (pair+half)%2 == 0 {
					last[0] = ourselves(t, device, c.spec)
				} else {
					last[1] = fio(t, device, c.fio, c.spec.Duration)
				}
			}
			a, b := last[0], last[1]
			for i, r := range []float64{a.rate / b.rate, a.p50 / b.p50, a.p99 / b.p99, a.cpu / b.cpu} {
				ratios[i] = append(ratios[i], r)
			}
		}
		text := ""
		for i, name := range []string{"throughput", "p50", "p99", "CPU"} {
			slices.Sort(ratios[i])
			median := (ratios[i][blocks-1] + ratios[i][blocks]) / 2
			text += fmt.Sprintf(" · %s %.3f (%.3f–%.3f)", name, median, ratios[i][0], ratios[i][2*blocks-1])
			if i < 3 && (median < 0.95 || median > 1.05) {
				t.Errorf("%s: %s is %.3f of fio's", c.name, name, median)
			}
			if i == 3 && median > c.most {
				t.Errorf("%s: an operation takes %.3f of fio's processor time", c.name, median)
			}
		}
		t.Logf("note: %s%s · last %+v and %+v", c.name, text, last[0], last[1])
	}
}

// read is a test of random reads.
func read(e storage.Engine, w storage.Way, depth int) storage.Spec {
	return storage.Spec{Test: storage.RandomRead, Engine: e, Way: w, Depth: depth}
}

// write is a test of random writes, each of which is durable.
func write(e storage.Engine, depth int) storage.Spec {
	return storage.Spec{Test: storage.RandomWrite, Engine: e, Way: storage.Direct, Depth: depth, Sync: storage.Dsync}
}

// TestBesideFioThreads has one thread for each operation in flight.
func TestBesideFioThreads(t *testing.T) {
	const flags = "--rw=randread --direct=1 --ioengine=psync"
	besideFio(t,
		compared{"direct, psync, 1", read(storage.Psync, storage.Direct, 1), flags, 1.05},
		compared{"direct, psync, 16", read(storage.Psync, storage.Direct, 16), flags + " --numjobs=16", 1.05},
		compared{"direct, psync, 64", read(storage.Psync, storage.Direct, 64), flags + " --numjobs=64", 1.05},
	)
}

// TestBesideFioRing has one thread with an io_uring.
func TestBesideFioRing(t *testing.T) {
	const flags = "--rw=randread --direct=1 --ioengine=io_uring --iodepth="
	besideFio(t,
		compared{"direct, io_uring, 1", read(storage.IOUring, storage.Direct, 1), flags + "1", 1},
		compared{"direct, io_uring, 16", read(storage.IOUring, storage.Direct, 16), flags + "16", 1},
		compared{"direct, io_uring, 64", read(storage.IOUring, storage.Direct, 64), flags + "64", 1},
	)
}

// TestBesideFioOtherWays goes through the page cache, and makes writes durable.
func TestBesideFioOtherWays(t *testing.T) {
	const (
		cached  = "--rw=randread --direct=0 --invalidate=1 --ioengine="
		durable = "--rw=randwrite --direct=1 --sync=dsync --ioengine="
	)
	besideFio(t,
		compared{"invalidated, psync, 1", read(storage.Psync, storage.Dropped, 1), cached + "psync", 2.3},
		compared{"invalidated, psync, 16", read(storage.Psync, storage.Dropped, 16), cached + "psync --numjobs=16", 2.3},
		compared{"dsync, psync, 1", write(storage.Psync, 1), durable + "psync", 1.1},
		compared{"dsync, psync, 16", write(storage.Psync, 16), durable + "psync --numjobs=16", 1.1},
		compared{"dsync, io_uring, 1", write(storage.IOUring, 1), durable + "io_uring", 1},
		compared{"dsync, io_uring, 16", write(storage.IOUring, 16), durable + "io_uring --iodepth=16", 1},
	)
}

func ourselves(t *testing.T, device string, spec storage.Spec) beside {
	t.Helper()
	s, err := storage.Open(t.Context(), storage.Target{Path: device, Overwrite: spec.Test.Writes()}, nil)
	must(t, err)
	r, err := s.Run(t.Context(), spec, nil)
	must(t, err)
	must(t, s.Close())
	return beside{r.OperationsPerSec, r.Latency.P50, r.Latency.P99, r.CPUSecondsPerOp}
}

func fio(t *testing.T, device, args string, duration time.Duration) beside {
	t.Helper()
	cmd := exec.Command("fio", append(strings.Fields(args), "--name=x", "--filename="+device, "--bs=4k", "--thread",
		"--group_reporting", "--time_based", fmt.Sprintf("--runtime=%d", int(duration.Seconds())),
		"--size=128m", "--randrepeat=0", "--norandommap",
		"--lat_percentiles=1", "--output-format=json", "--allow_file_create=0")...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("fio %s: %v\n%s", args, err, out)
	}
	type direction struct {
		IOPS  float64 `json:"iops"`
		Total float64 `json:"total_ios"`
		Lat   struct {
			Percentile map[string]float64 `json:"percentile"`
		} `json:"lat_ns"`
	}
	var doc struct {
		Jobs []struct {
			Read, Write direction
			Runtime     float64 `json:"job_runtime"` // ms, of all jobs
			User        float64 `json:"usr_cpu"`
			System      float64 `json:"sys_cpu"`
		} `json:"jobs"`
	}
	if i := strings.IndexByte(string(out), '{'); i > 0 {
		out = out[i:]
	}
	must(t, json.Unmarshal(out, &doc))
	j := doc.Jobs[0]
	d := j.Read
	if d.Total == 0 {
		d = j.Write
	}
	return beside{d.IOPS, d.Lat.Percentile["50.000000"] / 1e9, d.Lat.Percentile["99.000000"] / 1e9,
		(j.User + j.System) / 100 * j.Runtime / 1e3 / d.Total}
}
