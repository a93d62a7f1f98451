package loop

import (
	"testing"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/experiment/tune"
)

// TestNothingTried checks the outcome of a plan without a candidate that can be tried, also where a
// finding proposes a knob without a level.
func TestNothingTried(t *testing.T) {
	p := &Plan{Candidates: []Planned{
		{Candidate: tune.Candidate{Knob: "link:eth0/mtu", Side: tune.Near}, From: "1500", Refused: "no level to try"},
		{Candidate: tune.Candidate{Knob: "link:eth0/mtu", Side: tune.Far, Levels: []knob.Value{"1400", "9000"}},
			Refused: "not permitted"},
	}}
	o := p.nothingTried(false)
	if len(o.Trials) != 2 || o.Trials[0].To != "" || o.Trials[1].To != "9000" || o.Trials[1].Verdict != tune.Refused {
		t.Errorf("trials %+v", o.Trials)
	}
}
