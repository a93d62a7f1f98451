package bpf_test

import (
	"os"
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
