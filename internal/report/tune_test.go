package report_test

import (
	"testing"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/experiment/tune"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/reporttest"
)

// TestAfterIsOfTheFinalConfirmation checks that the figure after belongs to the valid confirmation:
// the second, or the first if the time ran out in the second and the whole set stayed.
func TestAfterIsOfTheFinalConfirmation(t *testing.T) {
	change := func(id knob.ID) tune.Change { return tune.Change{Knob: id, Side: tune.Near} }
	segment := func(attempt int, arm string, objective float64) tune.Segment {
		return tune.Segment{Phase: tune.PhaseConfirmation, Trial: attempt, Arm: arm, Objective: objective}
	}
	o := tune.Outcome{
		Ablation: []tune.Ablation{{Knob: "link:eth0/mtu", Side: tune.Near},
			{Knob: "link:eth0/txqueuelen", Side: tune.Near, Needed: true}},
		Kept:     []tune.Change{change("link:eth0/txqueuelen")},
		Segments: []tune.Segment{segment(0, "A", 5), segment(0, "B", 10), segment(1, "A", 6), segment(1, "B", 9)},
	}
	for _, tc := range []struct {
		kept []tune.Change
		want float64
	}{
		{[]tune.Change{change("link:eth0/txqueuelen")}, 9},
		{[]tune.Change{change("link:eth0/mtu"), change("link:eth0/txqueuelen")}, 10},
	} {
		o.Kept = tc.kept
		d := report.NewTune(reporttest.Envelope(), report.TuneRun{Goal: "throughput", Outcome: &o})
		if d.After == nil || d.After.Objective != tc.want {
			t.Errorf("%d kept: after is %+v; want %v", len(tc.kept), d.After, tc.want)
		}
	}
}
