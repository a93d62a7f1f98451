package export

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/linerate/linerate/internal/change/knob"
)

// Format is an output language.
type Format string

// The formats.
const (
	Ansible Format = "ansible"
	TuneD   Format = "tuned"
	Shell   Format = "shell"
	NixOS   Format = "nixos"
)

// Formats returns all of them, in the order of the help.
func Formats() []Format { return []Format{Ansible, TuneD, Shell, NixOS} }

// ErrNothing reports that a set has no change that another host could apply.
var ErrNothing = errors.New("nothing to export")

// Effect is an interval of the ratio of the objective with the changes to that without: 1 is no
// change. Zero fields are unknown.
type Effect struct {
	Ratio      float64 `json:"effect_ratio,omitempty"`
	Low        float64 `json:"effect_low_ratio,omitempty"`
	High       float64 `json:"effect_high_ratio,omitempty"`
	Confidence float64 `json:"confidence_ratio,omitempty"`
	Pairs      int     `json:"pairs,omitempty"`
}

// Origin is where a set comes from. Empty fields are unknown.
type Origin struct {
	Host     string    `json:"host,omitempty"`
	OS       string    `json:"os,omitempty"` // GOOS
	Kernel   string    `json:"kernel,omitempty"`
	Arch     string    `json:"arch,omitempty"`
	Linerate string    `json:"linerate,omitempty"` // version of the program
	Time     time.Time `json:"time"`               // of the proof; without one, of the newest change
	// Drivers are the drivers of the origin's interfaces, by name.
	Drivers map[string]string `json:"drivers,omitempty"`
}

// Proof is the result of an experiment for the whole set.
type Proof struct {
	Run    string `json:"run,omitempty"`    // name of the run
	Target string `json:"target,omitempty"` // the other end
	Goal   string `json:"goal,omitempty"`   // the objective
	// OtherEnd is how many changes at the other end of the path were part of the proof.
	OtherEnd int `json:"other_end_changes_total,omitempty"`
	Effect
}

// Change is one setting to export.
type Change struct {
	ID    string     `json:"id,omitempty"` // of the journal; several are separated by commas
	Knob  knob.ID    `json:"knob"`
	From  knob.Value `json:"from"` // the value that the origin had before
	To    knob.Value `json:"to"`
	State string     `json:"state,omitempty"` // committed, persisted
	Why   string     `json:"why,omitempty"`   // the finding, or the reason of the change
	// Proof is the result of the experiment for this change alone; nil: unknown.
	Proof *Effect `json:"proof,omitempty"`
}

// Set is everything to export.
type Set struct {
	Origin  Origin   `json:"origin"`
	Proof   *Proof   `json:"proof,omitempty"`
	Changes []Change `json:"changes"`
}

// Interface is an interface of the origin that became a variable of the files.
type Interface struct {
	Variable string `json:"variable"`         // if1, if2, …
	Name     string `json:"name"`             // on the origin; the variable's default
	Driver   string `json:"driver,omitempty"` // on the origin
}

// LeftOut is a change that a format cannot contain.
type LeftOut struct {
	Knob   knob.ID    `json:"knob"`
	To     knob.Value `json:"to"`
	Why    string     `json:"why"`
	ByHand string     `json:"by_hand,omitempty"` // the command for the user, if one exists
}

// File is one file of a bundle.
type File struct {
	Name    string `json:"name"`
	Mode    string `json:"mode"` // octal
	Content string `json:"content"`
}

// Perm is the mode as a number.
func (f File) Perm() fs.FileMode {
	if f.Mode == "0755" {
		return 0o755
	}
	return 0o644
}

// Bundle is a set written in one format. The first file is the main one.
type Bundle struct {
	Format     Format      `json:"format"`
	Interfaces []Interface `json:"interfaces"`
	Carried    []knob.ID   `json:"carried"` // in the order of application
	LeftOut    []LeftOut   `json:"left_out"`
	Files      []File      `json:"files"`
}

