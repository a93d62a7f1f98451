package tune

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/change/knob"
)

// world is two simulated hosts, the traffic between them and the clock. It counts every call, so
// that a test can make any of them fail.
type world struct {
	hosts   map[Side]*simHost
	gain    func(w *world) float64            // objective as a function of the settings
	guards  func(w *world) map[string]float64 // nil: none
	noise   noise
	discard func(segment int) string // nil: never
	loss    float64                  // what a discarded segment can have lost; 0: unknown
	clock   time.Time
	slow    time.Duration // time of a change and of its undo

	calls    int
	failAt   int // the call that fails, counted from 1; 0: none
	failure  error
	before   bool // fail before the call has its effect, otherwise after
	cancelAt int  // the call that cancels the context
	cancel   context.CancelFunc
	segments int
	log      []string
}

type simHost struct {
	world    *world
	side     Side
	original map[knob.ID]knob.Value
	values   map[knob.ID]knob.Value
	changes  []simChange
	refuse   map[knob.ID]error // on Apply
	next     int
}

type simChange struct {
	id        string
	knob      knob.ID
	from, to  knob.Value
	undone    bool
	committed bool
}

func newWorld(settings map[Side]map[knob.ID]knob.Value, gain func(w *world) float64) *world {
	w := &world{hosts: map[Side]*simHost{}, gain: gain, noise: quiet(),
		clock: time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)}
	for side, values := range settings {
		w.hosts[side] = &simHost{world: w, side: side, original: maps.Clone(values), values: maps.Clone(values),
			refuse: map[knob.ID]error{}}
	}
	return w
}

func (w *world) tuneHosts() map[Side]Host {
	out := map[Side]Host{}
	for side, h := range w.hosts {
		out[side] = h
	}
	return out
}

func (w *world) now() time.Time { return w.clock }

func (w *world) near(id knob.ID) knob.Value { return w.hosts[Near].values[id] }

// defaultPlan is the plan of the default configuration: enumerating it takes longer than a
// simulated experiment, so that all tests share one.
var defaultPlan = sync.OnceValues(func() (*stats.Boundary, error) { return DefaultConfig().plan() })

// runDefault is Run for a configuration with the default looks and confidence.
func runDefault(ctx context.Context, cfg Config, w *world, candidates []Candidate, progress func(Event)) (*Outcome,
	error) {
	plan, err := defaultPlan()
	if err != nil {
		return nil, err
	}
	cfg, err = cfg.complete()
	if err != nil {
		return nil, err
	}
	return run(ctx, cfg, plan, w, w.tuneHosts(), candidates, progress)
}

var errInjected = errors.New("injected fault")

// step counts a call; a fault strikes before or after its effect.
func (w *world) step(what string, effect func() error) error {
	w.calls++
	call := w.calls
	w.log = append(w.log, what)
	if call == w.failAt && w.before {
		return w.failure
	}
	if err := effect(); err != nil {
		return err
	}
	if call == w.cancelAt {
		w.cancel()
	}
	if call == w.failAt {
		return w.failure
	}
	return nil
}

func (w *world) Measure(ctx context.Context) (Observation, error) {
	var o Observation
	err := w.step("measure", func() error {
		if err := ctx.Err(); err != nil {
			return err
		}
		w.clock = w.clock.Add(1500 * time.Millisecond)
		o = Observation{Objective: w.gain(w) * math.Exp(w.noise(w.segments))}
		if w.guards != nil {
			o.Guards = w.guards(w)
		}
		if w.discard != nil {
			if o.Discard = w.discard(w.segments); o.Discard != "" {
				o.LossRatio = w.loss
			}
		}
		w.segments++
		return nil
	})
	return o, err
}

func (h *simHost) Read(ctx context.Context, id knob.ID) (knob.Value, error) {
	var v knob.Value
	err := h.world.step("read", func() error {
		if err := ctx.Err(); err != nil {
			return err
		}
		var ok bool
		if v, ok = h.values[id]; !ok {
			return fmt.Errorf("read %s: %w", id, fs.ErrNotExist)
		}
		return nil
	})
	return v, err
}

func (h *simHost) Apply(ctx context.Context, reason string, settings ...knob.Setting) ([]string, error) {
	var ids []string
	err := h.world.step("apply", func() error {
		if err := ctx.Err(); err != nil {
			return err
		}
		h.world.clock = h.world.clock.Add(h.world.slow)
		for _, s := range settings {
			if err := h.refuse[s.Knob]; err != nil {
				return err
			}
			h.next++
			id := fmt.Sprintf("%s-%d", h.side, h.next)
			h.changes = append(h.changes, simChange{id: id, knob: s.Knob, from: h.values[s.Knob], to: s.Value})
			h.values[s.Knob] = s.Value
			ids = append(ids, id)
		}
		return nil
	})
	return ids, err
}

