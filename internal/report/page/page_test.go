package page_test

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/experiment/tune"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/page"
)

var update = flag.Bool("update", false, "rewrite golden files")

// document reads a golden document of package report, as `linerate report FILE` does.
func document(t testing.TB, name string) *report.TuneDocument {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	d, err := report.DecodeTune(b)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// harmless checks that a page runs nothing, requests nothing from the network, and lacks no number.
func harmless(t *testing.T, page string) {
	t.Helper()
	for _, bad := range []string{"<script", "http://", "https://", "url(", "@import", "<link", "<img", "<iframe", "NaN",
		"Inf%", "ZgotmplZ", "%!", "\x1b", "\u202e"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	if on := regexp.MustCompile(`<[^>]* on[a-z]+=`).FindString(page); on != "" {
		t.Errorf("the page has a handler: %s", on)
	}
	for _, tag := range []string{"section", "svg", "table", "details", "div", "ul"} {
		if open, closed := strings.Count(page, "<"+tag+">")+strings.Count(page, "<"+tag+" "),
			strings.Count(page, "</"+tag+">"); open != closed {
			t.Errorf("%d times <%s>, %d times </%s>", open, tag, closed, tag)
		}
	}
}

// TestPages compares the page of every kind of run with its golden file.
func TestPages(t *testing.T) {
	for _, name := range []string{"tune", "tune-nothing", "tune-latency", "tune-hostile", "tune-soak", "tune-soak-lost",
		"tune-from-nothing", "report", "report-stricter", "report-unfinished"} {
		t.Run(name, func(t *testing.T) {
			d := document(t, name)
			var b bytes.Buffer
			var err error
			if strings.HasPrefix(name, "report") {
				rules := tune.Rules{}
				if name == "report-stricter" {
					rules.Confidence = 0.99
				}
				var r *report.ReportDocument
				if r, err = report.NewReport(d.Envelope, "-", d, rules); err == nil {
					err = page.Report(&b, r)
				}
			} else {
				err = page.Tune(&b, d)
			}
			if err != nil {
				t.Fatal(err)
			}
			harmless(t, b.String())
			if b.Len() > 200_000 {
				t.Errorf("the page has %d bytes", b.Len())
			}
			file := "testdata/" + name + ".html"
			if *update {
				if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatalf("%v (run with -update to write it)", err)
			}
			if diff := cmp.Diff(string(want), b.String()); diff != "" {
				t.Errorf("%s differs (-want +got), -update accepts it:\n%s", file, diff)
			}
		})
	}
}

// TestMarks checks that shapes also show the outcome of a trial and the kind of a segment, and that
// excluded segments appear with their reason.
func TestMarks(t *testing.T) {
	var b bytes.Buffer
	d := document(t, "report")
	if err := page.Tune(&b, d); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	count := map[string]int{}
	for _, s := range d.Segments {
		switch {
		case s.Discard != "":
			count["discarded"]++
		case s.Phase == tune.PhaseLevels:
			count["level"]++
		case s.Arm == "B":
			count["b"]++
		default:
			count["a"]++
		}
	}
	for class, n := range count {
		if got := strings.Count(text, `"><path class="`+class+`"`); got < n || got > n+1 { // one more in the legend
			t.Errorf("%d marks of class %s, want %d", got, class, n)
		}
	}
	for _, want := range []string{"does not count: 7 % of the CPU time", "<td>7 % of the CPU time", "needed: ×",
		`class="need"`, "linerate undo --all", "The seed of the random order was 7"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if err := page.Tune(broken{}, d); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a broken pipe: %v", err)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// FuzzPage checks that no document breaks out of the page, makes it panic, or puts a mark outside
// of a plot.
func FuzzPage(f *testing.F) {
	for _, name := range []string{"tune", "tune-nothing", "tune-hostile", "report-unfinished"} {
		b, err := os.ReadFile(filepath.Join("..", "testdata", name+".json"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`{"schema":"linerate.tune/1","target":"\u202e\u001b]0;x\u0007",` +
		`"segments":[{"phase":"trial","trial":-5,"start_seconds":-1e308,"duration_seconds":1e308,"objective":-1}]}`))
	f.Add([]byte(`{"schema":"linerate.tune/1","trials":[{"effect_ratio":1e300,"effect_low_ratio":-1,` +
		`"effect_high_ratio":5e-324}],"segments":[{"objective":1e308,"duration_seconds":1e-308},` +
		`{"objective":1e308,"duration_seconds":1e308,"start_seconds":1e308}]}`))
	places := regexp.MustCompile(`(?:x|x1|x2|width)="(-?[0-9.e+]+)%"`)
	f.Fuzz(func(t *testing.T, doc []byte) {
		d, err := report.DecodeTune(doc)
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := page.Tune(&b, d); err != nil {
			t.Fatal(err)
		}
		for _, bad := range []string{"<script", "ZgotmplZ", "\x1b"} {
			if strings.Contains(b.String(), bad) {
				t.Errorf("the page has %q", bad)
			}
		}
		for _, m := range places.FindAllStringSubmatch(b.String(), -1) {
			if len(m[1]) > 6 || m[1][0] == '-' {
				t.Errorf("a mark at %s%%", m[1])
			}
		}
	})
}
