package worldtest_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/report"
)

// TestLabRun plays the world of the demo as a user does: plant the fault, tune, undo, compare.
//
// A real machine is part of that world, so the test checks only what does not depend on its speed:
// a change that repairs the fault is kept, every setting is restored, and the exit status agrees
// with the document. The scenario is played again only when the program itself refused to judge it.
func TestLabRun(t *testing.T) {
	testenv.Need(t, testenv.NetNS, testenv.Long)
	t.Parallel()
	const refused = 3
	for {
		d, status := labRun(t, "receive-window")
		if status == refused && d.Disturbed && mayRepeat(t) {
			t.Logf("not judged: %s", d.Reason)
			continue
		}
		if d.Skipped || (status == 0) != d.Pass || strings.Contains(d.Reason, "after undo") {
			t.Fatalf("exit status %d: %s", status, d.Reason)
		}
		if !slices.Contains(d.Kept, "far sysctl:net.ipv4.tcp_rmem") {
			t.Fatalf("the fault was not repaired: kept %v: %s", d.Kept, d.Reason)
		}
		return
	}
}

// labRun plays one scenario and returns its document.
func labRun(t *testing.T, name string) (d report.LabDocument, status int) {
	t.Helper()
	out, status := play(t, "lab", "run", "--json", name)
	t.Log(string(out))
	if err := json.Unmarshal(out, &d); err != nil { // which refuses a second document
		t.Fatal(err)
	}
	return d, status
}
