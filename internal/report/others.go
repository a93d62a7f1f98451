package report

import (
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/change/bootconf"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/ceiling"
)

// SchemaUndo and SchemaExplain are the documents of undone changes and of an explained code.
const (
	SchemaUndo    = "linerate.undo/1"
	SchemaExplain = "linerate.explain/1"
)

// NewInspect makes an inspect document of a snapshot, and derives the ceilings. The host of the
// envelope becomes that of the snapshot.
func NewInspect(e Envelope, s *host.Snapshot) *InspectDocument {
	d := &InspectDocument{
		Envelope: e.Of(SchemaInspect).describe(s), Interfaces: slices.Clone(s.Interfaces), CPUs: slices.Clone(s.CPUs),
		Settings: slices.Clone(s.Settings), Routes: slices.Clone(s.Routes), Platform: s.Platform,
		Ceilings: ceiling.All(s), Moderation: ceiling.Moderation(s),
		Warnings: slices.Clone(s.Warnings),
	}
	FillSlices(d)
	return d
}

// UndoDocument is linerate.undo/1: the result of each undone change; undo and recover print it.
type UndoDocument struct {
	Envelope
	Outcomes []journal.Outcome `json:"outcomes"`
	// what tunes changed at their far ends and this undo did not reach; it may still be in force there
	Left []UndoLeft `json:"left,omitempty"`
}

// UndoLeft is what one tune changed at its far end and undo could not take back from here.
type UndoLeft struct {
	Run     string           `json:"run"`
	Target  string           `json:"target"`
	Changes []journal.Change `json:"changes"` // as the run left them
	Reason  string           `json:"reason"`
}

// NewUndo makes an undo document.
func NewUndo(e Envelope, outcomes []journal.Outcome, left ...UndoLeft) *UndoDocument {
	d := &UndoDocument{Envelope: e.Of(SchemaUndo), Outcomes: slices.Clone(outcomes), Left: slices.Clone(left)}
	FillSlices(d)
	return d
}

// KnobsDocument is linerate.knobs/1: a part of the catalogue, and the values of the host.
type KnobsDocument struct {
	Envelope
	Knobs []KnobEntry `json:"knobs"`
}

// KnobEntry is one definition and, where requested, the values of the host.
type KnobEntry struct {
	knob.Definition
	// one for each knob of the definition; absent: not requested, or this host has none
	Current []KnobNow `json:"current,omitempty"`
}

// KnobNow is one knob of a host.
//
// The value is a pointer, because an empty list is a value. It is absent when it could not be read;
// Unread is then the reason.
type KnobNow struct {
	Knob   knob.ID     `json:"knob"`
	Value  *knob.Value `json:"value,omitempty"`
	Unread string      `json:"unread,omitempty"` // why there is no value
	// why no process can change it from here, as in a container
	ReadOnly string `json:"read_only,omitempty"`
	// the line of a configuration file that sets it when the host starts
	SetBy   *bootconf.Line `json:"set_by,omitempty"`
	Changed bool           `json:"changed_since_start,omitempty"` // the value differs from that line
}

// NewKnobs makes a document of catalogue entries. Now has the values of the host by the name of the
// definition; nil: not requested.
func NewKnobs(e Envelope, definitions []knob.Definition, now map[knob.ID][]KnobNow) *KnobsDocument {
	d := &KnobsDocument{Envelope: e.Of(SchemaKnobs)}
	for _, def := range definitions {
		current := slices.Clone(now[def.Pattern])
		for i, k := range current {
			// TuneD's notation for "at least" (>2048) cannot be compared with a value.
			if k.SetBy != nil && k.Value != nil && !strings.HasPrefix(string(k.SetBy.Value), ">") {
				current[i].Changed = !def.Equal(*k.Value, k.SetBy.Value)
			}
		}
		d.Knobs = append(d.Knobs, KnobEntry{Definition: def, Current: current})
	}
	FillSlices(d)
	return d
}

// ExplainDocument is linerate.explain/1: one entry of the registry of findings.
type ExplainDocument struct {
	Envelope
	evidence.Entry
}

// NewExplain makes a document of one registry entry.
func NewExplain(e Envelope, entry evidence.Entry) *ExplainDocument {
	return &ExplainDocument{Envelope: e.Of(SchemaExplain), Entry: entry}
}
