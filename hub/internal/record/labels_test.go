package record_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/hub/internal/record"
)

// replaceBomb nests label_replace so that each one makes the label ten times as long.
func replaceBomb(depth int) string {
	q := "linerate_test_total"
	for range depth {
		q = fmt.Sprintf(`label_replace(%s,"a","$1%s","a","(.*)")`, q, strings.Repeat("$1", 9))
	}
	return strings.Replace(q, "linerate_test_total", `label_replace(linerate_test_total,"a","x","","")`, 1)
}

// joinBomb nests label_join likewise.
func joinBomb(depth int) string {
	q := `label_replace(linerate_test_total,"a","x","","")`
	for range depth {
		q = fmt.Sprintf(`label_join(%s,"a",""%s)`, q, strings.Repeat(`,"a"`, 10))
	}
	return q
}

// TestLabelBombs sends queries of a few kilobytes whose labels would have gigabytes.
func TestLabelBombs(t *testing.T) {
	s := open(t, record.Options{})
	some(t, s, 20, 0, 60)
	end := noon.Add(59 * time.Second)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	many := "linerate_test_total"
	for i := range 100 {
		many = fmt.Sprintf(`label_replace(%s,"l%d","%s","","")`, many, i, strings.Repeat("x", 200))
	}
	for name, query := range map[string]string{
		"label_replace":   replaceBomb(7),
		"label_join":      joinBomb(7),
		"in a subquery":   "max_over_time((" + replaceBomb(7) + ")[10m:1m])",
		"in an operation": "sum by (a) (" + joinBomb(7) + ") + on(a) group_left() " + replaceBomb(7),
		"in parentheses":  strings.ReplaceAll(replaceBomb(7), `"a","$1`, `("a"),"$1`),
		"many labels":     many,
		"${1}":            strings.ReplaceAll(replaceBomb(7), "$1", "${1}"),
	} {
		if len(query) > 32<<10 {
			t.Fatalf("%s has %d bytes", name, len(query))
		}
		if _, err := s.Vector(t.Context(), query, end); !errors.Is(err, record.ErrTooMuch) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := s.Matrix(t.Context(), query, noon, end, time.Second); !errors.Is(err, record.ErrTooMuch) {
			t.Errorf("%s over a range: %v", name, err)
		}
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
		t.Errorf("the refusals took %d MiB", took>>20)
	}
	// What people write.
	for _, query := range []string{
		`label_replace(linerate_test_total,"short","$1","host","([^.]*).*")`,
		`label_join(label_replace(linerate_test_total,"at","$1-$2","series","(.)(.*)"),"where",":","host","at","series")`,
		replaceBomb(1), joinBomb(1),
	} {
		if v, err := s.Vector(t.Context(), query, end); err != nil || len(v) != 20 {
			t.Errorf("%s: %d series, %v", query, len(v), err)
		}
	}
}
