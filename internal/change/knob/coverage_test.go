package knob_test

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/change/knob"
)

// The table of docs/concept/knobs.md counts its rows without a gap, names knobs that the catalogue
// has, and gives a reason where it names none; and the catalogue has no kind of knob of which the
// table does not speak.
func TestCoverageTable(t *testing.T) {
	b, err := os.ReadFile("../../../docs/concept/knobs.md")
	if err != nil {
		t.Fatal(err)
	}
	patterns := make(map[knob.ID]bool)
	for _, d := range ofLinux() {
		patterns[d.Pattern] = true
	}
	named, kinds, rows := regexp.MustCompile("`([a-z]+:[^`]+)`"), make(map[string]bool), 0
	for line := range strings.Lines(string(b)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		n, err := strconv.Atoi(strings.TrimSpace(cells[0]))
		if err != nil {
			continue
		}
		if rows++; n != rows || len(cells) != 3 {
			t.Errorf("row %d: %q", rows, line)
			continue
		}
		ids := named.FindAllStringSubmatch(cells[2], -1)
		if len(ids) == 0 && len(strings.TrimSpace(cells[2])) < 10 {
			t.Errorf("row %d has neither a knob nor a reason: %q", n, line)
		}
		for _, m := range ids {
			kinds[knob.ID(m[1]).Kind()] = true
			if !patterns[knob.ID(m[1])] {
				t.Errorf("row %d: %s is not in the catalogue", n, m[1])
			}
		}
	}
	if rows != 148 {
		t.Errorf("%d rows, want 148", rows)
	}
	for id := range patterns {
		if !kinds[id.Kind()] {
			t.Errorf("the table names no knob of the kind %s", id.Kind())
		}
	}
}
