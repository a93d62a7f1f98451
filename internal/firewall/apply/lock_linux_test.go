package apply

import (
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/base/testenv"
)

// TestLockOfAnother: a process without any privilege that holds the lock of its namespace for ever
// keeps no rules in force.
func TestLockOfAnother(t *testing.T) {
	testenv.Need(t, testenv.NetNS)
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread and its namespace end here
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			var f *os.File
			if f, err = os.Open("/proc/thread-self/ns/net"); err == nil {
				defer f.Close()
				err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
			}
		}
		if err == nil {
			var k *keeper
			if k, err = holdWithin(t.Context(), 20*time.Millisecond, false); err == nil {
				k.release()
			}
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