// Undo is compare-and-swap like the journal's, and harmless for a change that is undone already.
func (h *simHost) Undo(ctx context.Context, ids ...string) error {
	return h.world.step("undo", func() error {
		if err := ctx.Err(); err != nil {
			return err
		}
		for _, id := range slices.Backward(ids) {
			at := slices.IndexFunc(h.changes, func(c simChange) bool { return c.id == id })
			if at < 0 {
				return fmt.Errorf("undo %s: no such change", id)
			}
			c := &h.changes[at]
			if c.undone {
				continue
			}
			if h.values[c.knob] != c.to {
				return fmt.Errorf("undo %s: %s is %s, not %s", id, c.knob, h.values[c.knob], c.to)
			}
			h.world.clock = h.world.clock.Add(h.world.slow)
			h.values[c.knob], c.undone, c.committed = c.from, true, false
		}
		return nil
	})
}

func (h *simHost) Commit(ctx context.Context, ids ...string) error {
	return h.world.step("commit", func() error {
		if err := ctx.Err(); err != nil {
			return err
		}
		for _, id := range ids {
			at := slices.IndexFunc(h.changes, func(c simChange) bool { return c.id == id })
			if at < 0 || h.changes[at].undone {
				return fmt.Errorf("commit %s: no such change in force", id)
			}
			h.changes[at].committed = true
		}
		return nil
	})
}

// pristine fails the test unless every value is the original one and nothing is committed.
func (w *world) pristine(t *testing.T, context string) {
	t.Helper()
	for side, h := range w.hosts {
		for id, want := range h.original {
			if got := h.values[id]; got != want {
				t.Errorf("%s: %s %s is %s, want the original %s", context, side, id, got, want)
			}
		}
		for _, c := range h.changes {
			if c.committed || !c.undone {
				t.Errorf("%s: %s change %s of %s is left behind", context, side, c.id, c.knob)
			}
		}
	}
}

// noise is the logarithm of the factor of a segment; segments come in order.
type noise func(segment int) float64

func quiet() noise { return func(int) float64 { return 0 } }

// noiseModels are the noises of real benches, each with a standard deviation of σ from segment to
// segment. Hidden ones add disturbances of many σ that the prober fails to discard: they must not
// raise false keeps, but may hide a gain.
var noiseModels = []struct {
	name   string
	hidden bool
	many   bool // also tried with useless knobs beside the good one, which takes long
	every  bool // also with forty of them
	make   func(r *rand.Rand, sigma float64) noise
}{
	{"iid", false, false, true, func(r *rand.Rand, sigma float64) noise {
		return func(int) float64 { return sigma * r.NormFloat64() }
	}},
	{"ar(0.7)", false, false, false, func(r *rand.Rand, sigma float64) noise { return autoregressive(r, sigma) }},
	{"drift + ar(0.7)", false, true, false, func(r *rand.Rand, sigma float64) noise {
		// Up or down by about a third over an experiment of 60 segments: a bench that warms up, or
		// fills.
		ar, slope := autoregressive(r, sigma), 0.005*(2*r.Float64()-1)
		return func(segment int) float64 { return ar(segment) + slope*float64(segment) }
	}},
	{"heavy tails", false, false, false, func(r *rand.Rand, sigma float64) noise {
		return func(int) float64 {
			// Student's t with three degrees of freedom, which has the variance 3.
			chi := 0.0
			for range 3 {
				z := r.NormFloat64()
				chi += z * z
			}
			return sigma / math.Sqrt(3) * r.NormFloat64() / math.Sqrt(chi/3)
		}
	}},
	{"periodic", false, false, false, func(r *rand.Rand, sigma float64) noise {
		// A period of four segments is that of an ABBA block: the worst for a fixed order.
		phase := 2 * math.Pi * r.Float64()
		return func(segment int) float64 {
			return sigma * (math.Sin(math.Pi/2*float64(segment)+phase) + 0.7*r.NormFloat64())
		}
	}},
	{"outliers 1 in 10", true, true, true, func(r *rand.Rand, sigma float64) noise {
		return func(int) float64 {
			x := sigma * r.NormFloat64()
			if r.IntN(10) == 0 {
				x -= 0.3 * r.Float64() // a hiccup costs up to a quarter of the segment
			}
			return x
		}
	}},
}

func autoregressive(r *rand.Rand, sigma float64) noise {
	const phi = 0.7
	x := sigma * r.NormFloat64()
	return func(int) float64 {
		x = phi*x + math.Sqrt(1-phi*phi)*sigma*r.NormFloat64()
		return x
	}
}
