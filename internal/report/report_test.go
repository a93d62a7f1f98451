package report_test

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/journal"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/tune"
)

var update = flag.Bool("update", false, "write golden and generated files anew")

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

// TestMain fixes the zone in which people's times are shown, so that golden files hold everywhere.
func TestMain(m *testing.M) {
	time.Local = time.UTC
	os.Exit(m.Run())
}

// sample is one document with its text.
type sample struct {
	name string
	doc  any
	text func(io.Writer, report.Style) error
}

func samples(t *testing.T) []sample {
	t.Helper()
	inspect := report.NewInspect(envelope(), sampleSnapshot())
	inspect.Ceilings = sampleCeilings() // how they are derived is tested where it is done
	measure := report.NewMeasure(envelope(), "192.0.2.7:7070", sampleTests())
	history := report.NewHistory(envelope(), sampleChanges())
	none := report.NewHistory(envelope(), nil)
	undo := report.NewUndo(envelope(), sampleOutcomes())
	entry, reserved := sampleEntries()
	explain, explainReserved := report.NewExplain(envelope(), entry), report.NewExplain(envelope(), reserved)
	one := report.NewKnobs(envelope(), sampleKnobs()[:1], nil)
	oneHere := report.NewKnobs(envelope(), sampleKnobs()[:1], sampleNow())
	severalHere := report.NewKnobs(envelope(), sampleKnobs(), sampleNow())
	several := report.NewKnobs(envelope(), sampleKnobs(), nil)
	scenarios := report.NewLabList(envelope(), []report.LabEntry{
		{Scenario: "receive-window", Title: "The receiver's buffers are those of an old default", About: "A long story.", Expected: "receive-window-limited", Tunable: true, Knobs: []string{"sysctl:net.ipv4.tcp_rmem"}},
		{Scenario: "path-loss", Title: "The path loses packets and the sender's congestion control takes each loss for congestion", About: "Another.", Expected: "path-loss", Tunable: true},
		{Scenario: "healthy", Title: "Nothing is wrong", About: "No fault.", Expected: "healthy"},
	})
	matrix := report.NewMatrix(envelope(), sampleMatrix())
	tuned := report.NewTuneMatrix(envelope(), sampleTuneMatrix())
	serve := report.NewServe(envelope())
	serve.Listen, serve.Port, serve.Key, serve.Command = "[::]:7070", 7070, "HHEV-S9H6-89S6-T420-9RK6-RFAV-GW1Z", "linerate measure THIS-HOST:7070 --key HHEV-S9H6-89S6-T420-9RK6-RFAV-GW1Z"
	serve.Accepting = []report.ServeDialect{{Dialect: "iperf3", Listen: "[::]:5201"}}
	all := []sample{
		{"serve", serve, nil},
		{"export", sampleExport(t), nil},
		{"boot-recovery", sampleBootRecovery(), nil},
		{"inspect", inspect, func(w io.Writer, s report.Style) error { return report.InspectText(w, inspect, s) }},
		{"measure", measure, func(w io.Writer, s report.Style) error { return report.MeasureText(w, measure, s) }},
		{"diagnose", sampleDiagnosis(), func(w io.Writer, s report.Style) error { return report.DiagnoseText(w, sampleDiagnosis(), s, false) }},
		{"diagnose-verbose", sampleDiagnosis(), func(w io.Writer, s report.Style) error { return report.DiagnoseText(w, sampleDiagnosis(), s, true) }},
		{"diagnose-passive", samplePassive(), func(w io.Writer, s report.Style) error { return report.DiagnoseText(w, samplePassive(), s, false) }},
		{"diagnose-cpu", sampleCPU(), func(w io.Writer, s report.Style) error { return report.CPUText(w, sampleCPU(), s) }},
		{"history", history, func(w io.Writer, s report.Style) error { return report.HistoryText(w, history, s) }},
		{"history-empty", none, func(w io.Writer, s report.Style) error { return report.HistoryText(w, none, s) }},
		{"undo", undo, func(w io.Writer, s report.Style) error { return report.UndoText(w, undo, s) }},
		{"explain", explain, func(w io.Writer, s report.Style) error { return report.ExplainText(w, explain, s) }},
		{"explain-reserved", explainReserved, func(w io.Writer, s report.Style) error { return report.ExplainText(w, explainReserved, s) }},
		{"knob", one, func(w io.Writer, s report.Style) error { return report.KnobsText(w, one, s) }},
		{"knob-here", oneHere, func(w io.Writer, s report.Style) error { return report.KnobsText(w, oneHere, s) }},
		{"knobs-here", severalHere, func(w io.Writer, s report.Style) error { return report.KnobsText(w, severalHere, s) }},
		{"knobs", several, func(w io.Writer, s report.Style) error { return report.KnobsText(w, several, s) }},
		{"lab-list", scenarios, func(w io.Writer, s report.Style) error { return report.LabListText(w, scenarios, s) }},
		{"lab-matrix", matrix, func(w io.Writer, s report.Style) error { return report.MatrixText(w, matrix, s) }},
		{"lab-tune", tuned, func(w io.Writer, s report.Style) error { return report.TuneMatrixText(w, tuned, s) }},
		{"error", report.NewError("connect 192.0.2.7:7070: connection refused", "run `linerate serve` on the other host", 12), nil},
	}
	all = append(all, persistSamples()...)
	for name, run := range map[string]report.TuneRun{"tune": sampleRun(), "tune-nothing": nothingRun(), "tune-latency": latencyRun(), "tune-hostile": hostileRun()} {
		doc := report.NewTune(envelope(), run)
		all = append(all, sample{name, doc, func(w io.Writer, s report.Style) error { return report.TuneText(w, doc, s) }})
	}
	for name, doc := range sampleReports(t) {
		all = append(all, sample{name, doc, func(w io.Writer, s report.Style) error { return report.ReportText(w, doc, s) }})
	}
	list, empty := sampleRunList(t), report.NewRuns(envelope(), "/var/lib/linerate/runs", nil)
	all = append(all, sample{"runs", list, func(w io.Writer, s report.Style) error { return report.RunsText(w, list, s) }},
		sample{"runs-empty", empty, func(w io.Writer, s report.Style) error { return report.RunsText(w, empty, s) }})
	for name, run := range sampleRuns() {
		doc := report.NewMeasure(envelope(), "192.0.2.7:7070", []traffic.Result{run})
		all = append(all, sample{"measure-" + name, doc, func(w io.Writer, s report.Style) error { return report.MeasureText(w, doc, s) }})
	}
	for _, doc := range sampleLabs() {
		all = append(all, sample{"lab-" + doc.Scenario, doc, func(w io.Writer, s report.Style) error {
			if err := report.LabHeader(w, s); err != nil {
				return err
			}
			return report.LabText(w, doc, s)
		}})
	}
	return all
}

