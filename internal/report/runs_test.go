package report_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/reporttest"
)

// TestDecodeTune checks that a run is read back unchanged, and that the error for another file
// names what it is.
func TestDecodeTune(t *testing.T) {
	run := reporttest.StoredRun(t)
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
		t.Errorf("the document changed after reading and writing it: %v", err)
	}
	b.Reset()
	if err := report.Encode(&b, reporttest.Reports(t)["report"]); err != nil {
		t.Fatal(err)
	}
	if inside, err := report.DecodeTune(b.Bytes()); err != nil || inside.Run != run.Run {
		t.Errorf("the run in a report: %v", err)
	}
	if later, err := report.DecodeTune([]byte(strings.Replace(good, `"goal"`, `"key of a later version":1,"goal"`,
		1))); err != nil || later.Goal != "throughput" {
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
		if _, err := report.DecodeTune([]byte(c.doc)); !errors.Is(err, report.ErrNotARun) ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// TestSegmentsCSV checks that every segment is a row, and that every number reads back exactly.
func TestSegmentsCSV(t *testing.T) {
	run := reporttest.StoredRun(t)
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
	if err := report.SegmentsCSV(brokenWriter{}, run); !errors.Is(err, errBroken) {
		t.Errorf("a broken pipe: %v", err)
	}
}

var errBroken = errors.New("broken pipe")

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }
