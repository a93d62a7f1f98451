package tune

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/change/knob"
)

// TestBudgetTooSmall checks that the run reports before any change what a budget cannot resolve,
// and what to ask for.
func TestBudgetTooSmall(t *testing.T) {
	for _, tt := range []struct {
		name   string
		budget time.Duration
		small  bool // too small for anything
		short  bool // the comparisons are shortened
		says   string
	}{
		{"not even the pilot", 10 * time.Second, true, false,
			"too small to measure the noise of this path: a segment takes 1.50 s; ask for 1 min 00 s or more"},
		{"the pilot only", 30 * time.Second, true, true, "this path can resolve gains of "},
		{"one short trial", 60 * time.Second, false, true,
			"the budget shortens the comparisons: this path can resolve gains of "},
		{"the whole plan", 300 * time.Second, false, false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := longFatPath()
			c := configFor(w)
			c.Budget = tt.budget
			out, err := runDefault(t.Context(), c, w, longFatCandidates()[:1], nil)
			if err != nil {
				t.Fatal(err)
			}
			touched := slices.Contains(w.log, "apply")
			if out.BudgetTooSmall != tt.small || touched == tt.small || tt.small &&
				(!out.Partial || out.State != StateUndone || len(out.Trials) != 0) {
				t.Errorf("too small is %v, touched %v, partial %v, %d trials", out.BudgetTooSmall, touched, out.Partial,
					len(out.Trials))
			}
			if !tt.small && out.State != StateCommitted {
				t.Errorf("a gain of ×4 was not kept: %s", out.Reason)
			}
			// The message and the document agree, and the requested budget suffices for a complete
			// run.
			if (out.BudgetNeeded > tt.budget.Seconds()) != tt.small || tt.small &&
				!strings.Contains(out.Reason, "ask for "+unit.FormatSeconds(out.BudgetNeeded)) {
				t.Errorf("needs %v s: %s", out.BudgetNeeded, out.Reason)
			}
			if tt.small {
				w, c := longFatPath(), c
				c.Now, c.Budget = configFor(w).Now, time.Duration(out.BudgetNeeded*float64(time.Second))
				if again, err := runDefault(t.Context(), c, w, longFatCandidates()[:1], nil); err != nil ||
					again.BudgetTooSmall {
					t.Errorf("with %v: %v, %s", c.Budget, err, again.Reason)
				}
			}
			said := out.Reason + " " + strings.Join(out.Warnings, " ")
			if !strings.Contains(said, tt.says) {
				t.Errorf("said %q, want %q", said, tt.says)
			}
			if (out.Pilot != nil && out.Pilot.Unhurried != nil) != tt.short {
				t.Errorf("pilot %+v", out.Pilot)
			}
			if tt.short && (out.Pilot.Unhurried.Effect >= out.Pilot.ResolvableEffect ||
				out.Pilot.Unhurried.Seconds <= tt.budget.Seconds() || len(out.Design.Looks) >= 5 ||
				!strings.Contains(said, "; ask for ")) {
				t.Errorf("resolvable %v, unhurried %+v, looks %v: %s", out.Pilot.ResolvableEffect, out.Pilot.Unhurried,
					out.Design.Looks, said)
			}
		})
	}
}

// TestBudgetSpent checks that messages about the budget include what the caller has used before.
func TestBudgetSpent(t *testing.T) {
	var needed [2]float64
	for i, spent := range []time.Duration{0, time.Minute} {
		for _, budget := range []time.Duration{10 * time.Second, 30 * time.Second} {
			w := longFatPath()
			c := configFor(w)
			c.Budget, c.Spent, c.Asked = budget, spent, 7*time.Second
			out, err := runDefault(t.Context(), c, w, longFatCandidates()[:1], nil)
			if err != nil {
				t.Fatal(err)
			}
			if want := "the budget of 7.00 s is too small"; !strings.HasPrefix(out.Reason, want) {
				t.Errorf("%q, want %q", out.Reason, want)
			}
			needed[i] += out.BudgetNeeded
		}
	}
	if more := needed[1] - needed[0]; more < 110 || more > 150 { // twice a minute, rounded up
		t.Errorf("asks for %v s more", more)
	}
}

