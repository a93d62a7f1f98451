package report

import (
	"fmt"
	"slices"

	"github.com/linerate/linerate/internal/change/bootconf"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/persist"
)

// SchemaPersist is the document of changes that survive a reboot, and of whether they did.
const SchemaPersist = "linerate.persist/1"

// PersistState is the state of a change in a linerate.persist/1.
type PersistState string

// The states. The first four are those of persisting, the others those of --check.
const (
	PersistPlanned PersistState = "dry-run"
	PersistDone    PersistState = "persisted"
	PersistByHand  PersistState = "by-hand" // no file that linerate can write sets it
	PersistRefused PersistState = "refused" // another file would win at the next start
	PersistHeld    PersistState = "held"
	PersistLost    PersistState = "lost"
	PersistWaiting PersistState = "waiting" // for a restart of the host
	PersistCovered PersistState = "covered" // a later change of the same knob overrides it
)

// PersistDocument is linerate.persist/1: which files make changes survive a reboot, and with
// --check whether they did.
type PersistDocument struct {
	Envelope
	Root    string          `json:"root"` // where the host's / is
	Changes []PersistChange `json:"changes"`
}

// PersistChange is one change of it.
type PersistChange struct {
	ID        string          `json:"id"`
	Knob      knob.ID         `json:"knob"`
	Value     knob.Value      `json:"value"`
	State     PersistState    `json:"state"`
	Format    string          `json:"format,omitempty"` // sysctl.d, systemd.link, …
	Files     []PersistFile   `json:"files"`
	ByHand    string          `json:"by_hand,omitempty"`   // what the user has to write
	Conflicts []bootconf.Line `json:"conflicts,omitempty"` // lines that win over these files at the next start
	Notes     []string        `json:"notes,omitempty"`

	Present *knob.Value    `json:"present,omitempty"` // --check: the present value
	SetBy   *bootconf.Line `json:"set_by,omitempty"`  // --check: the line that wins at the start
	Why     string         `json:"why,omitempty"`     // --check: why it did not hold
}

// PersistFile is one file of a change.
type PersistFile struct {
	Path    string `json:"path"`           // on the host that it is for
	Mode    string `json:"mode,omitempty"` // permissions, octal: 0644
	Content string `json:"content,omitempty"`
	Shared  bool   `json:"shared,omitempty"` // with an earlier change of this document or host
	State   string `json:"state,omitempty"`  // --check: in place, edited, missing
}

// NewPersist makes a document of planned or persisted changes. All steps have the given state,
// except those by hand, and in the refused state those without a conflict.
func NewPersist(e Envelope, root string, state PersistState, steps []persist.Step) *PersistDocument {
	d := &PersistDocument{Envelope: e.Of(SchemaPersist), Root: root}
	seen := map[string]bool{}
	for _, s := range steps {
		c := PersistChange{ID: s.Change.ID, Knob: s.Change.Knob, Value: s.Change.To, State: state,
			Format: string(s.Format), ByHand: s.Line,
			Conflicts: slices.Clone(s.Conflicts), Notes: slices.Clone(s.Notes)}
		for _, f := range s.Files {
			c.Files = append(c.Files, PersistFile{Path: f.Path, Mode: fmt.Sprintf("%#o", f.Mode), Content: f.Content,
				Shared: seen[f.Path]})
			seen[f.Path] = true
		}
		switch {
		case s.Format == persist.ByHand:
			c.State = PersistByHand
		case len(s.Conflicts) > 0 && state == PersistRefused:
		case state == PersistRefused:
			c.State = PersistPlanned
		}
		d.Changes = append(d.Changes, c)
	}
	FillSlices(d)
	return d
}

// NewPersistCheck makes a document of whether persisted changes held.
func NewPersistCheck(e Envelope, root string, findings []persist.Finding,
	kept map[string]journal.Kept) *PersistDocument {
	d := &PersistDocument{Envelope: e.Of(SchemaPersist), Root: root}
	for _, f := range findings {
		c := PersistChange{ID: f.Change.ID, Knob: f.Change.Knob, Value: f.Change.To, State: PersistState(f.Result),
			Present: f.Present,
			SetBy:   f.SetBy, Why: f.Why}
		for _, name := range kept[f.Change.ID].Paths() {
			state := "in place"
			switch {
			case slices.Contains(f.Missing, name):
				state = "missing"
			case slices.Contains(f.Edited, name):
				state = "edited"
			}
			c.Files = append(c.Files, PersistFile{Path: name, State: state})
		}
		d.Changes = append(d.Changes, c)
	}
	FillSlices(d)
	return d
}
