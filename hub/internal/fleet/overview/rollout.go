package overview

import (
	"slices"
	"time"

	"github.com/linerate/linerate/hub/internal/fleet/rollout"
)

// Rollout is a rollout as a page shows it: a part of linerate.hub.fleet-rollouts/1.
type Rollout struct {
	ID      string    `json:"id"`
	Knob    string    `json:"knob"`
	To      string    `json:"to"`
	Started time.Time `json:"started"`
	Phase   string    `json:"phase"`            // as in rollout.Phase
	Stage   int       `json:"stage"`            // place in Boundary
	Reason  string    `json:"reason,omitempty"` // of a halt
	Proven  bool      `json:"proven"`
	Hosts   int       `json:"hosts"`
	// States counts hosts by state, Changed those that a stage will have changed when it is
	// complete.
	States  map[string]int `json:"states"`
	Changed []int          `json:"changed_hosts"`
	Looks   []Look         `json:"looks"`
	// Boundary holds for each stage the bounds that a look must pass, as z.
	Boundary []rollout.Bound `json:"boundary"`
}

// Look is one look at the measurements of a rollout.
type Look struct {
	Stage  int     `json:"stage"`       // place in Boundary
	Pairs  int     `json:"pairs_total"` // of a changed and a like host so far
	Effect float64 `json:"effect_log_ratio"`
	T      float64 `json:"t"` // compared with the bounds
	Proven bool    `json:"proven"`
	Harm   string  `json:"harm,omitempty"` // class, or fleet
}

// Of describes a rollout at one moment.
func Of(p *rollout.Plan, m *rollout.Machine) Rollout {
	r := Rollout{ID: p.ID, Phase: string(m.Phase()), Stage: m.Stage(), Reason: m.Reason(), Proven: m.Proven(),
		Hosts: len(p.Hosts), States: make(map[string]int), Looks: []Look{}, Boundary: rollout.Boundary()}
	for _, l := range m.Looks() {
		at := slices.Index(rollout.StageNames[:], l.Stage)
		r.Looks = append(r.Looks, Look{at, l.Hosts, l.Effect, l.T, l.Proven, l.Harm})
	}
	for s, n := range m.Counts() {
		r.States[string(s)] = n
	}
	for stage := range r.Boundary {
		r.Changed = append(r.Changed, p.Share(stage))
	}
	return r
}
