package journal

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestLinksInWhatIsNot: a user may hide a namespace that is mounted behind anything else, as a pipe
// without a writer, or a link to a device that acts when it is opened.
func TestLinksInWhatIsNot(t *testing.T) {
	here, err := os.Readlink("/proc/thread-self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked
		_, err := linksIn(here, pipe)
		done <- err
	}()
	if err := <-done; err == nil || ended(err) {
		t.Errorf("a pipe in the place of %s: %v", here, err)
	}
}
