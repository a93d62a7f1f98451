package matrix

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/lab/scenario"
	"github.com/linerate/linerate/internal/report"
)

// tuner answers for guests.
type tuner struct{}

func (tuner) Play(_ context.Context, cases []Case, runs int, each func(report.TuneMatrixCase)) error {
	for _, c := range cases {
		for run := range runs {
			m := Untuned(c, run+1, "6.1", "", false)
			m.Document = json.RawMessage(`{"schema":"linerate.tune/1"}`)
			each(m)
		}
	}
	return nil
}

func TestRepairable(t *testing.T) {
	fault := map[scenario.Level]scenario.Fault{scenario.Gross: {}, scenario.Mild: {}}
	tunable := scenario.Expectation{Tunable: true}
	cases := Select([]scenario.Scenario{
		{Name: "knob", Levels: fault, Expect: tunable},
		{Name: "cable", Levels: fault},
		{Name: "others suffer", Levels: fault, Expect: tunable, Mode: scenario.PassiveFar},
		{Name: "sound", Expect: tunable},
	}, Filter{})
	if d := cmp.Diff([]string{"knob/mild", "knob/gross"}, names(Repairable(cases))); d != "" {
		t.Error(d)
	}
}

func TestTuneAsksGuests(t *testing.T) {
	cases := []Case{{scenario.Scenario{Name: "card", Ground: scenario.Guest, Tuning: scenario.Tuning{Goal: "latency"}},
		scenario.Gross}}
	all, err := Tune(t.Context(), cases, TuneOptions{})
	if err != nil || len(all) != 1 || !all[0].Skipped || all[0].Tuned || all[0].Goal != "latency" ||
		all[0].Reason != "it needs a guest" {
		t.Errorf("without guests: %v %+v", err, all)
	}
	dir, heard := filepath.Join(t.TempDir(), "tunes"), 0
	all, err = Tune(t.Context(), cases,
		TuneOptions{Runs: 2, Guest: tuner{}, Out: dir, Done: func(report.TuneMatrixCase) { heard++ }})
	if err != nil || len(all) != 2 || heard != 2 || all[1].Run != 2 || all[1].Reason != "" || all[0].Document != nil {
		t.Errorf("%v %+v", err, all)
	}
	for _, name := range []string{"card.gross.json", "card.gross.2.json"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

// The knobs without an effect are names of the catalogue and disturb no connection. Without this
// test a misspelt knob would never be tried, unnoticed.
func TestNullKnobs(t *testing.T) {
	c, err := Nulls()
	if err != nil || !c.Scenario.Sound() || c.Level != "" {
		t.Fatalf("%v %+v", err, c)
	}
	seen := map[string]bool{}
	for _, name := range nullKnobs {
		d, ok := knob.Catalogue().Lookup(
			knob.ID(strings.NewReplacer("ethtool:*", "ethtool:eth0", "neigh.*", "neigh.eth0").Replace(name)))
		if !ok || d.Advise || d.Disturbance > knob.DisturbsNewSockets || seen[name] {
			t.Errorf("%s: known %v, disturbs %v, twice %v", name, ok, d.Disturbance, seen[name])
		}
		seen[name] = true
	}
	if n := len(nullKnobs); n < 20 {
		t.Errorf("%d names: forty candidates at two ends need twenty at least", n)
	}
	if flags := Nulled(7); flags[len(flags)-1] != "7" {
		t.Errorf("%v", flags)
	}
}
