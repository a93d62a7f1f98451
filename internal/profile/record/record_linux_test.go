package record_test

import (
	"context"
	"errors"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/kernel/perf"
	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/profile"
	"github.com/linerate/linerate/internal/profile/record"
)

// datagrams sends datagrams over loopback until stop is closed, and returns how many.
func datagrams(t testing.TB, stop <-chan struct{}) uint64 {
	in, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Error(err)
		return 0
	}
	defer in.Close()
	out, err := net.Dial("udp", in.LocalAddr().String())
	if err != nil {
		t.Error(err)
		return 0
	}
	defer out.Close()
	payload := make([]byte, 100)
	n := uint64(0)
	for {
		select {
		case <-stop:
			return n
		default:
			if _, err := out.Write(payload); err == nil {
				n++
			}
		}
	}
}

// beside records while a thread of this process works, for longer and longer until the thread had a
// CPU for a quarter of a second: a busy host may give it little of a second. It also returns the
// number of slices that were planned.
func beside(t *testing.T, o record.Options, work func(stop <-chan struct{})) (p *profile.Profile, planned int) {
	t.Helper()
	recorder, err := record.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := recorder.Named(); err != nil {
		t.Fatal(err)
	}
	for d := time.Second; ; d *= 2 {
		thread, stop, stopped := make(chan int), make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			thread <- sys.ThreadID()
			work(stop)
		}()
		id := <-thread
		before, _ := sys.ThreadTime(id)
		p, err = recorder.Run(t.Context(), d)
		after, _ := sys.ThreadTime(id)
		close(stop)
		<-stopped
		if err != nil {
			t.Fatal(err)
		}
		planned = min(60, max(20, int(d/(time.Second/4))))
		if after-before >= time.Second/4 || d > time.Hour/4 || t.Failed() {
			return p, planned
		}
	}
}

// TestRun samples this host while it sends datagrams: the tables add up, the functions of UDP are
// there, and the packets are counted.
func TestRun(t *testing.T) {
	testenv.Need(t, testenv.NetNS)
	var n uint64
	p, planned := beside(t, record.Options{Event: "cpu-clock", Rate: 997, Interfaces: []string{"lo"}},
		func(stop <-chan struct{}) { n = datagrams(t, stop) })
	// How many of the slices end apart depends on when this thread gets a CPU. Samples may be lost
	// only where it missed an end: the rings hold two seconds.
	if p.Event != "cpu-clock" || !p.Timer || p.Slices < 1 || p.Slices > planned || p.Busy == 0 || p.Busy > p.Samples ||
		p.Lost > 0 && p.Slices == planned {
		t.Errorf("%s, %d slices, %d busy of %d samples, %d lost", p.Event, p.Slices, p.Busy, p.Samples, p.Lost)
	}
	if float64(p.Unresolved) > 0.005*float64(p.Kernel) {
		t.Errorf("%d of %d kernel samples have no name", p.Unresolved, p.Kernel)
	}
	others := uint64(p.Duration * 1e7) // more than other programs can send over lo, and less than since boot
	if p.Packets == nil || p.PacketsTotal == nil || p.Packets.Received == 0 || p.Packets.Sent > n+others {
		t.Errorf("packets %+v of %d", p.Packets, n)
	}
	for _, stage := range []string{"UDP", "IP tx"} {
		if r := p.StageRow(stage); r == nil || r.PerPacket == nil || *r.PerPacket <= 0 {
			t.Errorf("no price of %s: %+v", stage, r)
		}
	}
	if p.Cost == nil || p.Cost.OwnSeconds <= 0 || len(p.Events) != len(record.Events()) {
		t.Errorf("cost %+v, %d events", p.Cost, len(p.Events))
	}
}

// spin computes until stop is closed.
//
//go:noinline
func spin(stop <-chan struct{}) (x uint64) {
	for x = 1; ; {
		select {
		case <-stop:
			return x
		default:
			for range 100_000 {
				x ^= x << 13
				x ^= x >> 7
			}
		}
	}
}

