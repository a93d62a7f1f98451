package daemon

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestTrim: what was only read leaves this process, and comes back when it is used.
func TestTrim(t *testing.T) {
	file := func() int {
		b, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			if f := strings.Fields(line); len(f) > 1 && f[0] == "RssFile:" {
				n, _ := strconv.Atoi(f[1])
				return n
			}
		}
		t.Fatal("no RssFile in /proc/self/status")
		return 0
	}
	// The kernel may have taken them already: a host without free memory, or one that gives up what
	// is cold (DAMON).
	if err := advise(unix.MADV_POPULATE_READ); err != nil && !errors.Is(err, unix.EINVAL) { // Linux before 5.14
		t.Fatal(err)
	}
	before := file()
	if err := trim(); err != nil {
		t.Fatal(err)
	}
	after := file()
	if t.Logf("%d kB of files before, %d after", before, after); after >= before*3/4 {
		t.Errorf("%d kB of files before, %d after", before, after)
	}
}
