package reporttest

import (
	"errors"
	"slices"
	"testing"

	"github.com/linerate/linerate/internal/experiment/tune"
	"github.com/linerate/linerate/internal/report"
)

// StoredRun returns the sample run with the effects that follow from its segments, as in real runs.
func StoredRun(t testing.TB) *report.TuneDocument {
	t.Helper()
	r := Run()
	r.ID = "20261120-120000-7f3a"
	r.Outcome.Design = &tune.Design{Confidence: 0.95, MinUsefulEffect: 0.01, PilotPairs: 6,
		Looks: []int{6, 10, 16}, Seed: "7"}
	again, err := tune.Reanalyse(r.Outcome, tune.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	r.Outcome.Pilot = again.Pilot
	for _, c := range again.Comparisons {
		switch c.Phase {
		case tune.PhaseTrial:
			r.Outcome.Trials[c.Trial].Effect = c.Again
		case tune.PhaseConfirmation:
			r.Outcome.Final = &c.Again
		}
	}
	return report.NewTune(Envelope(), r)
}

// Reports returns a run judged again by its own rules, by stricter ones, with a forged number, and
// without an end.
func Reports(t testing.TB) map[string]*report.ReportDocument {
	t.Helper()
	all := map[string]*report.ReportDocument{}
	add := func(name string, run *report.TuneDocument, rules tune.Rules) {
		d, err := report.NewReport(Envelope(), "/var/lib/linerate/runs/20261120-120000-7f3a.json", run, rules)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = d
	}
	add("report", StoredRun(t), tune.Rules{})
	add("report-stricter", StoredRun(t), tune.Rules{Confidence: 0.99})
	forged := StoredRun(t)
	forged.Trials = slices.Clone(forged.Trials)
	forged.Trials[0].Ratio = 9
	forged.Design = nil
	add("report-forged", forged, tune.Rules{})
	short := StoredRun(t)
	short.Segments, short.Trials, short.Kept, short.Final, short.After = short.Segments[:17], short.Trials[:0],
		short.Kept[:0], nil, nil
	short.Changes, short.State, short.Unfinished = short.Changes[:0], tune.StateUndone, "interrupted"
	add("report-unfinished", short, tune.Rules{})
	lost := StoredRun(t)
	lost.PossiblyCommitted, lost.Kept, lost.Changes = lost.Kept, lost.Kept[:0], lost.Changes[:0]
	lost.State, lost.Unfinished = tune.StateTrial, "still running, or killed while its hosts committed"
	add("report-lost", lost, tune.Rules{})
	return all
}

func runList(t testing.TB) *report.RunsDocument {
	t.Helper()
	reports := Reports(t)
	latency := report.NewTune(Envelope(), latencyRun())
	latency.Target = "ssh://root@a-host-with-a-very-long-name.example.net:2222"
	return report.NewRuns(Envelope(), "/var/lib/linerate/runs", []report.RunEntry{
		report.NewRunEntry("20261120-120400-00ff", reports["report-unfinished"].Run),
		report.NewRunEntry("20261120-120300-0003", latency),
		report.UnreadableRun("20261120-120200-0002",
			errors.New("not the document of a run: unexpected end of JSON input")),
		report.NewRunEntry("20261120-120100-0001", report.NewTune(Envelope(), nothingRun())),
		report.NewRunEntry("20261120-120000-7f3a", reports["report"].Run),
	})
}
