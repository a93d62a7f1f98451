package spelling_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/base/spelling"
)

func TestNear(t *testing.T) {
	names := []string{"copy", "role", "json", "output", "parallel", "max-bytes", "max-rate", "rate", "ring"}
	for typed, want := range map[string]string{
		"nope": "", "cpoy": "copy", "JSN": "json", "jsno": "json", "ouptu": "", "ouptut": "output", "paralel": "parallel",
		"prallel": "parallel", "pralel": "parallel", "max": "max-bytes max-rate", "rat": "rate", "xx": "", "rign": "ring",
		"rates": "rate", "nosuch": "",
	} {
		if got := spelling.Near(names, typed); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%s: %q; want %q", typed, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "acb", 1}, {"nope", "copy", 2}, {"kitten", "sitting", 3},
		{"übel", "ubel", 1}} {
		if got, back := spelling.Distance(c.a, c.b), spelling.Distance(c.b, c.a); got != c.want || back != c.want {
			t.Errorf("%q, %q: %d and %d; want %d", c.a, c.b, got, back, c.want)
		}
	}
}
