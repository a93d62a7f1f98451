package tune

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/change/knob"
)

var update = flag.Bool("update", false, "write the golden files anew")

// scenario is a bench with planted effects.
type scenario struct {
	model    int // index into noiseModels
	sigma    float64
	effect   float64 // true relative effect of the first knob
	promised bool    // the effect is the one that the run's own pilot promises to find
	useless  int     // further knobs that do nothing
}

// characteristic counts events in many simulated experiments.
type characteristic struct {
	trial    int // the trial of the first knob passed
	kept     int // the first knob was committed
	useless  int // at least one further knob was committed
	flagged  int // measurement unreliable
	segments int
	promise  float64
}

func (c *characteristic) add(d characteristic) {
	c.trial += d.trial
	c.kept += d.kept
	c.useless += d.useless
	c.flagged += d.flagged
	c.segments += d.segments
	c.promise += d.promise
}

// The number of experiments behind every row. All three begin with the same seeds.
const (
	simulations = 2000 // of the table in docs/experiments.md, which -update writes
	longSubset  = 250  // where long tests may run
	subset      = 10   // everywhere else
)

// simulate runs whole experiments, each with its own seed, on all CPUs; the sums do not depend on
// their number.
func simulate(t *testing.T, s scenario, simulations int) characteristic {
	t.Helper()
	cfg, err := DefaultConfig().complete()
	if err != nil {
		t.Fatal(err)
	}
	plan, err := defaultPlan()
	if err != nil {
		t.Fatal(err)
	}
	var (
		lock  sync.Mutex
		total characteristic
		group sync.WaitGroup
	)
	workers := runtime.GOMAXPROCS(0)
	for worker := range workers {
		group.Go(func() {
			var mine characteristic
			for i := worker; i < simulations; i += workers {
				mine.add(s.once(cfg, plan, uint64(i)))
			}
			lock.Lock()
			defer lock.Unlock()
			total.add(mine)
		})
	}
	group.Wait()
	return total
}

// once runs one experiment. The first knob is in the middle of the others.
func (s scenario) once(cfg Config, plan *stats.Boundary, seed uint64) characteristic {
	const first = knob.ID("sysctl:first")
	values := map[knob.ID]knob.Value{first: "0"}
	candidates := []Candidate{{Knob: first, Side: Near, Levels: []knob.Value{"1"}}}
	for n := range s.useless {
		id := knob.ID(fmt.Sprintf("sysctl:useless.%d", n))
		values[id] = "0"
		candidates = slices.Insert(candidates, n%2*len(candidates),
			Candidate{Knob: id, Side: Near, Levels: []knob.Value{"1"}})
	}
	effect := s.effect
	w := newWorld(map[Side]map[knob.ID]knob.Value{Near: values}, func(w *world) float64 {
		if w.near(first) == "1" {
			return 1e9 * (1 + effect)
		}
		return 1e9
	})
	w.noise = noiseModels[s.model].make(
		rand.New(rand.NewPCG(seed, uint64(s.model)<<32|uint64(1e4*(s.sigma+10*s.effect)))), s.sigma)
	cfg.Seed, cfg.Now = seed, w.now
	var c characteristic
	var so *Outcome
	cfg.Checkpoint = func(o *Outcome) { so = o }
	out, err := run(context.Background(), cfg, plan, w, w.tuneHosts(), candidates, func(e Event) {
		// The pilot is over and nothing is tried yet.
		if e.Kind == EventResolve {
			if c.promise = so.Pilot.ResolvableEffect; s.promised {
				effect = c.promise
			}
		}
		if e.Kind == EventVerdict && e.Phase == PhaseTrial && e.Verdict == Kept && e.Knob == first {
			c.trial = 1
		}
	})
	if err != nil {
		panic(err) // a simulated host has no errors, and this goroutine is not the test's
	}
	for _, k := range out.Kept {
		if k.Knob == first {
			c.kept = 1
		} else {
			c.useless = 1
		}
	}
	if out.Unreliable {
		c.flagged = 1
	}
	c.segments = len(out.Segments)
	return c
}

