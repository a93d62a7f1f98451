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

// TestLabRun plays a scenario in which there is nothing to tune as a user does: nothing is kept, and
// the exit status, the reason and the document agree on whether the first finding is the expected
// one. Which finding comes first depends on the machine; the matrix judges that, and TestLabTune
// tunes a fault.
func TestLabRun(t *testing.T) {
	testenv.Need(t, testenv.NetNS, testenv.Long)
	d, status := labRun(t, "link-rate")
	right := d.Found == d.Expected
	if d.Expected != "link-rate-reached" || d.Skipped || d.Healthy == nil || d.Before == nil || len(d.Kept) > 0 ||
		d.Pass != right || (d.Reason == "") != right || (status == 0) != right {
		t.Errorf("exit status %d", status)
	}
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
