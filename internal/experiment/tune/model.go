package tune

import (
	"context"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/profile"
)

// Side is the end at which a knob is turned.
type Side string

// The sides.
const (
	Near Side = "near"
	Far  Side = "far"
)

// Host is one end whose knobs an experiment may turn. Implementations: near (over journal), far
// (over the control channel, with that host's own journal and guard), simulated (tests). Every
// change is a trial until Commit. An error that is fs.ErrNotExist, fs.ErrPermission,
// knob.ErrNotSupported or knob.ErrInvalid is the host's answer about a knob; any other error ends
// the experiment.
type Host interface {
	// Read returns the present value.
	Read(ctx context.Context, id knob.ID) (knob.Value, error)
	// Apply turns knobs as trial changes and returns their journal ids in order; a knob that
	// already has its value gets none. Beside an error it returns the ids of the changes it made.
	Apply(ctx context.Context, reason string, settings ...knob.Setting) ([]string, error)
	// Undo undoes changes, newest first, and verifies by reading back. A change that is already
	// undone is not an error.
	Undo(ctx context.Context, ids ...string) error
	// Commit makes trial changes permanent until they are undone.
	Commit(ctx context.Context, ids ...string) error
}

// Candidate is one knob to try on one side, with levels from small to large.
type Candidate struct {
	Knob   knob.ID
	Side   Side
	Levels []knob.Value
	Why    string
}

// Observation is one measured segment with new connections. Guards has only the guard-rails that
// this segment could measure; an absent one is unknown, and not zero.
type Observation struct {
	Objective float64 // higher is better, in the unit of the goal
	// higher is worse unless the Guard inverts it: rtt_p99_seconds, retransmit_ratio,
	// cpu_seconds_per_gigabyte, drops_per_gigabyte
	Guards  map[string]float64
	Discard string // why this segment must not count (steal, link event, cross traffic); empty: it counts
	// LossRatio is the share of the objective, 0…1, that the reason in Discard can have cost at most;
	// 0 and 1: no bound. With a bound the segment counts where no try is clean, and the comparison
	// holds the loss against what it would prove.
	LossRatio float64
	Label     string // for the record
	// what the processors did meanwhile, by side; empty: nothing sampled them
	Profiles map[Side]*profile.Profile
}

// bounded reports whether the loss of a segment has a bound: one that can have lost all shows
// nothing.
func (o Observation) bounded() bool { return o.LossRatio > 0 && o.LossRatio < 1 }

// Prober measures one segment under the present settings. Implementations: traffic between two
// hosts, recorded runs, simulated host.
type Prober interface {
	Measure(ctx context.Context) (Observation, error)
}

// Verdict is the result for a candidate.
type Verdict string

// The verdicts of linerate.tune/1.
const (
	Kept             Verdict = "kept"
	RevertedWorse    Verdict = "reverted-worse"
	RevertedUnproven Verdict = "reverted-unproven"
	// not permitted, not supported, missing on the host, or of a disturbance class not allowed
	Refused Verdict = "refused"
)
