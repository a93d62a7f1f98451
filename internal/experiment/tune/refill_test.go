package tune

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/change/knob"
)

func TestRefill(t *testing.T) {
	// The send buffer comes first and does nothing as long as the receive window limits the flow;
	// the refill proposes it again.
	w := longFatPath()
	c := configFor(w)
	var asked [][]Change
	c.Refill = func(_ context.Context, kept []Change) ([]Candidate, bool, error) {
		asked = append(asked, kept)
		return []Candidate{
			{Knob: wmem, Side: Near, Levels: []knob.Value{"4096"}},
			{Knob: rmem, Side: Far, Levels: []knob.Value{"6144"}}, // kept at this level: not tried again
			{Knob: tso, Side: Near, Levels: []knob.Value{"off"}},
		}, false, nil
	}
	out, err := runDefault(t.Context(), c, w, []Candidate{
		{Knob: wmem, Side: Near, Levels: []knob.Value{"4096"}},
		{Knob: rmem, Side: Far, Levels: []knob.Value{"6144"}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := `near sysctl:net.ipv4.tcp_wmem 256→4096 reverted-unproven
far sysctl:net.ipv4.tcp_rmem 64→6144 kept
near sysctl:net.ipv4.tcp_wmem 256→4096 kept
near ethtool:eth0/feature.tx-tcp-segmentation on→off reverted-unproven
`
	if diff := cmp.Diff(want, verdicts(out)); diff != "" {
		t.Error(diff)
	}
	if len(asked) != 2 || len(asked[0]) != 1 || asked[0][0].Knob != rmem || len(asked[1]) != 2 {
		t.Errorf("refill was asked with %v", asked)
	}

	w = longFatPath()
	c = configFor(w)
	c.Refill = func(context.Context, []Change) ([]Candidate, bool, error) { return nil, false, errInjected }
	if _, err := runDefault(t.Context(), c, w, longFatCandidates(), nil); !errors.Is(err, errInjected) {
		t.Errorf("error %v, want the refill's", err)
	}
	w.pristine(t, "refill failed")
}

func TestRefillGoesFurther(t *testing.T) {
	// A verdict under a narrow window cannot know how much is needed; the next one asks for a
	// larger level of the same knob.
	w := longFatPath()
	c := configFor(w)
	c.Refill = func(context.Context, []Change) ([]Candidate, bool, error) {
		return []Candidate{{Knob: rmem, Side: Far, Levels: []knob.Value{"128", "6144"}}}, false, nil
	}
	out, err := runDefault(t.Context(), c, w, []Candidate{{Knob: rmem, Side: Far, Levels: []knob.Value{"128"}}},
		nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Kept) != 1 || out.Kept[0].From != "64" || out.Kept[0].To != "6144" {
		t.Errorf("kept %+v, want one change from the original to 6144\n%s", out.Kept, verdicts(out))
	}
	if len(out.Trials) != 2 {
		t.Errorf("%d trials, want 2: levels that were tried are not asked for again\n%s", len(out.Trials),
			verdicts(out))
	}
}

func TestRefillSaysEnough(t *testing.T) {
	// The path is full: the other candidates of an older verdict are not tried.
	w := longFatPath()
	c := configFor(w)
	c.Refill = func(context.Context, []Change) ([]Candidate, bool, error) { return nil, true, nil }
	out, err := runDefault(t.Context(), c, w, []Candidate{
		{Knob: rmem, Side: Far, Levels: []knob.Value{"6144"}},
		{Knob: tso, Side: Near, Levels: []knob.Value{"off"}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Trials) != 1 || out.State != StateCommitted {
		t.Errorf("state %s, trials:\n%s", out.State, verdicts(out))
	}
}
