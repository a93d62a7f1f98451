package tune

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/change/knob"
)

// LeastUsefulEffect is the smallest relative gain that is ever kept: below 1 % the differences
// between two boots, two compilers or two hours of the day exceed what a knob could prove.
//
// It also keeps a very quiet bench, such as a simulated one, from keeping changes with a real but
// irrelevant effect.
const LeastUsefulEffect = 0.01

// Config configures an experiment. Start from DefaultConfig; zero numbers mean the default, except
// where a field says otherwise.
type Config struct {
	MinUsefulEffect float64 // smallest useful relative gain; default and least 0.01
	Confidence      float64 // of every interval, two-sided; default 0.95
	PilotPairs      int     // A/A pairs; default 6, doubled if they show much noise
	Looks           []int   // numbers of pairs at which a comparison may decide; default 6, 10, 16, 24, 32
	Seed            uint64  // of the coin that orders the arms; the same seed repeats the same order
	MaxTrials       int     // measured trials; 0: one per candidate
	// how often a discarded segment is repeated before its comparison is abandoned; default 3
	MaxRepeats int

	// Budget bounds the time of the whole experiment. It reserves a part for the confirmation. When
	// the rest is used up, the trial in progress is reverted and the outcome is marked as partial.
	// 0: no bound.
	Budget time.Duration
	// Asked is the caller's whole budget, of which Budget is left, and Spent is what was used
	// before Run. They serve messages: a user who gave 20 s reads about 20 s. 0: nothing came
	// before.
	Asked, Spent time.Duration

	// AllowedDisturbance is the highest class a candidate may have. Zero allows only changes that
	// disturb nothing; DefaultConfig allows d1.
	AllowedDisturbance knob.Disturbance

	// Guards bound what a gain may cost, by the name of Observation.Guards; nil means
	// DefaultGuards. Other guard-rails are recorded but veto nothing.
	Guards map[string]Guard

	// Lookup returns a knob's definition (knob.Catalog.Lookup). A knob that is unknown, only ever
	// reported, or too disturbing is refused, and levels get their canonical form. Nil: no such
	// checks.
	Lookup func(knob.ID) (knob.Definition, bool)

	// Refuse returns, as a clause, why a candidate must not be tried here ("carries this session"),
	// or nothing. Nil: it refuses nothing.
	Refuse func(Candidate) string

	// Refill is called after each keep, with the kept settings in force, because removing one limit
	// exposes the next. Its candidates come before those left from an older verdict. A candidate
	// that was unproven before the keep gets a second chance; a kept one may return with untried
	// levels; a refused or worse one may not. If enough is true, nothing more can be gained and the
	// remaining candidates are not tried. Nil: no refill.
	Refill func(ctx context.Context, kept []Change) (fresh []Candidate, enough bool, err error)

	// Checkpoint is called with everything known so far after each segment and each verdict, so
	// that an interrupted run is not lost, and before the hosts commit, with what may stay from then
	// on whatever happens to the run (Outcome.PossiblyCommitted). The outcome belongs to the run:
	// read and encode it during the call only. Nil: no checkpoints.
	Checkpoint func(*Outcome)

	// HoldCommit leaves a confirmed set as trial changes, for the caller or the guard to decide.
	HoldCommit bool

	// Soak is how long a committed set stays in force before it is compared with the original once
	// more; if the gain has vanished, everything is undone. 0, or with HoldCommit: no soak. It
	// takes place after the budget.
	Soak time.Duration

	// Wait waits for the time of a soak and returns early, with the cause, when the context ends;
	// default a timer.
	Wait func(ctx context.Context, d time.Duration) error

	// UndoTimeout bounds undoing everything on one host after an interruption, when the caller's
	// context has already ended; default 30 s.
	UndoTimeout time.Duration

	// Now is the clock; default time.Now.
	Now func() time.Time
}

