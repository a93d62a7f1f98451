package sample_test

import (
	"fmt"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/sample"
)

// BenchmarkLargeHost is a reading of a host with 40 VLANs on an interface with 64 queues, the other
// end of which is here as well, and beside it what the whole reading of package host takes there.
// CPU-ms/op is the processor time of the process.
func BenchmarkLargeHost(b *testing.B) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and the thread ends with the goroutine
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			b.Errorf("needs a network namespace: %v", err)
			return
		}
		run := func(args ...string) {
			if out, err := exec.CommandContext(b.Context(), "ip", args...).CombinedOutput(); err != nil {
				b.Errorf("ip %q: %v: %s", args, err, out)
				runtime.Goexit()
			}
		}
		run("link", "add", "name", "q0", "numtxqueues", "64", "numrxqueues", "64", "type", "veth", "peer", "name", "q1",
			"numtxqueues", "64", "numrxqueues", "64")
		run("link", "set", "q0", "up")
		run("link", "set", "q1", "up")
		for i := range 40 {
			run("link", "add", "link", "q0", "name", fmt.Sprintf("vlan%d", i), "type", "macvlan")
			run("link", "set", fmt.Sprintf("vlan%d", i), "up")
		}
		s, err := sample.New(sample.Options{})
		if err != nil {
			b.Error(err)
			return
		}
		defer func() { _ = s.Close() }()
		measure(b, "sampler", func() error { _, err := s.Read(time.Time{}); return err })
		measure(b, "host.Counters", func() error { _, err := host.Root{}.Counters(); return err })
	}()
	<-done
}

// measure times f on the calling thread, as one that the benchmark starts would be of another
// namespace.
func measure(b *testing.B, name string, f func() error) {
	const readings = 200
	var before, after unix.Rusage
	var was, is runtime.MemStats
	if err := f(); err != nil {
		b.Error(err)
		return
	}
	runtime.ReadMemStats(&was)
	_ = unix.Getrusage(unix.RUSAGE_SELF, &before)
	for range readings {
		if err := f(); err != nil {
			b.Error(err)
			return
		}
	}
	_ = unix.Getrusage(unix.RUSAGE_SELF, &after)
	runtime.ReadMemStats(&is)
	cpu := time.Duration(after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano())
	b.ReportMetric(cpu.Seconds()*1e3/readings, name+"-CPU-ms/op")
	b.ReportMetric(float64(is.TotalAlloc-was.TotalAlloc)/1024/readings, name+"-kB/op")
}
