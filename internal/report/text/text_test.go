package text_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/lab/matrix"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/reporttest"
	"github.com/linerate/linerate/internal/report/text"
)

var update = flag.Bool("update", false, "rewrite golden files")

// golden compares with a file below testdata, or writes it with -update.
func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
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

// TestMain fixes the zone of displayed times, so that golden files are valid everywhere.
func TestMain(m *testing.M) {
	time.Local = time.UTC
	os.Exit(m.Run())
}

// show writes a document as its command does. It returns errNoText for a document without text.
func show(w io.Writer, name string, doc any, s text.Style) error {
	switch d := doc.(type) {
	case *report.InspectDocument:
		if name == "inspect-interfaces" {
			return text.Interfaces(w, d, s)
		}
		return text.Inspect(w, d, s)
	case *report.FirewallDocument:
		return text.Firewall(w, d, s)
	case *report.FirewallTraceDocument:
		return text.FirewallTrace(w, d, s)
	case *report.CalcDocument:
		return text.Calc(w, d, s)
	case *report.MeasureDocument:
		return text.Measure(w, d, s)
	case *report.MeasureCompareDocument:
		return text.MeasureCompare(w, d, s)
	case *report.MeasurementsDocument:
		return text.Measurements(w, d, s)
	case *report.DiskDocument:
		return text.Disk(w, d, s)
	case *report.NFSDocument:
		return text.NFS(w, d, s)
	case *report.DiagnoseDocument:
		if d.CPU != nil {
			return text.CPU(w, d, s)
		}
		return text.Diagnose(w, d, s, name == "diagnose-verbose")
	case *report.ApplyDocument:
		return text.Apply(w, d, s)
	case *report.TuneDocument:
		if name == "tune-plan" {
			return text.TunePlan(w, d, d.Plan, s)
		}
		return text.Tune(w, d, s)
	case *report.ReportDocument:
		return text.Report(w, d, s)
	case *report.PeersDocument:
		return text.Peers(w, d, s)
	case *report.RunsDocument:
		return text.Runs(w, d, s)
	case *report.HistoryDocument:
		if name == "history-run" {
			return text.FoldedHistory(w, d, s)
		}
		if name == "set" {
			return text.Set(w, d, s)
		}
		return text.History(w, d, s)
	case *report.UndoDocument:
		return text.Undo(w, d, s)
	case *report.KnobsDocument:
		return text.Knobs(w, d, s)
	case *report.ExplainDocument:
		return text.Explain(w, d, s)
	case *report.AdviceDocument:
		return text.Advice(w, d, s)
	case *report.ResolverDocument:
		return text.Resolver(w, d, s)
	case *report.ResolverDiagnoseDocument:
		return text.ResolverDiagnose(w, d, s, false)
	case *report.ResolverLabDocument:
		return text.ResolverLab(w, d, s)
	case *report.ResolverTuneDocument:
		return text.ResolverTune(w, d, s)
	case *report.ResolverAnswerDocument:
		return text.ResolverAnswer(w, d, s)
	case *report.PersistDocument:
		if name == "persist-check" {
			return text.PersistCheck(w, d, s)
		}
		return text.Persist(w, d, s)
	case *report.ProfileDocument:
		return text.Profile(w, d, s)
	case *report.ProfileCompareDocument:
		return text.ProfileCompare(w, d, s)
	case *report.LabListDocument:
		return text.LabList(w, d, s)
	case *report.LabDocument:
		return errors.Join(text.LabHeader(w, s), text.Lab(w, d, s))
	case *report.MatrixDocument:
		return text.Matrix(w, d, s)
	case *report.TuneMatrixDocument:
		return text.TuneMatrix(w, d, s)
	}
	return fmt.Errorf("%w: %T", errNoText, doc)
}

var errNoText = errors.New("no text")

// withoutText are the documents whose commands print another text: a line to paste, a file, an
// error, a screen, a version.
var withoutText = []string{"lab-up", "serve", "export", "boot-recovery", "error", "agent", "hub-check", "switch",
	"version", "line-interval", "line-event", "line-result", "line-error"}

// TestTexts checks that the text of every document equals its golden file, that colour changes only
// the colour, and that a broken pipe is an error.
func TestTexts(t *testing.T) {
	for _, d := range reporttest.Documents(t) {
		t.Run(d.Name, func(t *testing.T) {
			var plain, coloured bytes.Buffer
			if err := show(&plain, d.Name, d.Doc, text.Style{}); errors.Is(err, errNoText) &&
				slices.Contains(withoutText, d.Name) {
				return
			} else if err != nil {
				t.Fatal(err)
			}
			golden(t, "testdata/"+d.Name+".txt", plain.Bytes())
			checkText(t, plain.String())

			if err := show(&coloured, d.Name, d.Doc, text.Style{Colour: true}); err != nil {
				t.Fatal(err)
			}
			if got := escapes.ReplaceAllString(coloured.String(), ""); got != plain.String() {
				t.Errorf("colour changes more than colour (-plain +coloured):\n%s", cmp.Diff(plain.String(), got))
			}
			counter := &brokenWriter{left: math.MaxInt}
			if err := show(counter, d.Name, d.Doc, text.Style{}); err != nil {
				t.Fatal(err)
			}
			for n := range math.MaxInt - counter.left {
				if err := show(&brokenWriter{left: n}, d.Name, d.Doc, text.Style{}); !errors.Is(err, errBroken) {
					t.Fatalf("a writer that breaks after %d writes gives %v", n, err)
				}
			}
		})
	}
}

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*m")

