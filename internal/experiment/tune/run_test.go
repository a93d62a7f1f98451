package tune

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/change/knob"
)

const (
	rmem = knob.ID("sysctl:net.ipv4.tcp_rmem")
	wmem = knob.ID("sysctl:net.ipv4.tcp_wmem")
	mtu  = knob.ID("link:eth0/mtu")
	tso  = knob.ID("ethtool:eth0/feature.tx-tcp-segmentation")
)

// longFatPath is a world like the demo's: first the far window and then the near send buffer limits
// the flow; the other two knobs do nothing.
func longFatPath() *world {
	w := newWorld(map[Side]map[knob.ID]knob.Value{
		Near: {wmem: "256", mtu: "1500", tso: "on"},
		Far:  {rmem: "64", mtu: "1500"},
	}, func(w *world) float64 {
		// The windows, in KiB, over a path that takes 2500 KiB to fill.
		return 941e6 * min(1, number(w.hosts[Far].values[rmem])/2500, number(w.near(wmem))/2500)
	})
	random := rand.New(rand.NewPCG(42, 42))
	w.noise = func(int) float64 { return 0.02 * random.NormFloat64() }
	return w
}

func number(v knob.Value) float64 {
	f, err := strconv.ParseFloat(string(v), 64)
	if err != nil {
		panic(err)
	}
	return f
}

func longFatCandidates() []Candidate {
	return []Candidate{
		{Knob: rmem, Side: Far, Levels: []knob.Value{"6144"}, Why: "the receive window limits"},
		{Knob: mtu, Side: Near, Levels: []knob.Value{"1400"}, Why: "a null knob"},
		{Knob: wmem, Side: Near, Levels: []knob.Value{"4096"}, Why: "the send buffer limits next"},
		{Knob: tso, Side: Near, Levels: []knob.Value{"off"}, Why: "another null knob"},
	}
}

func configFor(w *world) Config {
	c := DefaultConfig()
	c.Seed, c.Now = 1, w.now
	return c
}

func verdicts(out *Outcome) string {
	var b strings.Builder
	for _, t := range out.Trials {
		fmt.Fprintf(&b, "%s %s %s→%s %s\n", t.Side, t.Knob, t.From, t.To, t.Verdict)
	}
	return b.String()
}