// TestPrograms checks that a function of this program is named, with its caller, and that the time
// of the process stays whole.
func TestPrograms(t *testing.T) {
	testenv.Need(t, testenv.NetNS)
	p, _ := beside(t, record.Options{Event: "cpu-clock", Rate: 499, Programs: true},
		func(stop <-chan struct{}) { spin(stop) })
	for _, s := range p.Stacks {
		leaf, caller := p.Functions[s.Functions[0]], p.Functions[s.Functions[min(1, len(s.Functions)-1)]]
		if strings.HasSuffix(leaf.Name, "record_test.spin") && strings.Contains(caller.Name, "TestPrograms.func") {
			if leaf.Stage != profile.StageUser || s.Context != profile.ContextUser || leaf.Module == "" {
				t.Errorf("%+v in %+v", leaf, s)
			}
			return
		}
	}
	t.Errorf("no sample of spin and its caller in %d of this machine: %+v", p.Busy, p.Functions[:min(8, len(p.Functions))])
}

// TestRunEndsEarly checks that an interruption keeps what was sampled.
func TestRunEndsEarly(t *testing.T) {
	testenv.Need(t, testenv.NetNS)
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	p, err := record.Run(ctx, record.Options{Duration: time.Hour, Event: "cpu-clock", CPUs: []int{0}})
	if err != nil {
		t.Fatal(err)
	}
	if p.Slices != 1 || p.Duration <= 0 || len(p.CPUs) != 1 {
		t.Errorf("%d slices, %v s, cpus %v", p.Slices, p.Duration, p.CPUs)
	}
}

// TestRefusals checks the three answers: an unknown event, one that this machine lacks, and what
// may not be known. An event that works is none of them.
func TestRefusals(t *testing.T) {
	testenv.Need(t, testenv.NetNS)
	if _, err := record.Run(context.Background(), record.Options{Duration: time.Second, Event: "x"}); !errors.Is(err,
		record.ErrNoEvent) {
		t.Errorf("unknown event: %v", err)
	}
	for _, a := range record.Ask(0) {
		if a.Answer != perf.NotSupported {
			continue
		}
		_, err := record.Run(context.Background(), record.Options{Duration: time.Second, Event: a.Event.Name})
		var refused *record.RefusedError
		if !errors.As(err, &refused) || !errors.Is(err, perf.ErrNotSupported) || refused.Hint() == "" {
			t.Errorf("%s: %v", a.Event.Name, err)
		}
	}
}

// BenchmarkAccuracy plants a program that computes inside the kernel for a known part of its time
// and outside for the rest, and reports in how many runs the intervals hold the true shares. Run it
// with -benchtime=100x; each run takes a second.
func BenchmarkAccuracy(b *testing.B) {
	for name, share := range map[string]float64{"10": 0.1, "30": 0.3, "60": 0.6} {
		b.Run(name, func(b *testing.B) { accuracy(b, share) })
	}
}

func accuracy(b *testing.B, share float64) {
	var kernelHeld, userHeld, kernelError, userError float64
	for range b.N {
		recorder, err := record.Open(record.Options{Event: "cpu-clock", Rate: 499})
		if err != nil {
			b.Fatal(err)
		}
		child := startPlanted(b, share)
		before, began := idle(b), perf.Now()
		p, err := recorder.Run(context.Background(), time.Second)
		ended, after := perf.Now(), idle(b)
		if err != nil {
			b.Fatal(err)
		}
		// The samples began a little after the call and ended a little before its return.
		length := uint64(p.Duration * 1e9)
		began += (ended - began - length) / 2
		got := child.finish(b, began, began+length)
		busy := float64(len(p.CPUs))*p.Duration - (after - before)
		kernel, user := got.kernel.Seconds()/busy, got.user.Seconds()/busy
		for _, f := range p.Functions {
			switch {
			case strings.HasSuffix(f.Name, plantedLoop):
				if f.ShareLow <= kernel && kernel <= f.ShareHigh {
					kernelHeld++
				}
				kernelError += f.Share/kernel - 1
			case f.Stage == profile.StageUser && f.Name == plantedName:
				if f.ShareLow <= user && user <= f.ShareHigh {
					userHeld++
				}
				userError += f.Share/user - 1
			}
		}

	}
	b.ReportMetric(kernelHeld/float64(b.N), "kernel-held/run")
	b.ReportMetric(userHeld/float64(b.N), "user-held/run")
	b.ReportMetric(100*kernelError/float64(b.N), "kernel-error-%")
	b.ReportMetric(100*userError/float64(b.N), "user-error-%")
}
