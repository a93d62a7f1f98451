package record

import (
	"os"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/base/testenv"
)

// TestThreads checks that the kernel's threads for packets come first, that threads which began or
// did not wait are left out, and that the readings of this machine have its threads.
func TestThreads(t *testing.T) {
	testenv.Need(t, testenv.NetNS)
	before := map[string]queued{"1": {"init", 0, 1}, "9": {"ksoftirqd/0", 100, 5}, "20": {"db", 50, 5},
		"21": {"idle", 7, 7}}
	after := map[string]queued{"1": {"init", 2e9, 3}, "9": {"ksoftirqd/0", 100 + 5e8, 9}, "20": {"db", 50 + 1e9, 6},
		"21": {"idle", 7, 7}, "22": {"new", 9e9, 1}}
	var names []string
	for _, w := range waited(before, after, 2) {
		names = append(names, w.Name)
	}
	if got := strings.Join(names, " "); got != "ksoftirqd/0 init db" {
		t.Errorf("waited: %s", got)
	}
	if w := waited(before, after, 2)[0]; w.Seconds != 0.5 || w.Ratio != 0.25 || w.Runs != 4 {
		t.Errorf("%+v", w)
	}
	if all := readThreads(false); all[strings.TrimSpace(self())].name == "" {
		t.Error("this thread is not among those of the machine")
	}
	for _, q := range readThreads(true) {
		if !forPackets(q.name) {
			t.Errorf("an anonymous reading has %q", q.name)
		}
	}
}

// self is the number of this process, whose first thread has the same.
func self() string {
	name, err := os.Readlink("/proc/self")
	if err != nil {
		return ""
	}
	return name
}
