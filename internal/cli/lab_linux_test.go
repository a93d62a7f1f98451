package cli_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/cli"
	"github.com/linerate/linerate/internal/report"
)

// TestLabRun plays a scenario as a user does. On a full link the first finding says so, nothing is
// kept, every setting is back, and the scenario passes. A verdict about this machine's processors
// judges nothing; the scenario is then played again. A whole tune takes more than a minute: that of
// a fault is TestLabTune's, and the matrix judges the other scenarios.
func TestLabRun(t *testing.T) {
	testenv.Need(t, testenv.NetNS, testenv.Long)
	for range 3 {
		d, status := labRun(t, "link-rate")
		if d.Pass && status == 0 {
			return
		}
		if !d.Disturbed && !namesMachine(d.Found) {
			t.Fatalf("exit status %d: %s", status, d.Reason)
		}
	}
	t.Skip("this machine was too disturbed, three times")
}

// labRun plays one scenario and returns its document.
func labRun(t *testing.T, name string) (d report.LabDocument, status int) {
	t.Helper()
	var out, errw bytes.Buffer
	status = cli.Main([]string{"linerate", "lab", "run", "--json", name}, strings.NewReader(""), &out, &errw)
	if errw.Len() > 0 {
		t.Logf("standard error: %s", &errw)
	}
	t.Log(out.String())
	if err := report.Validate(out.Bytes()); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	if err := json.Unmarshal(out.Bytes(), &d); err != nil { // which refuses a second document
		t.Fatal(err)
	}
	return d, status
}
