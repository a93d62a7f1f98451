package sys

import (
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestHoldProcessor: a goroutine that holds its processor is not asked to make way, however long it
// runs; one that makes way is, and its neighbours are served.
func TestHoldProcessor(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	spin := func(hold bool) (slept int64) {
		done := make(chan int64)
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
			for end := time.Now().Add(200 * time.Millisecond); time.Now().Before(end); {
				runtime.KeepAlive(time.Now())
			}
			if hold {
				ReleaseProcessor()
			}
			_ = unix.Getrusage(unix.RUSAGE_THREAD, &after)
			done <- int64(after.Nvcsw - before.Nvcsw)
		}()
		return <-done
	}
	t.Logf("note: without: %d", spin(false))
	// A page fault may sleep: one, and not one in each 10 ms.
	if n := spin(true); n > 2 {
		t.Errorf("a thread that held its processor slept %d times in 200 ms", n)
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