func TestWholeTune(t *testing.T) {
	w := longFatPath()
	var lines []string
	out, err := runDefault(t.Context(), configFor(w), w, longFatCandidates(), func(e Event) {
		if e.Text != "" && e.Kind != EventEstimate {
			lines = append(lines, e.Text)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `far sysctl:net.ipv4.tcp_rmem 64→6144 kept
near link:eth0/mtu 1500→1400 reverted-unproven
near sysctl:net.ipv4.tcp_wmem 256→4096 kept
near ethtool:eth0/feature.tx-tcp-segmentation on→off reverted-unproven
`
	if diff := cmp.Diff(want, verdicts(out)); diff != "" {
		t.Errorf("verdicts:\n%s\n%s", diff, strings.Join(lines, "\n"))
	}
	if out.State != StateCommitted || out.Unreliable || out.Partial {
		t.Errorf("state %s, unreliable %v, partial %v", out.State, out.Unreliable, out.Partial)
	}
	// 2500/64 in total, in an interval that covers it.
	if f := out.Final; f == nil || f.Low < 35 || f.High > 44 || f.Ratio < f.Low || f.Ratio > f.High {
		t.Errorf("final effect %v, want about ×39", out.Final)
	}
	if w.hosts[Far].values[rmem] != "6144" || w.near(wmem) != "4096" || w.near(mtu) != "1500" || w.near(tso) != "on" {
		t.Errorf("values are %v and %v", w.hosts[Near].values, w.hosts[Far].values)
	}
	for side, h := range w.hosts {
		for _, c := range h.changes {
			if !c.undone && !c.committed {
				t.Errorf("%s change of %s is neither undone nor committed", side, c.knob)
			}
		}
	}
	wantKept := []Change{
		{Knob: rmem, Side: Far, From: "64", To: "6144"},
		{Knob: wmem, Side: Near, From: "256", To: "4096"},
	}
	for i := range out.Kept {
		if out.Kept[i].ID == "" {
			t.Errorf("kept change %d has no id", i)
		}
		out.Kept[i].ID = ""
	}
	if diff := cmp.Diff(wantKept, out.Kept); diff != "" {
		t.Error(diff)
	}
	if len(out.Ablation) != 2 || !out.Ablation[0].Needed || out.Ablation[0].Reused || !out.Ablation[1].Needed ||
		out.Ablation[1].Reused {
		t.Errorf("ablation %+v, want both needed, each by fresh pairs: of four trials one may have been lucky",
			out.Ablation)
	}
	if out.Interaction == nil || math.Abs(out.Interaction.Ratio-1) > 0.1 ||
		!strings.Contains(out.Interaction.Text, "it needs them") {
		t.Errorf("interaction %+v, want the product of the trials, and that the window needs the buffer",
			out.Interaction)
	}
	// A pilot of twice six pairs, four trials, confirmation and two ablations, nearly all decided
	// at the first look.
	if len(out.Segments) > 120 {
		t.Errorf("%d segments, a live run of five minutes has time for about 200", len(out.Segments))
	}
	t.Logf("%d segments, %.0f s\n%s", len(out.Segments),
		w.clock.Sub(time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)).Seconds(), strings.Join(lines, "\n"))
}

// TestDocument checks the keys that outside checks read, and that all numbers are valid JSON.
func TestDocument(t *testing.T) {
	w := longFatPath()
	w.guards = func(*world) map[string]float64 {
		return map[string]float64{"rtt_p99_seconds": 0.02, "odd": math.Inf(1), "not": math.NaN()}
	}
	candidates := append(longFatCandidates(),
		Candidate{Knob: "link:eth1/mtu", Side: Near, Levels: []knob.Value{"9000"}})
	out, err := runDefault(t.Context(), configFor(w), w, candidates, nil)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Trials []map[string]any
		Final  map[string]any
		State  string
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	for i, trial := range doc.Trials {
		for _, key := range []string{"knob", "side", "pairs", "verdict"} {
			if _, ok := trial[key]; !ok {
				t.Errorf("trial %d has no %q: %v", i, key, trial)
			}
		}
		_, measured := trial["effect_ratio"]
		for _, key := range []string{"from", "to", "effect_low_ratio", "effect_high_ratio"} {
			if _, ok := trial[key]; ok != measured && key != "to" {
				t.Errorf("trial %d: %q present is %v, measured is %v", i, key, ok, measured)
			}
		}
	}
	for _, key := range []string{"effect_ratio", "effect_low_ratio", "effect_high_ratio", "pairs"} {
		if _, ok := doc.Final[key]; !ok {
			t.Errorf("final has no %q: %v", key, doc.Final)
		}
	}
	if doc.State != "committed" || doc.Trials[4]["verdict"] != "refused" {
		t.Errorf("state %q, last verdict %v", doc.State, doc.Trials[4]["verdict"])
	}
}

func TestVerdicts(t *testing.T) {
	catalogue := map[knob.ID]knob.Definition{
		rmem: {Disturbance: knob.DisturbsNewSockets},
		mtu:  {Disturbance: knob.DisturbsLink},
		tso:  {Disturbance: knob.DisturbsNothing, Advise: true, Risk: "a risk"},
	}
	lookup := func(id knob.ID) (knob.Definition, bool) { d, ok := catalogue[id]; return d, ok }
	one := func(id knob.ID, side Side, levels ...knob.Value) []Candidate {
		return []Candidate{{Knob: id, Side: side, Levels: levels}}
	}
	tests := []struct {
		name      string
		prepare   func(w *world, c *Config)
		candidate []Candidate
		verdict   Verdict
		reason    string // part of it
	}{
		{"helps", nil, one(wmem, Near, "9000"), RevertedUnproven, "no prospect"}, // behind the receive window
		{"kept", nil, one(rmem, Far, "6144"), Kept, "gains ×"},
		{"worse", nil, one(rmem, Far, "32"), RevertedWorse, "worse"},
		{"nothing gets through", nil, one(rmem, Far, "0"), RevertedWorse, "worse"},
		{"present already, spaced differently", nil, one(rmem, Far, " 64\t"), Refused, "is 64 already"},
		{"no such host", nil, one(rmem, "middle", "1"), Refused, "no host"},
		{"no level", nil, one(rmem, Far), Refused, "no level"},
		{"not there", nil, one("link:eth9/mtu", Near, "9000"), Refused, "not exist"},
		{"unknown", func(_ *world, c *Config) { c.Lookup = lookup }, one("sysctl:made.up", Near, "1"), Refused,
			"not in the catalogue"},
		{"disturbs", func(_ *world, c *Config) { c.Lookup = lookup }, one(mtu, Near, "1400"), Refused,
			"class d3, allowed is d1"},
		{"only reported", func(_ *world, c *Config) { c.Lookup = lookup }, one(tso, Near, "off"), Refused,
			"only ever reported: a risk"},
		{"caller's veto", func(_ *world,
			c *Config) {
			c.Refuse = func(Candidate) string { return "carries this session" }
		}, one(mtu, Near, "1400"), Refused, "carries this session"},
		{"not permitted", func(w *world,
			_ *Config) {
			w.hosts[Far].refuse[rmem] = fmt.Errorf("write: %w", fs.ErrPermission)
		}, one(rmem, Far, "6144"), Refused, "permission"},
		{"not supported", func(w *world, _ *Config) { w.hosts[Far].refuse[rmem] = knob.ErrNotSupported },
			one(rmem, Far, "6144"), Refused, "not supported"},
		{"out of range", func(w *world, _ *Config) {
			w.hosts[Far].refuse[rmem] = &knob.RangeError{Value: "6144", Allowed: "less"}
		}, one(rmem, Far, "6144", "7000"), Refused, "want less"},
		{"guard-rail", func(w *world, _ *Config) {
			w.guards = func(w *world) map[string]float64 {
				return map[string]float64{"rtt_p99_seconds": 0.020 * number(w.hosts[Far].values[rmem]) / 64}
			}
		}, one(rmem, Far, "640"), RevertedWorse, "rtt_p99_seconds becomes worse by at least"},
		{"guard-rail below its floor", func(w *world, _ *Config) {
			w.guards = func(w *world) map[string]float64 {
				return map[string]float64{"rtt_p99_seconds": 0.00001 * number(w.hosts[Far].values[rmem]) / 64}
			}
		}, one(rmem, Far, "640"), Kept, "gains"},
		{"guard-rail without a bound", func(w *world, _ *Config) {
			w.guards = func(w *world) map[string]float64 {
				return map[string]float64{"interrupts": number(w.hosts[Far].values[rmem])}
			}
		}, one(rmem, Far, "640"), Kept, "gains"},
		{"disturbed from the trial on", func(w *world, _ *Config) {
			w.discard = func(segment int) string {
				if segment >= 24 {
					return "steal 30 %"
				}
				return ""
			}
		}, one(rmem, Far, "6144"), RevertedUnproven, "no clean segment in 4 tries: steal 30 %"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := longFatPath()
			c := configFor(w)
			if tt.prepare != nil {
				tt.prepare(w, &c)
			}
			out, err := runDefault(t.Context(), c, w, tt.candidate, nil)
			if err != nil {
				t.Fatal(err)
			}
			got := out.Trials[0]
			if got.Verdict != tt.verdict || !strings.Contains(got.Reason, tt.reason) {
				t.Errorf("verdict %s (%s), want %s (…%s…)", got.Verdict, got.Reason, tt.verdict, tt.reason)
			}
			if h := w.hosts[got.Side]; h != nil && got.From != h.original[got.Knob] {
				t.Errorf("the present value is %q, the trial has %q", h.original[got.Knob], got.From)
			}
			if got.Verdict != Kept {
				w.pristine(t, "after")
				if out.State != StateUndone || len(out.Kept) != 0 || out.Final == nil || out.Final.Ratio != 1 {
					t.Errorf("state %s, kept %v, final %v; want nothing changed", out.State, out.Kept, out.Final)
				}
			} else if out.State != StateCommitted {
				t.Errorf("state %s: %s", out.State, out.Reason)
			}
		})
	}
}

// TestAblation plants a knob that helps at first and that a later one makes redundant.
func TestAblation(t *testing.T) {
	w := newWorld(map[Side]map[knob.ID]knob.Value{Near: {mtu: "0", wmem: "0", tso: "0"}}, func(w *world) float64 {
		// the second does all that the first does, and more
		gain := max(1+0.3*number(w.near(mtu)), 1+0.5*number(w.near(wmem)))
		return 1e9 * gain * (1 + 0.2*number(w.near(tso)))
	})
	random := rand.New(rand.NewPCG(1, 2))
	w.noise = func(int) float64 { return 0.01 * random.NormFloat64() }
	out, err := runDefault(t.Context(), configFor(w), w, []Candidate{
		{Knob: mtu, Side: Near, Levels: []knob.Value{"1"}},
		{Knob: wmem, Side: Near, Levels: []knob.Value{"1"}},
		{Knob: tso, Side: Near, Levels: []knob.Value{"1"}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if w.near(mtu) != "0" || w.near(wmem) != "1" || w.near(tso) != "1" || out.State != StateCommitted {
		t.Errorf("values %v, state %s: %s", w.hosts[Near].values, out.State, out.Reason)
	}
	if out.Trials[0].Verdict != RevertedUnproven || !strings.Contains(out.Trials[0].Reason, "no longer needed") {
		t.Errorf("the redundant knob's verdict is %s: %s", out.Trials[0].Verdict, out.Trials[0].Reason)
	}
	if len(out.Kept) != 2 || math.Abs(out.Final.Ratio-1.8) > 0.03 {
		t.Errorf("kept %v with %v, want two and ×1.8", out.Kept, out.Final)
	}
	last := out.Segments[len(out.Segments)-1]
	if last.Phase != PhaseConfirmation {
		t.Errorf("the last segment belongs to the %s, want a fresh confirmation of what remains", last.Phase)
	}
}

// TestUnconfirmed plants a gain that exists only while the knob is on trial alone, as a lucky hour
// does.
func TestUnconfirmed(t *testing.T) {
	w := newWorld(map[Side]map[knob.ID]knob.Value{Near: {mtu: "0"}}, nil)
	w.gain = func(w *world) float64 {
		if w.segments < 24 && w.near(mtu) == "1" {
			return 2e9
		}
		return 1e9
	}
	out, err := runDefault(t.Context(), configFor(w), w,
		[]Candidate{{Knob: mtu, Side: Near, Levels: []knob.Value{"1"}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.pristine(t, "unconfirmed")
	if out.State != StateUndone || out.Trials[0].Verdict != RevertedUnproven ||
		!strings.Contains(out.Reason, "not confirmed") {
		t.Errorf("state %s, verdict %s, reason %s", out.State, out.Trials[0].Verdict, out.Reason)
	}
	for _, call := range w.log {
		if call == "commit" {
			t.Error("something was committed")
		}
	}
}

func TestPilot(t *testing.T) {
	t.Run("unreliable", func(t *testing.T) {
		// A disturbance that follows the arms: the first segment of a pair is always the faster
		// one, by the coin of this seed.
		w := longFatPath()
		c := configFor(w)
		coin := rand.New(rand.NewPCG(c.Seed, 0x6c696e6572617465))
		var slow []bool
		for range 24 {
			first := coin.IntN(2)
			slow = append(slow, first == 0, first == 1) // A is slow wherever it stands
		}
		w.noise = func(segment int) float64 {
			if slow[segment] {
				return -0.1 + 0.001*float64(segment%5)
			}
			return 0.001 * float64(segment%3)
		}
		out, err := runDefault(t.Context(), c, w, longFatCandidates(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if !out.Unreliable || out.Pilot.Attempts != 2 || len(out.Trials) != 0 || out.State != StateUndone ||
			len(out.Warnings) == 0 {
			t.Errorf("unreliable %v after %d attempts, %d trials, state %s, warnings %v", out.Unreliable,
				out.Pilot.Attempts, len(out.Trials), out.State, out.Warnings)
		}
	})
	t.Run("disturbed", func(t *testing.T) {
		w := longFatPath()
		w.discard = func(int) string { return "cross traffic" }
		out, err := runDefault(t.Context(), configFor(w), w, longFatCandidates(), nil)
		if err != nil || !out.Unreliable || out.Discarded != 4 || len(out.Segments) != 4 {
			t.Errorf("err %v, unreliable %v, %d of %d segments discarded", err, out.Unreliable, out.Discarded,
				len(out.Segments))
		}
	})
	t.Run("a few discards", func(t *testing.T) {
		w := longFatPath()
		w.discard = func(segment int) string {
			if segment%5 == 0 {
				return "link event"
			}
			return ""
		}
		out, err := runDefault(t.Context(), configFor(w), w, longFatCandidates(), nil)
		if err != nil || out.State != StateCommitted || out.Discarded == 0 {
			t.Errorf("err %v, state %s, %d discarded", err, out.State, out.Discarded)
		}
	})
	t.Run("resolution", func(t *testing.T) {
		w := longFatPath()
		out, err := runDefault(t.Context(), configFor(w), w, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		p := out.Pilot
		if p.Pairs != 12 || p.PairNoise < 0.005 || p.PairNoise > 0.08 || p.MinUsefulEffect < 0.01 ||
			p.ResolvableEffect <= p.MinUsefulEffect {
			t.Errorf("pilot %+v of a bench with 2.8 %% noise a pair", p)
		}
		if math.Abs(out.Baseline.Objective/(941e6*64/2500)-1) > 0.03 || out.Baseline.Segments != 24 {
			t.Errorf("baseline %+v", out.Baseline)
		}
	})
}

func TestBudget(t *testing.T) {
	for _, budget := range []time.Duration{time.Millisecond, 10 * time.Second, 30 * time.Second, 60 * time.Second,
		80 * time.Second, 100 * time.Second, 115 * time.Second, time.Hour} {
		w := longFatPath()
		start := w.clock
		c := configFor(w)
		c.Budget = budget
		out, err := runDefault(t.Context(), c, w, longFatCandidates(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if used := w.clock.Sub(start); used > budget+1500*time.Millisecond {
			t.Errorf("budget %v: used %v", budget, used)
		}
		if out.Partial != (budget < time.Hour) {
			t.Errorf("budget %v: partial is %v", budget, out.Partial)
		}
		switch out.State {
		case StateUndone:
			w.pristine(t, budget.String())
			if budget > 70*time.Second {
				t.Errorf("budget %v is enough for one kept change and its confirmation: %s", budget, out.Reason)
			}
		case StateCommitted:
			if out.Final == nil || out.Final.Low < 1.01 {
				t.Errorf("budget %v: committed with %v", budget, out.Final)
			}
		default:
			t.Errorf("budget %v: state %s", budget, out.State)
		}
	}
}

// TestBudgetKnowsSlowChanges checks that a proven trial is not lost because a slow change, such as
// a ring that takes its driver seconds, used up the time for the confirmation.
func TestBudgetKnowsSlowChanges(t *testing.T) {
	kept := 0
	for budget := 150 * time.Second; budget <= 600*time.Second; budget += 15 * time.Second {
		w := longFatPath()
		w.slow = 4 * time.Second
		c := configFor(w)
		c.Budget = budget
		out, err := runDefault(t.Context(), c, w, longFatCandidates(), nil)
		if err != nil {
			t.Fatal(err)
		}
		proven := 0
		for _, trial := range out.Trials {
			if strings.HasPrefix(trial.Reason, "gains") {
				proven++
			}
		}
		if proven > 0 && out.State != StateCommitted {
			t.Errorf("budget %v: %d trials were proven and nothing is kept: %s", budget, proven, out.Reason)
		}
		if out.State == StateCommitted {
			kept++
		}
	}
	if kept == 0 {
		t.Error("nothing was ever kept")
	}
}

func TestHoldCommit(t *testing.T) {
	w := longFatPath()
	c := configFor(w)
	c.HoldCommit = true
	out, err := runDefault(t.Context(), c, w, longFatCandidates(), nil)
	if err != nil || out.State != StateTrial || len(out.Kept) != 2 || out.Kept[0].ID == "" {
		t.Fatalf("err %v, state %s, kept %v", err, out.State, out.Kept)
	}
	for _, h := range w.hosts {
		for _, change := range h.changes {
			if change.committed {
				t.Errorf("%s is committed", change.knob)
			}
		}
	}
	if w.hosts[Far].values[rmem] != "6144" {
		t.Error("the held change is not in force")
	}
}

func TestMaxTrials(t *testing.T) {
	w := longFatPath()
	c := configFor(w)
	c.MaxTrials = 1
	out, err := runDefault(t.Context(), c, w, longFatCandidates(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if out.Trials[0].Verdict != Kept || out.Trials[1].Verdict != Refused || out.State != StateCommitted {
		t.Errorf("%s%s", verdicts(out), out.State)
	}
}

// TestSeed checks that an experiment repeats exactly, and that another seed orders the arms
// differently.
func TestSeed(t *testing.T) {
	order := func(seed uint64) string {
		w := longFatPath()
		c := configFor(w)
		c.Seed = seed
		out, err := runDefault(t.Context(), c, w, longFatCandidates(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for _, s := range out.Segments {
			b.WriteString(s.Arm)
		}
		return b.String()
	}
	first, again := order(1), order(1)
	if first != again {
		t.Error("the same seed gave another order")
	}
	if first == order(2) {
		t.Error("another seed gave the same order")
	}
}

func TestConfigRefuses(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"effect":     func(c *Config) { c.MinUsefulEffect = -1 },
		"confidence": func(c *Config) { c.Confidence = 1 },
		"pilot":      func(c *Config) { c.PilotPairs = 3 },
		"looks":      func(c *Config) { c.Looks = []int{2, 4} },
		"no order":   func(c *Config) { c.Looks = []int{10, 6} },
	} {
		c := DefaultConfig()
		change(&c)
		w := longFatPath()
		out, err := Run(t.Context(), c, w, w.tuneHosts(), longFatCandidates(), nil)
		if err == nil || out == nil || w.calls != 0 {
			t.Errorf("%s: error %v after %d calls", name, err, w.calls)
		}
	}
}

func TestEffectString(t *testing.T) {
	for want, e := range map[string]Effect{
		"effect not known":          {},
		"×25.3 (×24.8…×25.9)":       {Ratio: 25.3, Low: 24.8, High: 25.9},
		"+3.2 % (+1.4 %…+5.1 %)":    {Ratio: 1.032, Low: 1.014, High: 1.051},
		"-0.4 %":                    {Ratio: 0.996},
		"×0.250 (×0.200…×0.300)":    {Ratio: 0.25, Low: 0.2, High: 0.3},
		"+60.0 % (+50.0 %…+70.0 %)": {Ratio: 1.6, Low: 1.5, High: 1.7},
		// A millionth stands for nothing (stats.PairedLogRatio).
		"something where there was nothing": {Ratio: 1e6, Low: 1e6, High: 1e6},
		"×50 or more":                       {Ratio: 7071, Low: 50, High: 1e6},
		"nothing is left":                   {Ratio: 1e-6, Low: 1e-6, High: 0.9},
		"×0.900 or less":                    {Ratio: 0.001, Low: 1e-6, High: 0.9},
		"+50.0 % (at least -10.0 %)":        {Ratio: 1.5, Low: 0.9, High: 1e6},
		"-20.0 % (at most +10.0 %)":         {Ratio: 0.8, Low: 1e-6, High: 1.1},
		"+10.0 %":                           {Ratio: 1.1, Low: 1e-6, High: 1e6},
		// What rounds to nothing has no sign.
		"0.0 % (-0.1 %…0.0 %)": {Ratio: 0.99996, Low: 0.9993, High: 1.0004},
		// What is proven does not read as nothing.
		"-0.03 % (-0.10 %…-0.02 %)":    {Ratio: 0.9997, Low: 0.9990, High: 0.9998},
		"+0.004 % (+0.002 %…+0.007 %)": {Ratio: 1.00004, Low: 1.00002, High: 1.00007},
		"0.0000 % (0.0000 %…0.0000 %)": {Ratio: 1 + 2e-9, Low: 1 + 1e-9, High: 1 + 3e-9},
	} {
		if got := e.String(); got != want {
			t.Errorf("%+v prints as %q, want %q", e, got, want)
		}
	}
}