// checkText checks what holds for all text.
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

// TestHostileText checks that a name from another host cannot send commands to the terminal or
// forge lines.
func TestHostileText(t *testing.T) {
	s := reporttest.Snapshot()
	s.Name = "db1\x1b]0;owned\x07"
	s.Interfaces[1].Driver = "e1000\x1b[2J\nforged"
	s.Warnings = []string{"gone\x1b[1A"}
	var b bytes.Buffer
	if err := text.Inspect(&b, report.NewInspect(reporttest.Envelope(), s), text.Style{}); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); strings.ContainsAny(got, "\x1b\x07") || strings.Contains(got, "\nforged") {
		t.Errorf("control characters reach the terminal: %q", got)
	}
}

// TestLastLines checks the last line of the matrices, which scripts read.
func TestLastLines(t *testing.T) {
	var verdicts, tunes bytes.Buffer
	if err := errors.Join(text.Matrix(&verdicts, matrix.NewVerdicts(reporttest.Envelope(), reporttest.Matrix()),
		text.Style{}),
		text.TuneMatrix(&tunes, matrix.NewTunes(reporttest.Envelope(), reporttest.TuneMatrix()),
			text.Style{})); err != nil {
		t.Fatal(err)
	}
	for got, want := range map[string]string{verdicts.String(): "first-right-percent=40.0 cases=5",
		tunes.String(): "tuned-percent=50.0 cases=6"} {
		if !strings.HasSuffix(got, "\n"+want+"\n") {
			t.Errorf("ends in %q", got[max(0, len(got)-80):])
		}
	}
}

// TestTerminals prints every document for terminals of 40 to 300 columns: each line fits, unless a
// single word does not, and no word of the text without a terminal is missing. One document of each
// kind, and those of alsoGolden, are golden files at five widths.
func TestTerminals(t *testing.T) {
	documents := reporttest.Documents(t)
	first := map[string]string{} // by type, the first name of the alphabet
	for _, d := range documents {
		kind := fmt.Sprintf("%T", d.Doc)
		if name, known := first[kind]; !known || d.Name < name {
			first[kind] = d.Name
		}
	}
	for _, d := range documents {
		var wide bytes.Buffer
		if err := show(&wide, d.Name, d.Doc, text.Style{}); err != nil {
			continue // TestTexts has said why
		}
		isGolden := first[fmt.Sprintf("%T", d.Doc)] == d.Name || slices.Contains(alsoGolden, d.Name)
		var screens bytes.Buffer
		for _, width := range []int{300, 200, 100, 80, 60, 40} {
			var narrow bytes.Buffer
			if err := show(&narrow, d.Name, d.Doc, text.Style{Width: width}); err != nil {
				t.Fatal(err)
			}
			if width <= 200 {
				fmt.Fprintf(&screens, "== %d columns\n%s", width, &narrow)
			}
			checkText(t, narrow.String())
			var coloured bytes.Buffer
			if err := show(&coloured, d.Name, d.Doc, text.Style{Width: width, Colour: true}); err != nil {
				t.Fatal(err)
			}
			if got := escapes.ReplaceAllString(coloured.String(), ""); got != narrow.String() {
				t.Errorf("%s: colour changes more than colour (-plain +coloured):\n%s", d.Name,
					cmp.Diff(narrow.String(), got))
			}
			for line := range strings.Lines(narrow.String()) {
				line = strings.TrimSuffix(line, "\n")
				if n := utf8.RuneCountInString(line); n > width && !oneWord.MatchString(line) {
					t.Errorf("%s at %d columns has a line of %d: %s", d.Name, width, n, line)
				}
			}
			have := strings.Fields(narrow.String())
			for _, word := range strings.Fields(wide.String()) {
				if !slices.Contains(have, word) && !drawn.MatchString(word) {
					t.Errorf("%s at %d columns lacks %q", d.Name, width, word)
				}
			}
		}
		if isGolden {
			golden(t, "testdata/screens/"+d.Name+".txt", screens.Bytes())
		}
	}
}

// alsoGolden are documents with a text of their own beside the first of their kind.
var alsoGolden = []string{"knobs-here", "inspect-interfaces", "diagnose-cpu", "history-run", "persist-check", "set",
	"calc-bus", "calc-moderation", "calc-polling", "calc-window", "firewall-rewrite", "nfs-tune", "peers-add",
	"peers-revoke", "tune-plan"}

// oneWord matches a line that must not break: one word, a setting, a file's line, a command.
var oneWord = regexp.MustCompile(`^ *(\S+|'[^']*')$|^[-+@]|^from here: |^ *LINERATE_KEY=`)

// drawn matches a bar or a curve, whose length depends on the width.
var drawn = regexp.MustCompile(`^[#▁-█]+$`)

// TestSeparatorStaysBehindItsWord prints every document at every width from 40 columns on: no line
// holds only the point between two values.
func TestSeparatorStaysBehindItsWord(t *testing.T) {
	for _, d := range reporttest.Documents(t) {
		for width := 40; width <= 110; width += 3 {
			var out bytes.Buffer
			if err := show(&out, d.Name, d.Doc, text.Style{Width: width}); err != nil {
				break // TestTexts has said why
			}
			for line := range strings.Lines(out.String()) {
				if strings.TrimSpace(line) == "·" {
					t.Errorf("%s at %d columns: a point alone", d.Name, width)
					break
				}
			}
		}
	}
}
