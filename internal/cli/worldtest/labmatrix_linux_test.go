package worldtest_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/cli"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/reporttest"
)

// TestLabMatrixShort plays the short form of the fault matrix and judges each verdict, apart from
// what a verdict says about the machine itself: a world in namespaces shares its CPUs, so on a busy
// machine findings about CPUs are right and come first. A case whose bench warned is played again,
// because that verdict is not certain, as long as there is time.
func TestLabMatrixShort(t *testing.T) {
	testenv.Need(t, testenv.NetNS, testenv.Long)
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "verdicts")
	d := labMatrix(t, "--short", "--out", dir)
	if len(d.Cases) < 5 || d.Sounds < 1 {
		t.Fatalf("%d cases, %d sound worlds: want at least five and one", len(d.Cases), d.Sounds)
	}
	for _, c := range d.Cases {
		t.Run(c.Scenario, func(t *testing.T) {
			for !c.Skipped && !rightBesideMachine(c) && len(c.Warnings) > 0 && mayRepeat(t) {
				t.Logf("the bench warned: %+v", c)
				c = labMatrix(t, "--short", "--only", "^"+c.Scenario+"$", "--out", dir).Cases[0]
			}
			if c.Skipped || c.Reason != "" {
				t.Fatalf("no verdict: %s", c.Reason)
			}
			b, err := os.ReadFile(filepath.Join(dir, strings.Trim(c.Scenario+"."+c.Level, ".")+".json"))
			if err != nil {
				t.Fatal(err)
			}
			if err := reporttest.Validate(b); err != nil {
				t.Errorf("kept verdict: %v", err)
			}
			if !rightBesideMachine(c) {
				t.Errorf("wrong: %+v", c)
			}
		})
	}
}

// rightBesideMachine reports whether a verdict is right without its findings about the machine: the
// planted fault then comes first, and a sound world has no warning.
func rightBesideMachine(c report.MatrixCase) bool {
	if c.Right {
		return true
	}
	var found []string
	warned := false
	for _, f := range c.Found {
		if !namesMachine(f.Code) {
			found = append(found, f.Code)
			warned = warned || f.Severity == string(evidence.Warning) || f.Severity == string(evidence.Critical)
		}
	}
	if c.Sound() {
		return !warned
	}
	return len(found) > 0 && slices.Contains(c.Expected, found[0])
}

// namesMachine reports whether a finding is about the machine and not about the world of namespaces
// on it: the world shares its CPUs with every program of the machine.
func namesMachine(code string) bool {
	switch evidence.Code(code) {
	case evidence.MeasurementUnreliable, evidence.CPUSaturated, evidence.SoftirqCPUSaturated, evidence.CPUSteal:
		return true
	}
	return false
}

// TestRightBesideMachine shows that the judgement of busy machines still refuses wrong verdicts.
func TestRightBesideMachine(t *testing.T) {
	finding := func(code string) report.MatrixFinding { return report.MatrixFinding{Code: code, Severity: "warning"} }
	for _, c := range []struct {
		level string
		found []report.MatrixFinding
		want  bool
	}{
		{"gross", []report.MatrixFinding{finding("cpu-saturated"), finding("policer")}, true},
		{"gross", []report.MatrixFinding{finding("cpu-saturated"), finding("path-loss"), finding("policer")}, false},
		{"gross", []report.MatrixFinding{finding("cpu-saturated")}, false},
		{"gross", nil, false},
		{"", []report.MatrixFinding{finding("cpu-saturated")}, true},
		{"", []report.MatrixFinding{finding("cpu-saturated"), finding("policer")}, false},
	} {
		m := report.MatrixCase{Level: c.level, Expected: []string{"policer"}, Found: c.found}
		if got := rightBesideMachine(m); got != c.want {
			t.Errorf("level %q, found %v: %v, want %v", c.level, c.found, got, c.want)
		}
	}
}

func labMatrix(t *testing.T, args ...string) (d report.MatrixDocument) {
	t.Helper()
	// the cases contain all that the status reports
	out, _ := play(t, append([]string{"lab", "matrix", "--json"}, args...)...)
	if err := json.Unmarshal(out, &d); err != nil {
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
