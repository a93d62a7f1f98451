package bpf_test

import (
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/kernel/bpf"
)

// TestSoftIRQs checks that the timer's softirq has run and that its time is less than that of all
// CPUs.
func TestSoftIRQs(t *testing.T) {
	testenv.Need(t, testenv.NetNS)
	began := time.Now()
	w, err := bpf.Watch()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for until := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		c, err := w.Read()
		if err != nil {
			t.Fatal(err)
		}
		runs, nanos, delayed := uint64(0), uint64(0), uint64(0)
		for _, s := range c.SoftIRQs {
			runs, nanos = runs+s.Runs, nanos+s.Nanos
			delayed += s.Delayed
			if s.Delayed > s.Runs+1 || s.DelayNanos > uint64(time.Since(began)) {
				t.Errorf("delays of %+v in %v", s, time.Since(began))
			}
			if s.Name == "" || s.Nanos > uint64(time.Since(began)) {
				t.Errorf("%+v in %v", s, time.Since(began))
			}
		}
		if runs > 20 && nanos > 0 && delayed > 10 {
			if c.Runs > 0 && c.Runs < 2*runs-20 {
				t.Errorf("%d softirqs in %d runs of two programs", runs, c.Runs)
			}
			return
		}
		if time.Now().After(until) {
			t.Fatalf("%d softirqs in a minute: %+v", runs, c)
		}
	}
}

// TestLocks plants contention: threads that truncate one file wait for its lock.
func TestLocks(t *testing.T) {
	testenv.Need(t, testenv.NetNS)
	w, err := bpf.Watch()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if !w.Locks() {
		t.Fatal("this kernel is older than 5.19")
	}
	file, err := os.CreateTemp(t.TempDir(), "contended")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	stop := make(chan struct{})
	var threads sync.WaitGroup
	for range 8 {
		threads.Go(func() {
			block := make([]byte, 1<<20)
			for {
				select {
				case <-stop:
					return
				default:
					if _, err := unix.Pwrite(int(file.Fd()), block, 0); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	defer threads.Wait()
	defer close(stop)
	for until := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		c, err := w.Read()
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range c.Waits {
			if x.Kind == "rwsem write" && x.Waits > 0 && x.Nanos > 0 && len(x.Stack) > 3 {
				return
			}
		}
		if time.Now().After(until) {
			t.Fatalf("eight threads write to one file, and none waits for its lock: %+v", c.Waits)
		}
	}
}

// TestNames asks for every tenth function of the kernel's own list: name and start agree with it.
// An address behind all functions has no name.
func TestNames(t *testing.T) {
	testenv.Need(t, testenv.NetNS)
	n, err := bpf.AskNames()
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	list, err := os.ReadFile("/proc/kallsyms")
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[uint64][]string) // an address may have several
	var order []uint64
	for line := range strings.Lines(string(list)) {
		f := strings.Fields(line)
		// Memory of BPF programs and modules comes and goes.
		if len(f) != 3 || !strings.ContainsAny(f[1], "tTwW") {
			continue
		}
		address, err := strconv.ParseUint(f[0], 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		// The padding in front of a function has its name, and may begin where a section does.
		name, padding := strings.CutPrefix(f[2], "__pfx_")
		if !padding && (len(order) == 0 || order[len(order)-1] != address) {
			order = append(order, address)
		}
		names[address] = append(names[address], name)
	}
	asked := 0
	for i := 0; i < len(order); i += 10 {
		inside := uint64(i % 2) // most functions are longer
		f, ok, err := n.Function(order[i] + inside)
		if err != nil {
			t.Fatal(err)
		}
		if asked++; !ok || f.Start != order[i] || !slices.Contains(names[order[i]], f.Name) || f.Module != "" {
			t.Errorf("%#x is %+v, want %v", order[i], f, names[order[i]])
		}
	}
	if asked < 1000 {
		t.Errorf("only %d functions were asked for, of %d", asked, len(order))
	}
	if f, ok, err := n.Function(^uint64(0)); ok || err != nil {
		t.Errorf("the last address is %+v, %v", f, err)
	}
}

// BenchmarkNames is the processor time of asking for one name, and of preparing to ask.
func BenchmarkNames(b *testing.B) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	took := func(b *testing.B, each func()) {
		var from, to unix.Timespec
		_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &from) // cannot fail
		for range b.N {
			each()
		}
		_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &to)
		b.ReportMetric(float64(to.Nano()-from.Nano())/float64(b.N), "cpu-ns/op")
	}
	b.Run("ask", func(b *testing.B) {
		n, err := bpf.AskNames()
		if err != nil {
			b.Fatal(err)
		}
		defer n.Close()
		address := uint64(1) << 63 // the answer to none is as long a search
		took(b, func() {
			if _, _, err := n.Function(address); err != nil {
				b.Fatal(err)
			}
		})
	})
	b.Run("open", func(b *testing.B) {
		took(b, func() {
			n, err := bpf.AskNames()
			if err != nil {
				b.Fatal(err)
			}
			n.Close()
		})
	})
}