// TestDocuments: every document fits its schema, is one line in a stream, and has its golden files, JSON and text.
func TestDocuments(t *testing.T) {
	for _, s := range samples(t) {
		t.Run(s.name, func(t *testing.T) {
			var line, indented bytes.Buffer
			if err := report.Encode(&line, s.doc); err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(line.String(), "\n"); n != 1 || !strings.HasSuffix(line.String(), "\n") {
				t.Errorf("%d line ends in one document", n)
			}
			if err := report.Validate(line.Bytes()); err != nil {
				t.Error(err)
			}
			if err := report.EncodeIndent(&indented, s.doc); err != nil {
				t.Fatal(err)
			}
			golden(t, "testdata/"+s.name+".json", indented.Bytes())
			if s.text == nil {
				return
			}
			var plain bytes.Buffer
			if err := s.text(&plain, report.Style{}); err != nil {
				t.Fatal(err)
			}
			golden(t, "testdata/"+s.name+".txt", plain.Bytes())
			checkText(t, plain.String())

			var coloured bytes.Buffer
			if err := s.text(&coloured, report.Style{Colour: true}); err != nil {
				t.Fatal(err)
			}
			if got := escapes.ReplaceAllString(coloured.String(), ""); got != plain.String() {
				t.Errorf("colour changes more than colour (-plain +coloured):\n%s", cmp.Diff(plain.String(), got))
			}
			counter := &brokenWriter{left: math.MaxInt}
			if err := s.text(counter, report.Style{}); err != nil {
				t.Fatal(err)
			}
			for n := range math.MaxInt - counter.left {
				if err := s.text(&brokenWriter{left: n}, report.Style{}); !errors.Is(err, errBroken) {
					t.Fatalf("a writer that breaks after %d writes gives %v", n, err)
				}
			}
		})
	}
}

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*m")

// checkText holds what all text must be.
func checkText(t *testing.T, text string) {
	t.Helper()
	if strings.Contains(text, "\x1b") {
		t.Error("plain text has escapes")
	}
	for i, line := range strings.Split(text, "\n") {
		if strings.TrimRight(line, " ") != line {
			t.Errorf("line %d ends in blanks: %q", i+1, line)
		}
	}
	if bad := regexp.MustCompile(`NaN|Inf|%!|<nil>|0x[0-9a-f]{6}`).FindString(text); bad != "" {
		t.Errorf("text shows %q", bad)
	}
}

var errBroken = errors.New("broken pipe")

type brokenWriter struct{ left int }

func (b *brokenWriter) Write(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errBroken
	}
	b.left--
	return len(p), nil
}

