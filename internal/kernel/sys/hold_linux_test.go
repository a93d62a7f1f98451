package sys

import (
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// longPause is a gap between two readings of the clock that only a pause of the thread makes: it is
// longer than what the runtime takes to pass a processor on.
const longPause = 50 * time.Millisecond

// TestHoldProcessor: a goroutine that holds its processor is not asked to make way, however long it
// runs; one that makes way is, and its neighbours are served.
func TestHoldProcessor(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	spin := func(hold bool) (slept, paused int64) {
		done := make(chan [2]int64)
		go func() {
			runtime.LockOSThread() // never unlocked: the thread ends with its mask
			if err := HoldThread(); err != nil {
				t.Error(err)
			}
			var before, after unix.Rusage
			_ = unix.Getrusage(unix.RUSAGE_THREAD, &before) // cannot fail
			if hold {
				HoldProcessor()
			}
			// 200 ms of running, however long that takes: the runtime asks it 20 times.
			pauses, last := int64(0), time.Now()
			for ran := time.Duration(0); ran < 200*time.Millisecond; {
				now := time.Now()
				gap := now.Sub(last)
				if gap > longPause {
					pauses++
				}
				ran, last = ran+min(gap, time.Millisecond), now
			}
			if hold {
				ReleaseProcessor()
			}
			_ = unix.Getrusage(unix.RUSAGE_THREAD, &after)
			done <- [2]int64{int64(after.Nvcsw - before.Nvcsw), pauses}
		}()
		got := <-done
		return got[0], got[1]
	}
	slept, _ := spin(false)
	t.Logf("note: without: %d", slept)
	// A page fault may sleep: one, and not one in each 10 ms. So does a thread whose process is paused
	// by a signal or a control group, once for each pause.
	if slept, paused := spin(true); slept > 2+paused {
		t.Errorf("a thread that held its processor slept %d times in 200 ms, and was paused %d times", slept, paused)
	}
}

// TestMakeWay: the world can stop while a goroutine holds its processor and makes way.
func TestMakeWay(t *testing.T) {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if err := HoldThread(); err != nil {
			t.Error(err)
		}
		HoldProcessor()
		defer ReleaseProcessor()
		for open := true; open; {
			for end := time.Now().Add(time.Millisecond); time.Now().Before(end); {
				runtime.KeepAlive(time.Now())
			}
			MakeWay()
			select {
			case <-stop:
				open = false
			default:
			}
		}
	}()
	for range 5 {
		runtime.GC()
	}
	close(stop)
	<-done
}
