package scenario

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
		if err := s.World.Pinned().Check(); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
	// A scenario that order does not name follows at the end: adding one touches its file alone.
	if d := cmp.Diff(order, got[:min(len(order), len(got))]); d != "" {
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
	w := s.World.Pinned()
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