// Write writes a set in a format. ErrNothing: no change can be exported; the bundle then has only
// LeftOut.
func Write(format Format, set Set) (Bundle, error) {
	if !slices.Contains(Formats(), format) {
		return Bundle{}, fmt.Errorf("export %q: not one of ansible, tuned, shell, nixos", string(format))
	}
	d := newDraft(set)
	b := Bundle{Format: format, Interfaces: d.interfaces, LeftOut: d.left}
	switch format {
	case Shell:
		b.Files = d.shell()
	case Ansible:
		b.Files = d.ansible()
	case TuneD:
		b.Files = d.tuned()
	case NixOS:
		b.Files = d.nixos()
	}
	b.LeftOut = d.left
	for _, s := range d.settings {
		if !slices.ContainsFunc(d.left, func(l LeftOut) bool { return l.Knob == s.Knob }) {
			b.Carried = append(b.Carried, s.Knob)
		}
	}
	if len(b.Carried) == 0 {
		b.Files = nil
		return b, fmt.Errorf("export %s: %w", format, ErrNothing)
	}
	return b, nil
}

// setting is a change and how to reach it.
type setting struct {
	Change
	title string // of the catalogue
	way   way
}

// draft is a set on its way into a format.
type draft struct {
	set        Set
	settings   []setting
	interfaces []Interface
	left       []LeftOut
}

// newDraft determines how to reach each change, and names the interfaces. Several changes of one
// knob become one: the oldest From, the newest To.
func newDraft(set Set) *draft {
	d := &draft{set: set}
	d.set.Changes = merge(set.Changes)
	for _, c := range d.set.Changes {
		definition, why := known(c)
		var w way
		if why == nil {
			w, why = wayTo(c.Knob, c.To, definition)
		}
		if why == nil && w.misread(c) {
			why = leave("a tool would take a part of it for an option", "")
		}
		if why != nil {
			d.leave(c, why.Why, why.ByHand)
			continue
		}
		s := setting{Change: c, title: definition.Title, way: w}
		for i := range s.way.args {
			s.way.args[i].variable = d.variable(s.way.args[i].link)
		}
		d.settings = append(d.settings, s)
	}
	return d
}

// known returns the catalogue's definition of a knob. It rejects a text that is not a name of a
// knob, and a value that is not one line: all later code trusts both.
func known(c Change) (knob.Definition, *LeftOut) {
	id, err := knob.ParseID(string(c.Knob))
	definition, ok := knob.Catalogue().Lookup(c.Knob)
	switch {
	case err != nil || id != c.Knob || !ok:
		return definition, leave("no setting has this name", "")
	case !printable(string(c.To)):
		return definition, leave("its value is not text on one line", "")
	}
	return definition, nil
}

// printable reports whether text is a single line in every language.
func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// merge joins several changes of one knob into one, in the place of the first; a change that ends
// where it began disappears.
func merge(changes []Change) []Change {
	var out []Change
	for _, c := range changes {
		i := slices.IndexFunc(out, func(o Change) bool { return o.Knob == c.Knob })
		if i < 0 {
			out = append(out, c)
			continue
		}
		out[i].To, out[i].State, out[i].Why, out[i].Proof = c.To, c.State, c.Why, c.Proof
		if c.ID != "" {
			out[i].ID = strings.TrimPrefix(out[i].ID+","+c.ID, ",")
		}
	}
	return slices.DeleteFunc(out, func(c Change) bool { return c.From == c.To })
}

// leave records a change that is left out.
func (d *draft) leave(c Change, why, byHand string) {
	d.left = append(d.left, LeftOut{Knob: c.Knob, To: c.To, Why: why, ByHand: byHand})
}

// variable returns the variable of an interface, or "" without an interface.
func (d *draft) variable(link string) string {
	if link == "" {
		return ""
	}
	for _, i := range d.interfaces {
		if i.Name == link {
			return i.Variable
		}
	}
	v := fmt.Sprintf("if%d", len(d.interfaces)+1)
	d.interfaces = append(d.interfaces, Interface{Variable: v, Name: link, Driver: d.set.Origin.Drivers[link]})
	return v
}
