package worldtest_test

import (
	"encoding/json"
	"testing"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/report"
)

// TestLabMatrixInGuest plays one case in a guest: the guest boots with the test binary in it, makes
// the world of two cards, plants a fault that is a setting of the whole machine, and returns the
// verdict. The matrix shows whether verdicts are right; this test needs only a verdict from that
// kernel.
func TestLabMatrixInGuest(t *testing.T) {
	testenv.Need(t, testenv.Guest)
	t.Parallel()
	out, status := play(t, "lab", "matrix", "--json", "--only", "^guest-conntrack-full$", "--level", "gross")
	var d report.MatrixDocument
	if err := json.Unmarshal(out, &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Cases) != 1 {
		t.Fatalf("%d cases, want one\n%s", len(d.Cases), out)
	}
	c := d.Cases[0]
	if c.Skipped {
		testenv.Missing(t, testenv.Guest, c.Reason)
	}
	if c.Ground != "guest" || c.Kernel == "" || c.Kernel == d.Host.Kernel || len(c.Found) == 0 {
		t.Errorf("exit status %d; want a verdict from the kernel of a guest\n%s", status, out)
	}
}
