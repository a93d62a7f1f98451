package worldtest_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/cli"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/reporttest"
)

// TestLabMatrixInGuest plays one case in a guest: the guest boots with the test binary in it, makes
// the world of two cards, plants a fault that is a setting of the whole machine, and returns the
// verdict. The matrix shows whether verdicts are right; this test needs only a verdict from that
// kernel.
func TestLabMatrixInGuest(t *testing.T) {
	testenv.Need(t, testenv.Guest)
	t.Parallel()
	var out, errw bytes.Buffer
	status := cli.Main([]string{"linerate", "lab", "matrix", "--json", "--only", "^guest-conntrack-full$", "--level",
		"gross"}, strings.NewReader(""), &out, &errw)
	if err := reporttest.Validate(out.Bytes()); err != nil {
		t.Fatalf("exit status %d, %v\n%s%s", status, err, &out, &errw)
	}
	var d report.MatrixDocument
	if err := json.Unmarshal(out.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Cases) != 1 {
		t.Fatalf("%d cases, want one\n%s", len(d.Cases), &out)
	}
	c := d.Cases[0]
	if c.Skipped {
		testenv.Missing(t, testenv.Guest, c.Reason)
	}
	if c.Ground != "guest" || c.Kernel == "" || c.Kernel == d.Host.Kernel || len(c.Found) == 0 {
		t.Errorf("exit status %d; want a verdict from the kernel of a guest\n%s%s", status, &out, &errw)
	}
}
