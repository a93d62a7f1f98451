package tune

import (
	"testing"

	"github.com/linerate/linerate/internal/change/knob"
)

// TestTogether plants two equal limits in series: neither remedy shows anything alone, and a third
// knob does nothing at all.
func TestTogether(t *testing.T) {
	w := longFatPath()
	w.hosts[Near].values[wmem], w.hosts[Near].original[wmem] = "64", "64"
	out, err := runDefault(t.Context(), configFor(w), w, []Candidate{
		{Knob: rmem, Side: Far, Levels: []knob.Value{"1024", "6144"}, Why: "the receive window limits"},
		{Knob: mtu, Side: Near, Levels: []knob.Value{"1400"}, Why: "a null knob"},
		{Knob: wmem, Side: Near, Levels: []knob.Value{"4096"}, Why: "the send buffer limits"},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if out.State != StateCommitted || w.hosts[Far].values[rmem] != "6144" || w.near(wmem) != "4096" ||
		w.near(mtu) != "1500" {
		t.Errorf("state %s (%s), values %v %v\n%s", out.State, out.Reason, w.hosts[Far].values, w.hosts[Near].values,
			verdicts(out))
	}
	if len(out.Trials) != 6 || !out.Trials[3].Joint || out.Trials[3].Verdict != Kept ||
		out.Trials[4].Verdict != RevertedUnproven || out.Trials[5].Verdict != Kept {
		t.Errorf("verdicts\n%s", verdicts(out))
	}
	if len(out.Kept) != 2 || out.Final.Low < 35 {
		t.Errorf("kept %v with %v", out.Kept, out.Final)
	}

	// Without any effect, the joint trial finds nothing either.
	w = longFatPath()
	out, err = runDefault(t.Context(), configFor(w), w, []Candidate{
		{Knob: mtu, Side: Near, Levels: []knob.Value{"1400"}},
		{Knob: tso, Side: Near, Levels: []knob.Value{"off"}},
	}, nil)
	if err != nil || out.State != StateUndone || len(out.Trials) != 4 {
		t.Errorf("error %v, state %s\n%s", err, out.State, verdicts(out))
	}
	w.pristine(t, "nothing together")
}