// TestPilotLength checks that a quiet bench has a short pilot, and a noisy one a long pilot with a
// better promise.
func TestPilotLength(t *testing.T) {
	for sigma, want := range map[float64]int{0: 6, 0.002: 6, 0.1: 12} {
		w := longFatPath()
		random := rand.New(rand.NewPCG(3, 3))
		w.noise = func(int) float64 { return sigma * random.NormFloat64() }
		out, err := runDefault(t.Context(), configFor(w), w, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if out.Pilot.Pairs != want {
			t.Errorf("σ %v: %d pairs, want %d", sigma, out.Pilot.Pairs, want)
		}
	}
}

// TestVetoFallsBack checks that a level that gains but breaks a guard-rail is followed by the next
// smaller one.
func TestVetoFallsBack(t *testing.T) {
	w := longFatPath()
	w.hosts[Near].values[wmem], w.hosts[Near].original[wmem] = "99999", "99999"
	w.guards = func(w *world) map[string]float64 {
		return map[string]float64{"rtt_p99_seconds": 0.00002 * number(w.hosts[Far].values[rmem])}
	}
	c := configFor(w)
	c.Guards = map[string]Guard{"rtt_p99_seconds": {Bound: math.Inf(1), Limit: 0.02}}
	out, err := runDefault(t.Context(), c, w,
		[]Candidate{{Knob: rmem, Side: Far, Levels: []knob.Value{"128", "900", "1500", "2400"}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := `far sysctl:net.ipv4.tcp_rmem 64→2400 reverted-worse
far sysctl:net.ipv4.tcp_rmem 64→1500 reverted-worse
far sysctl:net.ipv4.tcp_rmem 64→900 kept
`
	if verdicts(out) != want || w.hosts[Far].values[rmem] != "900" || out.State != StateCommitted {
		t.Errorf("state %s, verdicts\n%swant\n%s", out.State, verdicts(out), want)
	}
	if r := out.Trials[0].Reason; !strings.Contains(r, "past its limit of 0.02; 1500 is tried next") {
		t.Errorf("reason %q", r)
	}
}

// TestBackedOff checks that a harmful level is reverted with a reason that names both values, alone
// and beside better ones.
func TestBackedOff(t *testing.T) {
	burst := knob.ID("sysctl:burst")
	budget := func(w *world) float64 { return 1e9 - 2e6*math.Abs(number(w.near(burst))-150) } // best at 150
	for _, tt := range []struct {
		from    knob.Value
		levels  []knob.Value
		verdict Verdict
		ends    knob.Value
		says    string
	}{
		{"150", []knob.Value{"300"}, RevertedWorse, "150", "300 instead of 150 is worse: -30"},
		{"50", []knob.Value{"150", "300"}, Kept, "150", "300 was tried and gave 30.0 % less"},
		{"300", []knob.Value{"150"}, Kept, "150", "gains"},
	} {
		w := newWorld(map[Side]map[knob.ID]knob.Value{Near: {burst: tt.from}}, budget)
		out, err := runDefault(t.Context(), configFor(w), w,
			[]Candidate{{Knob: burst, Side: Near, Levels: tt.levels}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := out.Trials[0]; got.Verdict != tt.verdict || w.near(burst) != tt.ends ||
			!strings.Contains(got.Reason, tt.says) {
			t.Errorf("from %s: %s, %s: %s", tt.from, got.Verdict, w.near(burst), got.Reason)
		}
	}
	// A further level of a kept knob is worse: the kept level stays.
	w := newWorld(map[Side]map[knob.ID]knob.Value{Near: {burst: "50"}}, budget)
	c := configFor(w)
	c.Refill = func(context.Context, []Change) ([]Candidate, bool, error) {
		return []Candidate{{Knob: burst, Side: Near, Levels: []knob.Value{"300"}}}, false, nil
	}
	out, err := runDefault(t.Context(), c, w,
		[]Candidate{{Knob: burst, Side: Near, Levels: []knob.Value{"150"}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := out.Trials[1]; w.near(burst) != "150" || got.Verdict != RevertedWorse ||
		!strings.HasSuffix(got.Reason, "; 150 stays") {
		t.Errorf("ends at %s, %s: %s", w.near(burst), got.Verdict, got.Reason)
	}
}

// TestMinimal checks a property: of knobs that each help alone, those that the others make
// unnecessary do not stay. Needed knobs multiply; each unneeded one does a part of what the first
// needed one does.
func TestMinimal(t *testing.T) {
	plan, err := DefaultConfig().plan()
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 9))
		needed, unneeded := 1+random.IntN(3), 1+random.IntN(3)
		values := map[knob.ID]knob.Value{}
		var candidates []Candidate
		add := func(format string, n int) {
			for i := range n {
				id := knob.ID(fmt.Sprintf(format, i))
				values[id] = "0"
				candidates = append(candidates, Candidate{Knob: id, Side: Near, Levels: []knob.Value{"1"}})
			}
		}
		add("sysctl:needed.%d", needed)
		add("sysctl:unneeded.%d", unneeded)
		random.Shuffle(len(candidates), func(i, j int) { candidates[i], candidates[j] = candidates[j], candidates[i] })
		w := newWorld(map[Side]map[knob.ID]knob.Value{Near: values}, func(w *world) float64 {
			gain, first := 1.0, 0.0
			for i := range needed {
				if w.near(knob.ID(fmt.Sprintf("sysctl:needed.%d", i))) == "1" {
					if i == 0 {
						first = 0.4
					} else {
						gain *= 1.25
					}
				}
			}
			for i := range unneeded {
				if w.near(knob.ID(fmt.Sprintf("sysctl:unneeded.%d", i))) == "1" {
					first = max(first, 0.2+0.05*float64(i))
				}
			}
			return 1e9 * gain * (1 + first)
		})
		w.noise = func(int) float64 { return 0.005 * random.NormFloat64() }
		c := configFor(w)
		c.Seed = seed
		out, err := run(t.Context(), c, plan, w, w.tuneHosts(), candidates, nil)
		if err != nil {
			t.Fatal(err)
		}
		for id := range values {
			if stays := w.near(id) == "1"; stays != strings.HasPrefix(string(id), "sysctl:needed") {
				t.Errorf("seed %d: %d needed, %d unneeded: %s stays is %v\n%s%v", seed, needed, unneeded, id, stays,
					verdicts(out), out.Ablation)
			}
		}
	}
}

// TestSharedRisk checks that each member of a set proven only as a whole is tested at its share of
// the risk.
func TestSharedRisk(t *testing.T) {
	w := longFatPath()
	w.hosts[Near].values[wmem], w.hosts[Near].original[wmem] = "64", "64"
	out, err := runDefault(t.Context(), configFor(w), w, longFatCandidates(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Kept) != 2 || len(out.Ablation) != 4 {
		t.Fatalf("kept %v, ablation %v", out.Kept, out.Ablation)
	}
	for _, a := range out.Ablation {
		if a.Sharing != 4 || a.Reused || a.Needed && a.Pairs < 7 {
			t.Errorf("%+v: want the risk shared by four, which six pairs cannot show", a)
		}
	}
	if out.Interaction != nil {
		t.Errorf("interaction %+v of changes that had no trials of their own", out.Interaction)
	}
}

func TestSoak(t *testing.T) {
	soaked := func(t *testing.T, after func(w *world, c *Config), wait error) (*world, *Outcome) {
		t.Helper()
		w := longFatPath()
		c := configFor(w)
		c.Soak = time.Hour
		c.Wait = func(_ context.Context, d time.Duration) error {
			if w.hosts[Far].values[rmem] != "6144" || d != time.Hour {
				t.Errorf("waits %v with the window at %s", d, w.hosts[Far].values[rmem])
			}
			w.clock = w.clock.Add(d)
			if after != nil {
				after(w, &c)
			}
			return wait
		}
		out, err := runDefault(t.Context(), c, w, longFatCandidates()[:1], nil)
		if err != nil {
			t.Fatal(err)
		}
		return w, out
	}
	t.Run("holds", func(t *testing.T) {
		w, out := soaked(t, nil, nil)
		if out.State != StateCommitted || out.Soak == nil || !out.Soak.Held || out.Soak.Waited != 3600 ||
			out.Soak.Low < 3 || len(out.Kept) != 1 {
			t.Fatalf("state %s, soak %+v", out.State, out.Soak)
		}
		h := w.hosts[Far]
		if last := h.changes[len(h.changes)-1]; h.values[rmem] != "6144" || !last.committed ||
			last.id != out.Kept[0].ID {
			t.Errorf("in force %+v, document says %+v", last, out.Kept[0])
		}
	})
	t.Run("the gain is gone", func(t *testing.T) {
		w, out := soaked(t, func(w *world, _ *Config) { w.gain = func(*world) float64 { return 5e7 } }, nil)
		w.pristine(t, "after the soak")
		if out.State != StateUndone || !out.RolledBack || out.Soak.Held || out.Trials[0].Verdict != RevertedUnproven ||
			!strings.Contains(out.Reason, "the gain did not last 1 h 00 min") {
			t.Errorf("state %s, soak %+v: %s", out.State, out.Soak, out.Reason)
		}
	})
	t.Run("a guard-rail is worse", func(t *testing.T) {
		w, out := soaked(t, func(w *world, _ *Config) {
			w.guards = func(w *world) map[string]float64 {
				return map[string]float64{"rtt_p99_seconds": 0.020 * number(w.hosts[Far].values[rmem])}
			}
		}, nil)
		w.pristine(t, "after the soak")
		if out.State != StateUndone || !strings.Contains(out.Reason, "rtt_p99_seconds becomes worse") {
			t.Errorf("state %s: %s", out.State, out.Reason)
		}
	})
	t.Run("broken off", func(t *testing.T) {
		_, out := soaked(t, nil, context.Canceled)
		if out.State != StateCommitted || out.Soak != nil || !out.Partial || len(out.Warnings) == 0 {
			t.Errorf("state %s, soak %+v, warnings %v", out.State, out.Soak, out.Warnings)
		}
	})
	t.Run("disturbed", func(t *testing.T) {
		_, out := soaked(t, func(w *world, _ *Config) { w.discard = func(int) string { return "cross traffic" } }, nil)
		if out.State != StateCommitted || !out.Soak.Held || len(out.Kept) != 1 {
			t.Errorf("state %s, soak %+v", out.State, out.Soak)
		}
	})
	t.Run("measuring fails", func(t *testing.T) {
		w := longFatPath()
		c := configFor(w)
		c.Soak = time.Hour
		c.Wait = func(context.Context, time.Duration) error {
			w.failAt, w.failure = w.calls+5, errInjected
			return nil
		}
		out, err := runDefault(t.Context(), c, w, longFatCandidates()[:1], nil)
		if !errors.Is(err, errInjected) || out.State != StateUndone {
			t.Errorf("error %v, state %s", err, out.State)
		}
		w.pristine(t, "after a failed soak")
	})
}

// TestDiscards checks that a run that lost more than a third of its segments to disturbance reports
// it.
func TestDiscards(t *testing.T) {
	for every, want := range map[int]bool{2: true, 5: false} {
		w := longFatPath()
		w.discard = func(segment int) string {
			if segment%every == 0 {
				return "steal 30 %"
			}
			return ""
		}
		out, err := runDefault(t.Context(), configFor(w), w, longFatCandidates()[:1], nil)
		if err != nil {
			t.Fatal(err)
		}
		said := slices.ContainsFunc(out.Warnings,
			func(s string) bool { return strings.Contains(s, "segments were discarded, most often: steal 30 %") })
		if said != want || out.Discarded == 0 {
			t.Errorf("one in %d discarded: said is %v: %v", every, said, out.Warnings)
		}
	}
}
