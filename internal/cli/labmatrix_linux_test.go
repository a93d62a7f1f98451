package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/cli"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/report"
)

// TestLabMatrixShort plays the short form of the fault matrix: each verdict must be right, unless
// it names this machine's processors, or the case warns that the machine has other work.
func TestLabMatrixShort(t *testing.T) {
	testenv.Need(t, testenv.NetNS, testenv.Long)
	dir := filepath.Join(t.TempDir(), "verdicts")
	d := labMatrix(t, "--short", "--out", dir)
	if len(d.Cases) < 5 || d.Sounds < 1 {
		t.Fatalf("%d cases, %d sound worlds: want at least five and one", len(d.Cases), d.Sounds)
	}
	for _, c := range d.Cases {
		t.Run(c.Scenario, func(t *testing.T) {
			b, err := os.ReadFile(filepath.Join(dir, strings.Trim(c.Scenario+"."+c.Level, ".")+".json"))
			if err != nil {
				t.Fatal(err)
			}
			if err := report.Validate(b); err != nil {
				t.Errorf("kept verdict: %v", err)
			}
			for range 3 {
				switch {
				case c.Skipped:
					t.Fatalf("not played: %s", c.Reason)
				case c.Right:
					return
				case len(c.Warnings) == 0 && (len(c.Found) == 0 || !namesMachine(c.Found[0].Code)):
					t.Fatalf("wrong: %+v", c)
				}
				t.Logf("this machine is busy: %+v", c)
				c = labMatrix(t, "--short", "--only", "^"+c.Scenario+"$").Cases[0]
			}
			t.Skip("this machine was too busy, three times")
		})
	}
}

// namesMachine reports whether a finding is about the machine and not about the world of namespaces
// on it: the world shares its CPUs with every program of the machine. Such a verdict does not judge
// the scenario, so the scenario is played again.
func namesMachine(code string) bool {
	switch evidence.Code(code) {
	case evidence.MeasurementUnreliable, evidence.CPUSaturated, evidence.SoftirqCPUSaturated, evidence.CPUSteal:
		return true
	}
	return false
}

func labMatrix(t *testing.T, args ...string) (d report.MatrixDocument) {
	t.Helper()
	var out, errw bytes.Buffer
	// the cases contain all that the status reports
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

// TestLabMatrixFlags checks that a level that no scenario has, and a pattern that matches no name,
// are usage errors.
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