// TestGeneratedSchemas keeps docs/schema current; -update writes it.
func TestGeneratedSchemas(t *testing.T) {
	const dir = "../../docs/schema"
	files, err := report.SchemaFiles()
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		golden(t, filepath.Join(dir, name), content)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if _, ours := files[e.Name()]; !ours && strings.HasSuffix(e.Name(), ".json") {
			t.Errorf("%s/%s belongs to no document", dir, e.Name())
		}
	}
}

// TestEncodeRefuses: a number that JSON cannot carry is an error and writes nothing, instead of half a document.
func TestEncodeRefuses(t *testing.T) {
	var b bytes.Buffer
	doc := report.NewMeasure(envelope(), "x", sampleTests())
	doc.Tests[2].ThroughputBitsPerSec = math.NaN()
	if err := report.Encode(&b, doc); err == nil || b.Len() > 0 {
		t.Errorf("error %v, wrote %d bytes", err, b.Len())
	}
}

// TestHostileText: a name from another host cannot send commands to the terminal or forge lines.
func TestHostileText(t *testing.T) {
	s := sampleSnapshot()
	s.Name = "db1\x1b]0;owned\x07"
	s.Interfaces[1].Driver = "e1000\x1b[2J\nforged"
	s.Warnings = []string{"gone\x1b[1A"}
	var b bytes.Buffer
	if err := report.InspectText(&b, report.NewInspect(envelope(), s), report.Style{}); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); strings.ContainsAny(text, "\x1b\x07") || strings.Contains(text, "\nforged") {
		t.Errorf("control characters reach the terminal: %q", text)
	}
}

// TestTuneFigures: the figure after is that of the last confirmation alone.
func TestTuneFigures(t *testing.T) {
	r := sampleRun()
	first := report.NewTune(envelope(), r)
	if first.After == nil || math.Abs(first.After.ThroughputBitsPerSec/905e6-1) > 0.01 || first.After.Segments != 6 {
		t.Fatalf("after: %+v", first.After)
	}
	for i := range 6 {
		r.Outcome.Segments = append(r.Outcome.Segments,
			tune.Segment{Phase: tune.PhaseAblation, Pair: i, Arm: "B", Objective: 1},
			tune.Segment{Phase: tune.PhaseConfirmation, Trial: 1, Pair: i, Arm: "A", Objective: 1},
			tune.Segment{Phase: tune.PhaseConfirmation, Trial: 1, Pair: i, Arm: "B", Objective: 700e6})
	}
	if again := report.NewTune(envelope(), r); again.After.ThroughputBitsPerSec != 700e6 || again.After.Segments != 6 {
		t.Errorf("after a second confirmation: %+v", again.After)
	}
	if d := report.NewTune(envelope(), report.TuneRun{Goal: "latency"}); d.Unit != "transactions_per_second" || d.State != tune.StateUndone {
		t.Errorf("without an outcome: %+v", d)
	}
}

// TestValidate: what a schema must refuse.
func TestValidate(t *testing.T) {
	var b bytes.Buffer
	if err := report.Encode(&b, report.NewHistory(envelope(), sampleChanges())); err != nil {
		t.Fatal(err)
	}
	good := b.String()
	for _, c := range []struct{ name, old, new, want string }{
		{"not JSON", `{"schema"`, `{schema`, "read document"},
		{"no such schema", "linerate.history/1", "linerate.history/9", "no schema"},
		{"a key given twice", `"changes":`, `"linerate":"x","changes":`, "key given twice"},
		{"a key that nobody knows", `"changes":`, `"extra":1,"changes":`, "extra: not in the schema"},
		{"a promised key is missing", `"linerate":"v0.1.0",`, ``, "linerate: missing"},
		{"the wrong type", `"persisted":false`, `"persisted":"no"`, "persisted: is string"},
		{"null is not absent", `"persisted":false`, `"persisted":null`, "is null"},
		{"a state that does not exist", `"state":"committed"`, `"state":"perhaps"`, "changes[0].state"},
		{"not a time", `"time":"2026-11-20T12:00:00Z","host"`, `"time":"noon","host"`, "not a time"},
		{"an array that is not one", `"changes":[`, `"changes":{"x":[`, ""},
		{"something after it", "}\n", "}\n{}", "more than one value"},
		{"a number beyond all", `"persisted":false`, `"persisted":1e999`, "is number"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bad := strings.Replace(good, c.old, c.new, 1)
			if bad == good {
				t.Fatalf("%q is not in the document", c.old)
			}
			if err := report.Validate([]byte(bad)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

// TestDryRunState: the state of a change that was only imagined fits the schema too.
func TestDryRunState(t *testing.T) {
	var b bytes.Buffer
	if err := report.Encode(&b, report.NewHistory(envelope(), []journal.Change{{Knob: "link:eth0/mtu", State: "dry-run"}})); err != nil {
		t.Fatal(err)
	}
	if err := report.Validate(b.Bytes()); err != nil {
		t.Error(err)
	}
}
