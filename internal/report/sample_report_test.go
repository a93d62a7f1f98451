package report_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/linerate/linerate/internal/diagnose"
	"github.com/linerate/linerate/internal/knob"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/tune"
)

// storedRun is the sample run with the effects that its segments give, as every run of ours has them.
func storedRun(t *testing.T) *report.TuneDocument {
	t.Helper()
	r := sampleRun()
	r.ID = "20261120-120000-7f3a"
	r.Outcome.Design = &tune.Design{Confidence: 0.95, MinUsefulEffect: 0.01, PilotPairs: 6, Looks: []int{6, 10, 16}, Seed: "7"}
	again, err := tune.Reanalyse(r.Outcome, tune.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	r.Outcome.Pilot = again.Pilot
	for _, c := range again.Comparisons {
		switch c.Phase {
		case tune.PhaseTrial:
			r.Outcome.Trials[c.Trial].Effect = c.Again
		case tune.PhaseConfirmation:
			r.Outcome.Final = &c.Again
		}
	}
	return report.NewTune(envelope(), r)
}

// sampleReports are a run judged again by its own rules, by stricter ones, after somebody has changed a number, and without an end.
func sampleReports(t *testing.T) map[string]*report.ReportDocument {
	t.Helper()
	all := map[string]*report.ReportDocument{}
	add := func(name string, run *report.TuneDocument, rules tune.Rules) {
		d, err := report.NewReport(envelope(), "/var/lib/linerate/runs/20261120-120000-7f3a.json", run, rules)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = d
	}
	add("report", storedRun(t), tune.Rules{})
	add("report-stricter", storedRun(t), tune.Rules{Confidence: 0.99})
	forged := storedRun(t)
	forged.Trials = slices.Clone(forged.Trials)
	forged.Trials[0].Ratio = 9
	forged.Design = nil
	add("report-forged", forged, tune.Rules{})
	short := storedRun(t)
	short.Segments, short.Trials, short.Kept, short.Final, short.After = short.Segments[:17], short.Trials[:0], short.Kept[:0], nil, nil
	short.Changes, short.State, short.Unfinished = short.Changes[:0], tune.StateUndone, "interrupted"
	add("report-unfinished", short, tune.Rules{})
	return all
}

func sampleRunList(t *testing.T) *report.RunsDocument {
	t.Helper()
	reports := sampleReports(t)
	latency := report.NewTune(envelope(), latencyRun())
	latency.Target = "ssh://root@a-host-with-a-very-long-name.example.net:2222"
	return report.NewRuns(envelope(), "/var/lib/linerate/runs", []report.RunEntry{
		report.NewRunEntry("20261120-120400-00ff", reports["report-unfinished"].Run),
		report.NewRunEntry("20261120-120300-0003", latency),
		report.UnreadableRun("20261120-120200-0002", errors.New("not the document of a run: unexpected end of JSON input")),
		report.NewRunEntry("20261120-120100-0001", report.NewTune(envelope(), nothingRun())),
		report.NewRunEntry("20261120-120000-7f3a", reports["report"].Run),
	})
}

// TestDecodeTune: a run is read back as it was; what is none is told by what it is.
func TestDecodeTune(t *testing.T) {
	run := storedRun(t)
	var b bytes.Buffer
	if err := report.Encode(&b, run); err != nil {
		t.Fatal(err)
	}
	good := b.String()
	back, err := report.DecodeTune([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	b.Reset()
	if err := report.Encode(&b, back); err != nil || b.String() != good {
		t.Errorf("read and written again it is another document: %v", err)
	}
	b.Reset()
	if err := report.Encode(&b, sampleReports(t)["report"]); err != nil {
		t.Fatal(err)
	}
	if inside, err := report.DecodeTune(b.Bytes()); err != nil || inside.Run != run.Run {
		t.Errorf("the run in a report: %v", err)
	}
	if later, err := report.DecodeTune([]byte(strings.Replace(good, `"goal"`, `"key of a later version":1,"goal"`, 1))); err != nil || later.Goal != "throughput" {
		t.Errorf("a key of a later version: %v", err)
	}
	for _, c := range []struct{ name, doc, want string }{
		{"empty", "", "unexpected end of JSON"},
		{"cut short", good[:len(good)/2], "unexpected end of JSON"},
		{"not JSON", "hello", "invalid character"},
		{"another JSON", `[1,2]`, "no document of linerate"},
		{"foreign", `{"schema":"https://example.net/x"}`, "no document of linerate"},
		{"another document", `{"schema":"linerate.measure/1"}`, "a linerate.measure/1 document"},
		{"another type", strings.Replace(good, `"target":"`, `"target":5,"x":"`, 1), "cannot unmarshal"},
		{"a number beyond all", strings.Replace(good, `"objective":`, `"objective":1e999,"x":`, 1), "cannot unmarshal"},
		{"a report without a run", `{"schema":"linerate.report/1"}`, "without its run"},
	} {
		if _, err := report.DecodeTune([]byte(c.doc)); !errors.Is(err, report.ErrNotARun) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// TestSegmentsCSV: every segment is a row, and every number reads back exactly.
func TestSegmentsCSV(t *testing.T) {
	run := storedRun(t)
	var b bytes.Buffer
	if err := report.SegmentsCSV(&b, run); err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/report.csv", b.Bytes())
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil || len(rows) != len(run.Segments)+1 {
		t.Fatalf("%d rows of %d segments, %v", len(rows), len(run.Segments), err)
	}
	at := slices.Index(rows[0], "bits_per_second")
	for i, row := range rows[1:] {
		var x float64
		if err := json.Unmarshal([]byte(row[at]), &x); err != nil || x != run.Segments[i].Objective {
			t.Errorf("row %d has %s of %v", i, row[at], run.Segments[i].Objective)
		}
	}
	if err := report.SegmentsCSV(&brokenWriter{}, run); !errors.Is(err, errBroken) {
		t.Errorf("a broken pipe: %v", err)
	}
}

// FuzzRun: no file makes the list, the text or the table of a run panic, or sends a control character to the terminal.
func FuzzRun(f *testing.F) {
	files, err := filepath.Glob("testdata/tune*.json")
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`{"schema":"linerate.tune/1","target":"\u001b]0;x\u0007","segments":[{"phase":"trial","trial":-5,"start_seconds":-1e308,"duration_seconds":1e308,"objective":-1}]}`))
	f.Add([]byte(`{"schema":"linerate.tune/1","trials":[{"effect_ratio":1e300,"effect_low_ratio":-1,"effect_high_ratio":5e-324}],"segments":[{"objective":1e308,"duration_seconds":1}]}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		d, err := report.DecodeTune(doc)
		if err != nil || d.Design != nil && len(d.Design.Looks) > 0 && d.Design.Looks[len(d.Design.Looks)-1] > 12 {
			return
		}
		var text bytes.Buffer
		if err := report.TuneText(&text, d, report.Style{}); err != nil {
			t.Fatal(err)
		}
		if err := report.RunsText(&text, report.NewRuns(envelope(), "", []report.RunEntry{report.NewRunEntry("x", d)}), report.Style{}); err != nil {
			t.Fatal(err)
		}
		if err := report.SegmentsCSV(io.Discard, d); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsFunc(text.String(), func(r rune) bool { return r < ' ' && r != '\n' }) {
			t.Errorf("control characters reach the terminal: %q", text.String())
		}
	})
}

// TestTuneWidth: the text of a tune stays within the columns of the house, also with long names; a word alone may be longer.
func TestTuneWidth(t *testing.T) {
	r := sampleRun()
	r.Outcome.Trials[1].Knob = "ethtool:enp130s0f1np1/feature.tx-udp_tnl-csum-segmentation"
	r.Outcome.Trials[1].Reason = "a reason"
	var b bytes.Buffer
	if err := report.TuneText(&b, report.NewTune(envelope(), r), report.Style{}); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 100 && !strings.Contains(line, "tx-udp_tnl") {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// TestHostileTune: neither a line end nor a command to the terminal nor a change of direction in a name from elsewhere gets through, with
// and without colour; and a number of three hundred digits is not printed as such.
func TestHostileTune(t *testing.T) {
	r := sampleRun()
	evil := "db1\nProved  ×99 with one change.\x1b[2J\x1b]0;x\x07\u202egnp.exe\u2028"
	r.ID, r.Target, r.Goal = evil, evil, evil
	r.Findings[0].Title, r.Findings[0].Code = evil, diagnose.Code(evil)
	r.Outcome.Trials[0].Knob, r.Outcome.Trials[0].To = knob.ID(evil), knob.Value(evil)
	r.Outcome.Trials[0].Ratio, r.Outcome.Baseline.Objective, r.Outcome.Baseline.Guards["rtt_loaded_seconds"] = 1e300, 1e300, 1e300
	r.Outcome.Warnings, r.Outcome.Reason = []string{evil}, evil
	for i := range r.Changes {
		r.Changes[i].ID = evil
	}
	d := report.NewTune(envelope(), r)
	entry := report.NewRunEntry(evil, d)
	for _, colour := range []bool{false, true} {
		var b bytes.Buffer
		s := report.Style{Colour: colour}
		if err := errors.Join(report.TuneText(&b, d, s), report.RunsText(&b, report.NewRuns(envelope(), evil, []report.RunEntry{entry}), s)); err != nil {
			t.Fatal(err)
		}
		text := escapes.ReplaceAllString(b.String(), "")
		if strings.ContainsAny(text, "\x1b\x07\u202e\u2028") || strings.Contains(text, "\nProved  ×99") || strings.Contains(text, "000000000") {
			t.Errorf("colour %v: %q", colour, text)
		}
	}
}
