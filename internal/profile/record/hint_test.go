package record

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/kernel/perf"
)

// TestHint checks that a hint is no step that has failed already: root need not become root, and an
// event that the kernel lacks is not proposed.
func TestHint(t *testing.T) {
	cycles, clock := perf.Events()[0], perf.CPUClock()
	for _, c := range []struct {
		answers    []perf.Probed
		root       bool
		want, none string
	}{
		{[]perf.Probed{{Event: cycles, Answer: perf.NotSupported}, {Event: clock, Answer: perf.NotSupported}}, true,
			"CONFIG_PERF_EVENTS", "--event"},
		{[]perf.Probed{{Event: cycles, Answer: perf.NotSupported}, {Event: clock, Answer: perf.NotPermitted}}, false,
			"run it as root", ""},
		{[]perf.Probed{{Event: cycles, Answer: perf.NotPermitted}, {Event: clock, Answer: perf.NotPermitted}}, true,
			"container", "as root"},
	} {
		_, err := choose(c.answers, "")
		refused, ok := err.(*RefusedError)
		if !ok {
			t.Fatalf("%v: %v", c.answers, err)
		}
		if got := refused.hint(c.root); !strings.Contains(got, c.want) || c.none != "" && strings.Contains(got, c.none) {
			t.Errorf("%v: %q, want %q", c.answers, got, c.want)
		}
	}
	_, err := choose([]perf.Probed{{Event: cycles, Answer: perf.NotSupported}}, "cycles")
	if refused, ok := err.(*RefusedError); !ok || !strings.Contains(refused.hint(true), "--event cpu-clock") {
		t.Errorf("%v", err)
	}
	if refused := (&RefusedError{kind: fs.ErrPermission}); refused.Hint() == "" {
		t.Error("no hint")
	}
}
