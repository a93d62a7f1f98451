package scenario

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What is promised of each write-up: the lower bound of the confirmed gain, or a change that is
// taken back.
var promised = map[string]float64{
	"replay-burst": 0, "replay-moderation": 3.66, "replay-polling": 2.75, "replay-windows-2.4": 2.4,
	"replay-windows-3.9": 3.9,
}

func TestReplays(t *testing.T) {
	all, err := Replays()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "replay.md"))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, s := range all {
		got[s.Name] = s.Replay.Ratio
		if s.Replay.Ratio > 0 && s.Replay.After/s.Replay.Before < s.Replay.Ratio-0.01 {
			t.Errorf("%s: the write-up itself gained ×%.3g", s.Name, s.Replay.After/s.Replay.Before)
		}
		if loaded, err := Load(s.Name); err != nil || cmp.Diff(s, loaded) != "" {
			t.Errorf("%s: %v %s", s.Name, err, cmp.Diff(s, loaded))
		}
		for _, want := range []string{"lab run " + s.Name, s.Replay.Source} {
			if !strings.Contains(strings.Join(strings.Fields(string(page)), " "), want) {
				t.Errorf("docs/replay.md does not contain %q", want)
			}
		}
	}
	if d := cmp.Diff(promised, got); d != "" {
		t.Error(d)
	}
}

func TestReplayRefuses(t *testing.T) {
	good, err := Load("replay-moderation")
	if err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Replay){
		"no row":         func(r *Replay) { r.Row = "" },
		"other unit":     func(r *Replay) { r.Unit = "furlongs" },
		"loss as a gain": func(r *Replay) { r.Ratio = 0.5 },
		"nothing kept":   func(r *Replay) { r.Kept = nil },
		"nothing at all": func(r *Replay) { r.Ratio, r.Kept = 0, nil },
		"no side":        func(r *Replay) { r.Alone = []string{"ethtool:eth0/coalesce.rx-usecs"} },
	} {
		s, r := good, *good.Replay
		spoil(&r)
		s.Replay = &r
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), "replay") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
