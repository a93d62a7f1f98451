package plan_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// statuses are the words of the fourth column of testdata/judged.
var statuses = []string{"set", "still-right", "now-default", "ignored", "removed", "harmful"}

// TestEveryLineJudged holds every line of every golden plan against testdata/judged: rows with
// plan, knob, value, status, source and, where it is not obvious, the reason. People write the
// rows, from the sources that they name: nothing makes them from the output. A line without a row,
// a row without a line and another status are all errors.
func TestEveryLineJudged(t *testing.T) {
	names, err := filepath.Glob("testdata/judged/*.tsv")
	if err != nil || len(names) == 0 {
		t.Fatalf("no tables in testdata/judged: %v", err)
	}
	judged := map[string]string{} // file and line by row
	plans := map[string]bool{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
			f := strings.Split(line, "\t")
			at := filepath.Base(name) + ":" + strconv.Itoa(i+1)
			switch {
			case i == 0 || strings.HasPrefix(line, "#"):
			case len(f) != 6 || f[0] == "" || f[1] == "" || f[4] == "":
				t.Errorf("%s: not plan, knob, value, status, source and reason: %q", at, line)
			case !slices.Contains(statuses, f[3]):
				t.Errorf("%s: status %q is none of %v", at, f[3], statuses)
			case len(strings.Fields(f[5])) > 15:
				t.Errorf("%s: a reason of more than 15 words: %q", at, f[5])
			default:
				row := strings.Join(f[:4], "\t")
				if before, twice := judged[row]; twice {
					t.Errorf("%s: %s has this row already: %q", at, before, row)
				}
				judged[row], plans[f[0]] = at, true
			}
		}
	}
	lines := 0
	for _, name := range situations(t) {
		base := strings.TrimSuffix(filepath.Base(name), ".situation")
		if !plans[base] {
			t.Errorf("%s: no table judges this plan", base)
			continue
		}
		for _, l := range read(t, name).Lines {
			status := string(l.Verdict)
			if l.Set {
				status = "set"
			}
			lines++
			row := strings.Join([]string{base, l.Knob, l.Value, status}, "\t")
			if _, is := judged[row]; !is {
				t.Errorf("the plan has, and no table: %q", row)
			}
			delete(judged, row)
		}
	}
	for _, row := range slices.Sorted(maps.Keys(judged)) {
		t.Errorf("%s: no plan has %q", judged[row], row)
	}
	t.Logf("%d lines of %d plans are judged", lines, len(plans))
}