// scenarios returns the rows of the table.
func scenarios() []scenario {
	var all []scenario
	for model, m := range noiseModels {
		for _, sigma := range []float64{0.02, 0.10} {
			all = append(all,
				scenario{model: model, sigma: sigma},
				scenario{model: model, sigma: sigma, promised: true},
				scenario{model: model, sigma: sigma, effect: 0.05})
		}
		all = append(all, scenario{model: model, sigma: 0.02, effect: -0.05})
		if m.many {
			all = append(all, scenario{model: model, sigma: 0.02, effect: 0.05, useless: 5})
		}
		if m.every {
			all = append(all, scenario{model: model, sigma: 0.10, useless: 40})
		}
		if m.every && !m.hidden {
			all = append(all, scenario{model: model, sigma: 0.02, effect: 0.20, useless: 40})
		}
	}
	return all
}

// row returns one line of the table and checks its bounds. chance is the percentage points by which
// a rate may miss its bound.
func (s scenario) row(t *testing.T, simulations int, chance float64) string {
	t.Helper()
	got := simulate(t, s, simulations)
	percent := func(n int) float64 { return 100 * float64(n) / float64(simulations) }
	m := noiseModels[s.model]
	effect := fmt.Sprintf("%+.0f %%", 100*s.effect)
	if s.promised {
		effect = "promise"
	}
	what := fmt.Sprintf("%s, σ %v, effect %s, %d useless", m.name, s.sigma, effect, s.useless)
	null := 0
	if s.effect <= 0 && !s.promised {
		null = got.kept
	}
	if worst := percent(max(null, got.useless)); worst > 5+chance {
		t.Errorf("%s: a useless knob is kept in %.2f %% of the experiments, want at most 5 %%", what, worst)
	}
	if s.effect <= 0 && !s.promised && percent(got.trial) > 5+chance {
		t.Errorf("%s: a useless knob passes its trial in %.2f %%, want at most 5 %%", what, percent(got.trial))
	}
	if s.promised && percent(got.kept) < 90-chance {
		t.Errorf("%s: the promised gain is kept in %.2f %% of the experiments, want at least 90 %%", what,
			percent(got.kept))
	}
	if s.effect == 0.05 && s.sigma == 0.02 && percent(got.kept) < 90-chance && !m.hidden {
		t.Errorf("%s: the gain is kept in %.2f %% of the experiments, want at least 90 %%", what, percent(got.kept))
	}
	return fmt.Sprintf("%-16s %4.0f %% %9s %8d %7.2f %% %7.2f %% %7.2f %% %7.2f %% %7.2f %% %9.1f\n", m.name,
		100*s.sigma, effect,
		s.useless, 100*got.promise/float64(simulations), percent(got.trial), percent(got.kept), percent(got.useless),
		percent(got.flagged),
		float64(got.segments)/float64(simulations))
}

// TestOperatingCharacteristics checks the promises of the experiment: a useless knob is kept in at
// most 5 % of the experiments, for any noise and any number of candidates, and a gain of the size
// that the run's own pilot promised is kept, confirmed and committed in at least 90 %. With -update
// the test simulates the whole table and writes it; otherwise it repeats a part of the experiments,
// with room for chance. All seeds are fixed, so the outcome never depends on the machine.
func TestOperatingCharacteristics(t *testing.T) {
	golden := filepath.Join("testdata", "operating-characteristics.golden")
	if !*update {
		each := subset
		if testenv.Provided(testenv.Long) {
			each = longSubset
		}
		for _, s := range scenarios() {
			repeats := each
			if s.useless > 5 { // as costly as ten others
				repeats = each / 10
			}
			// Four standard deviations of a rate of one in ten.
			s.row(t, repeats, 400*math.Sqrt(0.09/float64(repeats)))
		}
		table, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "evidence", "experiments.md"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(page), string(table)) {
			t.Error("docs/evidence/experiments.md does not have the table of the golden file")
		}
		return
	}
	var table strings.Builder
	fmt.Fprintf(&table, `%d simulated experiments per row. σ: standard deviation of one segment. effect: true effect of the
first knob; "promise" is what the pilot of that run promised to find. useless: further knobs without
effect in the same run. promise: mean promise of the pilots.
Share of all experiments: trial, the first knob passed its trial; kept, it was confirmed and committed;
others, at least one useless knob was committed; flagged, the pilot called the bench unreliable.
segments: mean number of measured segments.

`, simulations)
	fmt.Fprintf(&table, "%-16s %6s %9s %8s %9s %9s %9s %9s %9s %9s\n", "noise", "σ", "effect", "useless", "promise",
		"trial", "kept", "others", "flagged", "segments")
	for _, s := range scenarios() {
		line := s.row(t, simulations, 0)
		t.Log(line)
		table.WriteString(line)
	}
	if err := os.WriteFile(golden, []byte(table.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
