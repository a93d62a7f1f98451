package rows_test

import (
	"bytes"
	"encoding/csv"
	"flag"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/reporttest"
	"github.com/linerate/linerate/internal/report/rows"
)

var update = flag.Bool("update", false, "rewrite golden files")

// tables returns a table of each kind, and one whose labels have everything that must be escaped.
func tables(t *testing.T) []rows.Table {
	var all []rows.Table
	for _, d := range reporttest.Documents(t) {
		switch doc := d.Doc.(type) {
		case *report.MeasureDocument:
			if d.Name == "measure" {
				all = append(all, rows.Measure(doc))
			}
		case *report.HistoryDocument:
			if d.Name == "history" {
				all = append(all, rows.History(doc))
			}
		case *report.RunsDocument:
			if d.Name == "runs" {
				all = append(all, rows.Runs(doc))
			}
		}
	}
	return append(all, rows.Table{Name: "hostile", Labels: []string{"host", "empty", "text"},
		Values: []rows.Value{{Name: "some_seconds", Help: "A time"}, {Name: "bytes_total", Help: "A count"},
			{Name: "never", Help: "What no row has"}},
		Rows: []rows.Row{
			{Time: reporttest.Noon, Labels: []string{"x", "", reporttest.Hostile()},
				Values: []float64{0.1, math.NaN(), math.NaN()}},
			{Time: reporttest.Noon, Labels: []string{"y", "", "\xff"}, Values: []float64{math.Inf(1), 1 << 60, math.NaN()}},
			{Time: reporttest.Noon, Labels: []string{"z", "", ""}, Values: []float64{math.NaN(), math.NaN(), math.NaN()}},
		}})
}

// TestFormats checks each format against its golden file, which other programs have read.
func TestFormats(t *testing.T) {
	for _, f := range rows.Formats() {
		var b bytes.Buffer
		for _, table := range tables(t) {
			if err := rows.Write(&b, f, table); err != nil {
				t.Fatal(err)
			}
		}
		file := "testdata/tables." + string(f)
		if *update {
			if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), b.String()); d != "" {
			t.Errorf("%s differs (-want +got):\n%s", file, d)
		}
	}
	if err := rows.Write(&bytes.Buffer{}, "xml", rows.Table{}); err == nil {
		t.Error("an unknown format is no error")
	}
}

// TestCSVIsRead checks that a reader of RFC 4180 gets back what was written.
func TestCSVIsRead(t *testing.T) {
	for _, table := range tables(t) {
		var b bytes.Buffer
		if err := rows.Write(&b, rows.CSV, table); err != nil {
			t.Fatal(err)
		}
		records, err := csv.NewReader(&b).ReadAll()
		if err != nil || len(records) != 1+len(table.Rows) {
			t.Fatalf("%s: %d records, %v", table.Name, len(records), err)
		}
		for i, r := range table.Rows {
			if got := records[i+1][1 : 1+len(r.Labels)]; !cmp.Equal(got, r.Labels) {
				t.Errorf("%s: %q, want %q", table.Name, got, r.Labels)
			}
		}
	}
}

// TestPrometheusReadsIt checks the exposition with Prometheus's own parser. The linter behind it
// wants bytes; the names keep the bits of the documents.
func TestPrometheusReadsIt(t *testing.T) {
	testenv.Need(t, testenv.Peers)
	var b bytes.Buffer
	for _, table := range tables(t) {
		if err := rows.Write(&b, rows.Prometheus, table); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.Command("promtool", "check", "metrics")
	c.Stdin = &b
	out, err := c.CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if !strings.Contains(line, `use base unit "bytes" instead of "bits"`) {
			t.Errorf("promtool: %s", line)
		}
	}
	if exit, ok := err.(*exec.ExitError); err != nil && (!ok || exit.ExitCode() != 3) {
		t.Errorf("promtool: %v", err)
	}
}
