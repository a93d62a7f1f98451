package report_test

import (
	"bytes"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/experiment/tune"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/reporttest"
)

var update = flag.Bool("update", false, "rewrite golden and generated files")

// golden compares with a file below testdata, or writes it with -update.
func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (run with -update to write it)", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-want +got), -update accepts it:\n%s", file, diff)
	}
}

// TestDocuments checks that every document fits its schema, is one line in a stream, and equals its
// golden JSON file. Package text tests its text.
func TestDocuments(t *testing.T) {
	for _, d := range reporttest.Documents(t) {
		t.Run(d.Name, func(t *testing.T) {
			var line, indented bytes.Buffer
			if err := report.Encode(&line, d.Doc); err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(line.String(), "\n"); n != 1 || !strings.HasSuffix(line.String(), "\n") {
				t.Errorf("%d line ends in one document", n)
			}
			if err := reporttest.Validate(line.Bytes()); err != nil {
				t.Error(err)
			}
			if err := report.EncodeIndent(&indented, d.Doc); err != nil {
				t.Fatal(err)
			}
			golden(t, "testdata/"+d.Name+".json", indented.Bytes())
		})
	}
}

// TestEncodeRefuses checks that a number which JSON cannot carry is an error, and that nothing is
// written instead of half a document.
func TestEncodeRefuses(t *testing.T) {
	var b bytes.Buffer
	doc := report.NewMeasure(reporttest.Envelope(), "x", reporttest.Tests())
	doc.Tests[2].ThroughputBitsPerSec = math.NaN()
	if err := report.Encode(&b, doc); err == nil || b.Len() > 0 {
		t.Errorf("error %v, wrote %d bytes", err, b.Len())
	}
}

// TestTuneFigures checks that the figure after comes from the last confirmation alone.
func TestTuneFigures(t *testing.T) {
	r := reporttest.Run()
	first := report.NewTune(reporttest.Envelope(), r)
	if first.After == nil || math.Abs(first.After.ThroughputBitsPerSec/905e6-1) > 0.01 || first.After.Segments != 6 {
		t.Fatalf("after: %+v", first.After)
	}
	for i := range 6 {
		r.Outcome.Segments = append(r.Outcome.Segments,
			tune.Segment{Phase: tune.PhaseAblation, Pair: i, Arm: "B", Objective: 1},
			tune.Segment{Phase: tune.PhaseConfirmation, Trial: 1, Pair: i, Arm: "A", Objective: 1},
			tune.Segment{Phase: tune.PhaseConfirmation, Trial: 1, Pair: i, Arm: "B", Objective: 700e6})
	}
	if again := report.NewTune(reporttest.Envelope(), r); again.After.ThroughputBitsPerSec != 700e6 ||
		again.After.Segments != 6 {
		t.Errorf("after a second confirmation: %+v", again.After)
	}
	if d := report.NewTune(reporttest.Envelope(),
		report.TuneRun{Goal: "latency"}); d.Unit != "transactions_per_second" || d.State != tune.StateUndone {
		t.Errorf("without an outcome: %+v", d)
	}
}

// TestValidate checks what a schema must refuse.
func TestValidate(t *testing.T) {
	var b bytes.Buffer
	if err := report.Encode(&b, report.NewHistory(reporttest.Envelope(), reporttest.Changes())); err != nil {
		t.Fatal(err)
	}
	good := b.String()
	for _, c := range []struct{ name, old, new, want string }{
		{"not JSON", `{"schema"`, `{schema`, "read document"},
		{"no such schema", "linerate.history/1", "linerate.history/9", "no schema"},
		{"a key given twice", `"changes":`, `"linerate":"x","changes":`, "key given twice"},
		{"an unknown key", `"changes":`, `"extra":1,"changes":`, "additional properties 'extra'"},
		{"a promised key is missing", `"linerate":"v0.1.0",`, ``, "missing property 'linerate'"},
		{"the wrong type", `"persisted":false`, `"persisted":"no"`, "got string, want boolean"},
		{"null is not absent", `"persisted":false`, `"persisted":null`, "got null, want boolean"},
		{"a state that does not exist", `"state":"committed"`, `"state":"perhaps"`, "/changes/0/state"},
		{"not a time", `"time":"2026-11-20T12:00:00Z","host"`, `"time":"noon","host"`, "valid date-time"},
		{"an object instead of an array", `"changes":[`, `"changes":{"x":[`, ""},
		{"something after it", "}\n", "}\n{}", "more than one value"},
		{"a number beyond all", `"persisted":false`, `"persisted":1e999`, "got number, want boolean"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bad := strings.Replace(good, c.old, c.new, 1)
			if bad == good {
				t.Fatalf("%q is not in the document", c.old)
			}
			if err := reporttest.Validate([]byte(bad)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

// TestDryRunState checks that the state of a change in a dry run fits the schema too.
func TestDryRunState(t *testing.T) {
	var b bytes.Buffer
	if err := report.Encode(&b,
		report.NewHistory(reporttest.Envelope(),
			[]journal.Change{{Knob: "link:eth0/mtu", State: "dry-run"}})); err != nil {
		t.Fatal(err)
	}
	if err := reporttest.Validate(b.Bytes()); err != nil {
		t.Error(err)
	}
}
