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
// between two boots, two compilers or two hours of the day are larger than what a knob could prove.
//
// It is also what keeps a very quiet bench, such as a simulated one, from keeping changes whose
// effect is real and irrelevant.
const LeastUsefulEffect = 0.01

// Config says how to experiment. DefaultConfig is the usual start; zero numbers mean the default,
// except where a field says otherwise.
type Config struct {
	MinUsefulEffect float64 // relative gain below which a change is not worth having; default and least 0.01
	Confidence      float64 // of every interval, two-sided; default 0.95
	PilotPairs      int     // A/A pairs; default 6, and as many again where they show much noise
	Looks           []int   // numbers of pairs at which a comparison may be decided; default 6, 10, 16, 24, 32
	Seed            uint64  // of the coin that orders the arms; the same seed repeats the same order
	MaxTrials       int     // trials that are measured; 0: as many as there are candidates
	// how often a discarded segment is measured again before its comparison is given up; default 3
	MaxRepeats int

	// Budget bounds the time of the whole experiment. A part of it is set aside for the
	// confirmation; a trial under way when the rest is used up is reverted, and the outcome says
	// that it is partial. 0: no bound.
	Budget time.Duration
	// Asked is the caller's whole budget, of which Budget is left, and Spent what was used of it
	// before Run. They are for words and for what to ask for: who gave 20 s is told of 20 s. 0:
	// nothing came before.
	Asked, Spent time.Duration

	// AllowedDisturbance is the highest class a candidate may have. Zero allows only changes that
	// disturb nothing; DefaultConfig allows d1.
	AllowedDisturbance knob.Disturbance

	// Guards bound what a gain may cost, by the name of Observation.Guards. Nil: DefaultGuards.
	// Others are recorded but veto nothing.
	Guards map[string]Guard

	// Lookup finds a knob's definition (knob.Catalog.Lookup): one that nobody knows, that may only
	// be reported, or that disturbs too much is refused, and levels are brought into canonical
	// form. Nil: no such checks.
	Lookup func(knob.ID) (knob.Definition, bool)

	// Refuse says in a clause why a candidate must not be tried here ("carries this session"), or
	// nothing. Nil: refuses nothing.
	Refuse func(Candidate) string

	// Refill is called after each keep, with the kept settings in force: a limit removed uncovers
	// the next. Its candidates are tried before those left over from an older verdict. A candidate
	// that was unproven before the keep gets a second chance, one that was kept may come again with
	// levels not yet tried, one that was refused or worse does not. When enough is true, nothing
	// more can be gained and what is left over is not tried. Nil: no refill.
	Refill func(ctx context.Context, kept []Change) (fresh []Candidate, enough bool, err error)

	// Checkpoint is called with all that is known so far after each segment and each verdict, so
	// that a run that is cut short is not lost. The outcome belongs to the run: it may be read and
	// encoded during the call only. Nil: nobody is told.
	Checkpoint func(*Outcome)

	// HoldCommit leaves a confirmed set as trial changes for the caller (or the guard) to decide
	// about.
	HoldCommit bool

	// Soak is how long a committed set is in force before it is compared with the original once
	// more; when the gain is gone by then everything is taken back. 0, or with HoldCommit: no such
	// test. It takes place after the budget.
	Soak time.Duration

	// Wait passes the time of a soak and returns early with the cause when the context ends;
	// default a timer.
	Wait func(ctx context.Context, d time.Duration) error

	// UndoTimeout bounds taking everything back after an interruption, when the caller's context is
	// already over; default 30 s.
	UndoTimeout time.Duration

	// Now is the clock; default time.Now.
	Now func() time.Time
}

// DefaultConfig is the design's default: 1 %, 95 %, looks at 6 to 32 pairs, changes up to class d1.
//
// Six pairs are the fewest that can prove anything at 95 %: with five the most extreme outcome of
// the signed ranks has a probability of 2/32. A large effect and a useless knob end there. The late
// looks are for what is small against the noise: 32 pairs resolve half of what 10 do, and only a
// knob that may still be worth it takes that long.
func DefaultConfig() Config {
	c, err := Config{AllowedDisturbance: knob.DisturbsNewSockets}.complete()
	if err != nil {
		panic(err) // the defaults are complete
	}
	return c
}

// DefaultGuards are the guard-rails of the throughput goal. The bounds are wide on purpose: a flow
// that carries twenty times more fills queues that were empty before, and only a proven, plain
// worsening shall outweigh a proven gain.
//
// Bounds are relative, so 1.0 allows twice as much. Floors lie where a user does not notice: 2 ms
// of tail, 5 ms of loaded round trip, one segment in a hundred sent again, half a second of
// processor time for a gigabyte (little more than two hosts with offloads spend).
func DefaultGuards() map[string]Guard {
	return map[string]Guard{
		"rtt_p99_seconds":          {Bound: 1.0, Floor: 0.002},
		"rtt_loaded_seconds":       {Bound: 3.0, Floor: 0.005}, // of the bulk flow itself
		"retransmit_ratio":         {Bound: 1.0, Floor: 0.01},
		"cpu_seconds_per_gigabyte": {Bound: 0.5, Floor: 0.5},
		"drops_per_gigabyte":       {Bound: 1.0, Floor: 10_000}, // of some 700 000 packets
	}
}

// complete fills in the defaults and refuses what could not give a verdict, before anything is
// measured or changed.
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

// plan fixes the looks; computing it enumerates sign patterns, some milliseconds.
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