// DefaultConfig returns the default configuration: 1 %, 95 %, looks at 6 to 32 pairs, changes up to
// class d1.
//
// Six pairs are the fewest that can prove anything at 95 %: with five, the most extreme outcome of
// the signed ranks has a probability of 2/32. A large effect and a useless knob end there. The late
// looks are for effects that are small against the noise: 32 pairs resolve half of what 10 do, and
// only a promising knob takes that long.
func DefaultConfig() Config {
	c, err := Config{AllowedDisturbance: knob.DisturbsNewSockets}.complete()
	if err != nil {
		panic(err) // the defaults are complete
	}
	return c
}

// DefaultGuards returns the guard-rails of the throughput goal. The bounds are wide on purpose: a
// flow that carries twenty times more fills queues that were empty before, and only a clear, proven
// worsening should outweigh a proven gain.
//
// Bounds are relative, so 1.0 allows twice as much. Floors are below what users notice: 2 ms of
// tail, 5 ms of loaded round trip, one retransmitted segment in a hundred, half a second of CPU
// time per gigabyte (little more than two hosts with offloads spend).
func DefaultGuards() map[string]Guard {
	return map[string]Guard{
		"rtt_p99_seconds":          {Bound: 1.0, Floor: 0.002},
		"rtt_loaded_seconds":       {Bound: 3.0, Floor: 0.005}, // of the bulk flow itself
		"retransmit_ratio":         {Bound: 1.0, Floor: 0.01},
		"cpu_seconds_per_gigabyte": {Bound: 0.5, Floor: 0.5},
		"drops_per_gigabyte":       {Bound: 1.0, Floor: 10_000}, // of some 700 000 packets
	}
}

// complete fills in the defaults, and rejects settings that cannot give a verdict, before any
// measurement or change.
func (c Config) complete() (Config, error) {
	if math.IsNaN(c.MinUsefulEffect) || c.MinUsefulEffect < 0 {
		return c, fmt.Errorf("plan experiment: useful effect %v is not a positive ratio", c.MinUsefulEffect)
	}
	c.MinUsefulEffect = max(c.MinUsefulEffect, LeastUsefulEffect)
	if c.Confidence == 0 {
		c.Confidence = 0.95
	}
	if !(c.Confidence > 0 && c.Confidence < 1) {
		return c, fmt.Errorf("plan experiment: confidence %v is not between 0 and 1", c.Confidence)
	}
	if c.PilotPairs == 0 {
		c.PilotPairs = 6
	}
	if c.PilotPairs < 0 || c.PilotPairs > 1000 || stats.CriticalRank(c.PilotPairs, (1-c.Confidence)/2) == 0 {
		return c, fmt.Errorf("plan experiment: a pilot of %d pairs cannot show anything at %v confidence", c.PilotPairs,
			c.Confidence)
	}
	if c.Looks == nil {
		c.Looks = []int{6, 10, 16, 24, 32}
	}
	if c.MaxRepeats == 0 {
		c.MaxRepeats = 3
	}
	if c.Guards == nil {
		c.Guards = DefaultGuards()
	}
	for name, g := range c.Guards {
		if !(g.Bound >= 0) || !(g.Floor >= 0) || !(g.Limit >= 0) || math.IsInf(g.Limit, 0) {
			return c, fmt.Errorf(
				"plan experiment: guard-rail %s has bound %v, floor %v, limit %v; none may be negative", name, g.Bound,
				g.Floor, g.Limit)
		}
	}
	if c.UndoTimeout == 0 {
		c.UndoTimeout = 30 * time.Second
	}
	if c.Soak < 0 {
		return c, fmt.Errorf("plan experiment: soak %v is negative", c.Soak)
	}
	if c.Wait == nil {
		c.Wait = waitFor
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c, nil
}

// plan computes the looks; enumerating sign patterns takes some milliseconds.
func (c Config) plan() (*stats.Boundary, error) {
	b, err := stats.NewBoundary(c.Looks, c.Confidence)
	if err != nil {
		return nil, fmt.Errorf("plan experiment: %w", err)
	}
	if b.Looks[len(b.Looks)-1].Rank == 0 {
		return nil, fmt.Errorf("plan experiment: looks at %v pairs cannot prove anything at %v confidence", c.Looks,
			c.Confidence)
	}
	return b, nil
}
