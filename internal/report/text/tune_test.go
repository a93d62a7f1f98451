package text_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/reporttest"
	"github.com/linerate/linerate/internal/report/text"
)

// FuzzRun checks that no file makes the list, the text or the table of a run panic, or sends a
// control character to the terminal.
func FuzzRun(f *testing.F) {
	files, err := filepath.Glob("../testdata/tune*.json")
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
	f.Add([]byte(`{"schema":"linerate.tune/1","target":"\u001b]0;x\u0007",` +
		`"segments":[{"phase":"trial","trial":-5,"start_seconds":-1e308,"duration_seconds":1e308,"objective":-1}]}`))
	f.Add([]byte(`{"schema":"linerate.tune/1","trials":[{"effect_ratio":1e300,"effect_low_ratio":-1,` +
		`"effect_high_ratio":5e-324}],"segments":[{"objective":1e308,"duration_seconds":1}]}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		d, err := report.DecodeTune(doc)
		if err != nil || d.Design != nil && len(d.Design.Looks) > 0 && d.Design.Looks[len(d.Design.Looks)-1] > 12 {
			return
		}
		var out bytes.Buffer
		if err := text.Tune(&out, d, text.Style{}); err != nil {
			t.Fatal(err)
		}
		if err := text.Runs(&out,
			report.NewRuns(reporttest.Envelope(), "", []report.RunEntry{report.NewRunEntry("x", d)}),
			text.Style{}); err != nil {
			t.Fatal(err)
		}
		if err := report.SegmentsCSV(io.Discard, d); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsFunc(out.String(), func(r rune) bool { return r < ' ' && r != '\n' }) {
			t.Errorf("control characters reach the terminal: %q", out.String())
		}
	})
}

// TestTuneWidth checks that the text of a tune stays within the maximum width, also with long
// names. A single word may be longer.
func TestTuneWidth(t *testing.T) {
	r := reporttest.Run()
	r.Outcome.Trials[1].Knob = "ethtool:enp130s0f1np1/feature.tx-udp_tnl-csum-segmentation"
	r.Outcome.Trials[1].Reason = "a reason"
	var b bytes.Buffer
	if err := text.Tune(&b, report.NewTune(reporttest.Envelope(), r), text.Style{}); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 100 &&
			!strings.Contains(line, "tx-udp_tnl") {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// TestHostileTune checks, with and without colour, that a name from another host cannot bring a
// line end, a terminal command or a change of text direction onto the terminal. A number of three
// hundred digits is not printed in full.
func TestHostileTune(t *testing.T) {
	r := reporttest.Run()
	evil := "db1\nProved  ×99 with one change.\x1b[2J\x1b]0;x\x07\u202egnp.exe\u2028"
	r.ID, r.Target, r.Goal = evil, evil, evil
	r.Findings[0].Title, r.Findings[0].Code = evil, evidence.Code(evil)
	r.Outcome.Trials[0].Knob, r.Outcome.Trials[0].To = knob.ID(evil), knob.Value(evil)
	r.Outcome.Trials[0].Ratio, r.Outcome.Baseline.Objective, r.Outcome.Baseline.Guards["rtt_loaded_seconds"] = 1e300,
		1e300, 1e300
	r.Outcome.Warnings, r.Outcome.Reason = []string{evil}, evil
	for i := range r.Changes {
		r.Changes[i].ID = evil
	}
	d := report.NewTune(reporttest.Envelope(), r)
	entry := report.NewRunEntry(evil, d)
	for _, colour := range []bool{false, true} {
		var b bytes.Buffer
		s := text.Style{Colour: colour}
		if err := errors.Join(text.Tune(&b, d, s),
			text.Runs(&b, report.NewRuns(reporttest.Envelope(), evil, []report.RunEntry{entry}), s)); err != nil {
			t.Fatal(err)
		}
		text := escapes.ReplaceAllString(b.String(), "")
		if strings.ContainsAny(text, "\x1b\x07\u202e\u2028") || strings.Contains(text, "\nProved  ×99") ||
			strings.Contains(text, "000000000") {
			t.Errorf("colour %v: %q", colour, text)
		}
	}
}
