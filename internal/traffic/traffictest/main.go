package traffictest

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// patience is how long a test waits for what other goroutines do. It only guards against hanging: a
// minute is far more than anything that works needs, also on a busy machine.
const patience = time.Minute

// Main runs the tests of a package and ends the process. It fails when the tests leave goroutines
// of this module, or more descriptors than before.
//
// It must be called from TestMain directly.
func Main(m *testing.M) {
	before := openDescriptors()
	code := m.Run()
	if code == 0 {
		if left := leftovers(patience); left != "" {
			fmt.Fprintf(os.Stderr, "goroutines outlive the tests:\n%s\n", left)
			code = 1
		}
		if after := descriptorsUpTo(before, patience); after > before {
			fmt.Fprintf(os.Stderr, "%d descriptors before the tests, %d after\n", before, after)
			code = 1
		}
	}
	os.Exit(code)
}

// openDescriptors returns the number of this process's descriptors, including those that the
// runtime's poller opens with the first socket and keeps; 0 on systems that do not show them.
func openDescriptors() int {
	if l, err := net.Listen("tcp", "127.0.0.1:0"); err == nil {
		_ = l.Close() // it has done its work: the poller is there
	}
	entries, _ := os.ReadDir("/proc/self/fd") // missing on systems other than Linux
	return len(entries)
}

// descriptorsUpTo waits until the process has no more than most descriptors, but not longer than
// within, and returns their number.
func descriptorsUpTo(most int, within time.Duration) (n int) {
	for until := time.Now().Add(within); ; time.Sleep(10 * time.Millisecond) {
		if n = openDescriptors(); n <= most || time.Now().After(until) {
			return n
		}
	}
}

// leftovers waits until no goroutine but its own runs code of this module, but not longer than
// within, and returns the stacks of those that do.
func leftovers(within time.Duration) string {
	buf := make([]byte, 1<<20)
	for until := time.Now().Add(within); ; time.Sleep(10 * time.Millisecond) {
		var found []string
		// The first stack is that of the caller.
		for _, stack := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")[1:] {
			if strings.Contains(stack, "github.com/linerate/linerate/") {
				found = append(found, stack)
			}
		}
		if len(found) == 0 || time.Now().After(until) {
			return strings.Join(found, "\n\n")
		}
	}
}
