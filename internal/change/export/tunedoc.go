package export

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/change/knob"
)

// ErrNotATune says that a document is not the result of a tune.
var ErrNotATune = errors.New("not a result of linerate tune --json")

// Side is the end of the path that settings are taken from.
type Side string

// The sides of a tune.
const (
	Near Side = "near" // where tune was typed
	Far  Side = "far"  // its target
)

// tuneDocument is as much of linerate.tune/1 as is carried over.
type tuneDocument struct {
	Schema   string    `json:"schema"`
	Linerate string    `json:"linerate"`
	Time     time.Time `json:"time"`
	Host     struct {
		Name   string `json:"name"`
		OS     string `json:"os"`
		Kernel string `json:"kernel"`
		Arch   string `json:"arch"`
	} `json:"host"`
	Target string  `json:"target"`
	Goal   string  `json:"goal"`
	State  string  `json:"state"`
	Final  *Effect `json:"final"`
	Kept   []struct {
		Knob knob.ID    `json:"knob"`
		Side Side       `json:"side"`
		From knob.Value `json:"from"`
		To   knob.Value `json:"to"`
		ID   string     `json:"id"`
	} `json:"kept"`
	Trials []struct {
		Knob knob.ID    `json:"knob"`
		Side Side       `json:"side"`
		To   knob.Value `json:"to"`
		Effect
		Verdict string `json:"verdict"`
		Why     string `json:"why"`
		Joint   bool   `json:"together"`
	} `json:"trials"`
}

// ReadTune takes from a document of linerate.tune/1 what the run kept on one side, with its proof.
// ErrNotATune: it is something else. ErrNothing: the run kept nothing there. A knob or a value that
// the catalogue refuses is an error that names it: the document may come from anybody.
func ReadTune(doc []byte, side Side) (Set, error) {
	var d tuneDocument
	if err := json.Unmarshal(doc, &d); err != nil {
		return Set{}, fmt.Errorf("%w: %w", ErrNotATune, err)
	}
	if d.Schema != "linerate.tune/1" {
		return Set{}, fmt.Errorf("%w: its schema is %q", ErrNotATune, d.Schema)
	}
	set := Set{Origin: Origin{Host: d.Host.Name, OS: d.Host.OS, Kernel: d.Host.Kernel, Arch: d.Host.Arch,
		Linerate: d.Linerate, Time: d.Time}}
	set.Proof = &Proof{Target: d.Target, Goal: d.Goal}
	if side == Far {
		// The document names the far host as it was typed, and nothing more of it.
		set.Origin = Origin{Host: d.Target, Linerate: d.Linerate, Time: d.Time}
		set.Proof.Target = d.Host.Name
	}
	if d.Final != nil {
		set.Proof.Effect = *d.Final
	}
	if d.State != "committed" {
		return set, fmt.Errorf("%w: the run ended as %q, and nothing of it stayed", ErrNothing, d.State)
	}
	for _, k := range d.Kept {
		if k.Side != side {
			set.Proof.OtherEnd++
			continue
		}
		to, err := accepted(k.Knob, k.To)
		if err != nil {
			return set, err
		}
		c := Change{ID: k.ID, Knob: k.Knob, From: k.From, To: to, State: d.State}
		for _, t := range slices.Backward(d.Trials) {
			if t.Knob == k.Knob && t.Side == k.Side && t.Verdict == "kept" {
				c.Why = t.Why
				if !t.Joint {
					c.Proof = &t.Effect
				}
				break
			}
		}
		set.Changes = append(set.Changes, c)
	}
	if len(set.Changes) == 0 {
		return set, fmt.Errorf("%w: the run kept nothing on the %s side", ErrNothing, side)
	}
	return set, nil
}

// accepted gives the canonical value of a knob that the catalogue knows.
func accepted(id knob.ID, v knob.Value) (knob.Value, error) {
	canonical, err := knob.ParseID(string(id))
	if err != nil {
		return "", err
	}
	d, ok := knob.Catalogue().Lookup(id)
	if !ok || canonical != id {
		return "", &knob.Error{Op: "export", Knob: id, Err: knob.ErrUnknown}
	}
	to, err := d.Canonical(v)
	if err != nil {
		return "", &knob.Error{Op: "export", Knob: id, Err: err}
	}
	return to, nil
}

// Prove adds to changes of a journal what a run showed of them. It reports whether the run contains
// any of them.
func (s *Set) Prove(run Set, name string) bool {
	matches := func(c, r Change) bool {
		return r.ID != "" && r.Knob == c.Knob && r.To == c.To && slices.Contains(strings.Split(c.ID, ","), r.ID)
	}
	var found bool
	whole := true
	for i, c := range s.Changes {
		at := slices.IndexFunc(run.Changes, func(r Change) bool { return matches(c, r) })
		if at < 0 {
			whole = false
			continue
		}
		found = true
		if c.Proof == nil {
			s.Changes[i].Proof = run.Changes[at].Proof
		}
		if r := run.Changes[at]; r.Why != "" {
			s.Changes[i].Why = r.Why
		}
	}
	// The effect of the whole run applies only to exactly the run's changes.
	if whole && found && len(s.Changes) == len(run.Changes) && run.Proof != nil && s.Proof == nil {
		proof := *run.Proof
		proof.Run = name
		s.Proof, s.Origin.Time = &proof, run.Origin.Time
	}
	return found
}
