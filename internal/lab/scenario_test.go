package lab

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestList(t *testing.T) {
	all, err := List()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range all {
		got = append(got, s.Name)
		if strings.Contains(s.Title, "\n") || strings.HasSuffix(s.Title, ".") {
			t.Errorf("%s: title %q", s.Name, s.Title)
		}
		if err := s.World.pinned().Check(); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
	if d := cmp.Diff(order, got); d != "" {
		t.Error(d)
	}
	for _, name := range []string{"no-such", "../scenarios/healthy", ""} {
		if _, err := Load(name); !errors.Is(err, ErrNoScenario) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestPinsComeBeforeTheWorldsOwn(t *testing.T) {
	s, err := Load("path-loss")
	if err != nil {
		t.Fatal(err)
	}
	w := s.World.pinned()
	if w.Settings["all"][0] != pins[0] || w.Settings["near"][0].Value != "bbr" {
		t.Errorf("%v", w.Settings)
	}
	if len(s.World.Settings["all"]) != 0 {
		t.Error("the scenario itself was changed")
	}
}

func TestParseRefuses(t *testing.T) {
	good, err := os.ReadFile(filepath.Join("scenarios", "receive-window.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{
		{`"faults"`, `"fault"`},
		{`"far": [`, `"moon": [`},
		{`"pair"`, `"ring"`},
		{`"tunable": true`, `"tunable": false`},
		{`"finding": "receive-window-limited"`, `"finding": ""`},
		{`"delay_seconds": 0.01`, `"delay_seconds": -1`},
		{`"title"`, `"titel"`},
	} {
		bad := strings.Replace(string(good), change[0], change[1], 1)
		if bad == string(good) {
			t.Errorf("%q is not in the file", change[0])
		}
		if _, err := Parse([]byte(bad)); err == nil {
			t.Errorf("accepted with %s", change[1])
		}
	}
}

func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("scenarios/*.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Parse(b)
		if err != nil {
			return
		}
		if err := s.Check(); err != nil {
			t.Errorf("parsed, but: %v", err)
		}
	})
}

func TestProof(t *testing.T) {
	var p Proof
	p.prove("near", map[string]string{"a": "1", "b": "1", "c": "1"}, map[string]string{"a": "2", "b": "1", "d": "9"}, map[string]string{"a": "1", "b": "3", "d": "9"})
	want := Proof{
		Compared: 4,
		Turned:   []Value{{"near", "a", "1", "2", "1"}, {"near", "c", "1", "", ""}, {"near", "d", "", "9", "9"}},
		Left:     []Value{{"near", "b", "1", "1", "3"}, {"near", "c", "1", "", ""}, {"near", "d", "", "9", "9"}},
	}
	if d := cmp.Diff(want, p); d != "" {
		t.Error(d)
	}
	if p.Whole() || (Proof{}).Whole() || !(Proof{Compared: 1}).Whole() {
		t.Error("what is whole")
	}
}

func TestJudge(t *testing.T) {
	tunable := Scenario{Expect: Expectation{Finding: "send-buffer-limited", Tunable: true, Knobs: []string{"w", "x"}}}
	nothing := Scenario{Expect: Expectation{Finding: "healthy"}}
	whole := Proof{Compared: 10}
	kept := []Kept{{Knob: "w", Side: "near"}}
	for name, c := range map[string]struct {
		r    Result
		want string // in the reason; empty: passes
	}{
		"good":            {Result{Scenario: tunable, Found: "send-buffer-limited", Kept: kept, Healthy: 100, After: 90, Proof: whole}, ""},
		"other finding":   {Result{Scenario: tunable, Found: "healthy", Kept: kept, Healthy: 100, After: 95, Proof: whole}, "first finding is healthy"},
		"nothing kept":    {Result{Scenario: tunable, Found: "send-buffer-limited", Healthy: 100, After: 95, Proof: whole}, "nothing was kept"},
		"another kept":    {Result{Scenario: tunable, Found: "send-buffer-limited", Kept: []Kept{{Knob: "z", Side: "far"}}, Healthy: 100, After: 95, Proof: whole}, "z (far) was kept"},
		"too slow":        {Result{Scenario: tunable, Found: "send-buffer-limited", Kept: kept, Healthy: 100, After: 89, Proof: whole}, "89 %"},
		"not all back":    {Result{Scenario: tunable, Found: "send-buffer-limited", Kept: kept, Healthy: 100, After: 95, Proof: Proof{Compared: 3, Left: []Value{{Host: "far", Knob: "w"}}}}, "far w"},
		"rightly idle":    {Result{Scenario: nothing, Found: "healthy", Healthy: 100, After: 50, Proof: whole}, ""},
		"busy for naught": {Result{Scenario: nothing, Found: "healthy", Kept: kept, Proof: whole}, "nothing to tune"},
	} {
		c.r.judge()
		if c.r.Pass != (c.want == "") || !strings.Contains(c.r.Reason, c.want) {
			t.Errorf("%s: pass %v, reason %q", name, c.r.Pass, c.r.Reason)
		}
	}
	fixed := tunable
	fixed.Expect.HealthyBitsPerSec = 200
	r := Result{Scenario: fixed, Found: "send-buffer-limited", Kept: kept, Healthy: 100, After: 95, Proof: whole}
	if r.judge(); r.Pass {
		t.Error("a fixed bound was not used")
	}
}
