package datagram

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestMain fails the package when a test leaves goroutines or descriptors behind.
func TestMain(m *testing.M) {
	before := openDescriptors()
	code := m.Run()
	if code == 0 {
		if left := leftovers(); left != "" {
			fmt.Fprintf(os.Stderr, "goroutines of this package outlive the tests:\n%s\n", left)
			code = 1
		}
		// The network poller of the runtime keeps three once anything used package net.
		if after := openDescriptors(); before >= 0 && after > before+3 {
			fmt.Fprintf(os.Stderr, "%d descriptors before the tests, %d after\n", before, after)
			code = 1
		}
	}
	os.Exit(code)
}

// leftovers waits for goroutines that are just ending; it gives up after five seconds.
func leftovers() string {
	var found string
	for range 500 {
		buf := make([]byte, 1<<20)
		buf = buf[:runtime.Stack(buf, true)]
		found = ""
		for g := range strings.SplitSeq(string(buf), "\n\n") {
			if strings.Contains(g, "internal/traffic/datagram") && !strings.Contains(g, "TestMain") {
				found += g + "\n\n"
			}
		}
		if found == "" {
			return ""
		}
		time.Sleep(10 * time.Millisecond)
	}
	return found
}

// openDescriptors counts this process's descriptors; -1 where that cannot be seen.
func openDescriptors() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return -1
	}
	return len(entries)
}
