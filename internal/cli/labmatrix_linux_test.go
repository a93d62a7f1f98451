package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/cli"
	"github.com/linerate/linerate/internal/report"
)

// TestLabMatrixShort plays the short form of the fault matrix: each verdict must be right. As with
// TestLabRun a case that is wrong is played once more before the test fails: what fails by chance
// of the machine fails once, what is wrong fails twice.
func TestLabMatrixShort(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "verdicts")
	d := labMatrix(t, "--short", "--out", dir)
	if len(d.Cases) < 5 || d.Sounds < 1 {
		t.Fatalf("%d cases, %d sound worlds: want five and one at least", len(d.Cases), d.Sounds)
	}
	for _, c := range d.Cases {
		t.Run(c.Scenario, func(t *testing.T) {
			switch {
			case c.Skipped:
				t.Fatalf("not played: %s", c.Reason)
			case !c.Right:
				t.Logf("wrong: %+v", c)
				again := labMatrix(t, "--short", "--only", "^"+c.Scenario+"$")
				if !again.Cases[0].Right {
					t.Errorf("wrong twice: %+v", again.Cases[0])
				}
			}
			b, err := os.ReadFile(filepath.Join(dir, strings.Trim(c.Scenario+"."+c.Level, ".")+".json"))
			if err != nil {
				t.Fatal(err)
			}
			if err := report.Validate(b); err != nil {
				t.Errorf("kept verdict: %v", err)
			}
		})
	}
}

func labMatrix(t *testing.T, args ...string) (d report.MatrixDocument) {
	t.Helper()
	var out, errw bytes.Buffer
	// the cases tell what the status tells
	cli.Main(append([]string{"linerate", "lab", "matrix", "--json"}, args...), strings.NewReader(""), &out, &errw)
	if errw.Len() > 0 {
		t.Logf("standard error: %s", &errw)
	}
	if err := report.Validate(out.Bytes()); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	if err := json.Unmarshal(out.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// The form of the last line is a promise to scripts; a level that no scenario has and names that
// none matches are usage errors.
func TestLabMatrixFlags(t *testing.T) {
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"--level", "heavy"}, 2, "mild plain gross"},
		{[]string{"--ground", "moon"}, 2, "namespace"},
		{[]string{"--only", "("}, 2, "--only"},
		{[]string{"--only", "no-such"}, 2, "--list"},
		{[]string{"--runs", "0"}, 2, "--runs"},
		{[]string{"--list", "--only", "^policer$"}, 0, "A policer drops packets above its rate"},
		{[]string{"--list", "--only", "^policer$", "--json"}, 0, `"schema":"linerate.scenarios/1"`},
	} {
		var out, errw bytes.Buffer
		status := cli.Main(append([]string{"linerate", "lab", "matrix"}, c.args...), strings.NewReader(""), &out, &errw)
		if status != c.status || !strings.Contains(out.String()+errw.String(), c.want) {
			t.Errorf("%v: status %d, %s%s", c.args, status, &out, &errw)
		}
	}
}
