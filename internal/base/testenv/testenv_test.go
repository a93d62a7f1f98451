package testenv

import "testing"

func TestProvides(t *testing.T) {
	for _, c := range []struct {
		list  string
		thing Thing
		want  bool
	}{
		{"", NetNS, false},
		{"all", NetNS, true},
		{"netns", NetNS, true},
		{"netns,guest", Guest, true},
		{"netns,guest", Peers, false},
		{"netnsx", NetNS, false},
	} {
		if got := provides(c.list, c.thing); got != c.want {
			t.Errorf("%s=%q provides %s: %v, want %v", Variable, c.list, c.thing, got, c.want)
		}
	}
}

// recorder is a test that records how it ended.
type recorder struct {
	testing.TB
	ended string
}

func (r *recorder) Helper()              {}
func (r *recorder) Skipf(string, ...any) { r.end("skipped") }
func (r *recorder) Skip(...any)          { r.end("skipped") }

// end records the first ending: a real test would not continue after it.
func (r *recorder) end(how string) {
	if r.ended == "" {
		r.ended = how
	}
}

func (r *recorder) Fatal(...any) { r.end("failed") }

func TestMissingFailsWhereProvided(t *testing.T) {
	for _, c := range []struct{ list, need, missing string }{
		{"", "skipped", "skipped"},
		{"netns", "", "failed"},
		{"all", "", "failed"},
		{"guest", "skipped", "skipped"},
	} {
		t.Setenv(Variable, c.list)
		r := &recorder{TB: t}
		if Need(r, NetNS); r.ended != c.need {
			t.Errorf("%q: Need: %q, want %q", c.list, r.ended, c.need)
		}
		r.ended = ""
		if Missing(r, NetNS, "no permission"); r.ended != c.missing {
			t.Errorf("%q: Missing: %q, want %q", c.list, r.ended, c.missing)
		}
	}
}
