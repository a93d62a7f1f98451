package report

import (
	"slices"

	"github.com/linerate/linerate/internal/diagnose"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/journal"
	"github.com/linerate/linerate/internal/knob"
)

// SchemaUndo and SchemaExplain are the documents of taking changes back and of explaining a code.
const (
	SchemaUndo    = "linerate.undo/1"
	SchemaExplain = "linerate.explain/1"
)

// NewInspect makes an inspect document of a snapshot; the ceilings follow from it. The envelope's host becomes the snapshot's.
func NewInspect(e Envelope, s *host.Snapshot) *InspectDocument {
	d := &InspectDocument{
		Envelope: e.of(SchemaInspect).describe(s), Interfaces: slices.Clone(s.Interfaces), CPUs: slices.Clone(s.CPUs),
		Settings: slices.Clone(s.Settings), Routes: slices.Clone(s.Routes), Platform: s.Platform, Ceilings: host.Ceilings(s), Warnings: slices.Clone(s.Warnings),
	}
	fillSlices(d)
	return d
}

// UndoDocument is linerate.undo/1: what taking changes back came to; undo and recover print it.
type UndoDocument struct {
	Envelope
	Outcomes []journal.Outcome `json:"outcomes"`
}

// NewUndo makes an undo document.
func NewUndo(e Envelope, outcomes []journal.Outcome) *UndoDocument {
	d := &UndoDocument{Envelope: e.of(SchemaUndo), Outcomes: slices.Clone(outcomes)}
	fillSlices(d)
	return d
}

// KnobsDocument is linerate.knobs/1: a part of the catalogue.
type KnobsDocument struct {
	Envelope
	Knobs []knob.Definition `json:"knobs"`
}

// NewKnobs makes a document of catalogue entries.
func NewKnobs(e Envelope, definitions []knob.Definition) *KnobsDocument {
	d := &KnobsDocument{Envelope: e.of(SchemaKnobs), Knobs: slices.Clone(definitions)}
	fillSlices(d)
	return d
}

// ExplainDocument is linerate.explain/1: one entry of the registry of findings.
type ExplainDocument struct {
	Envelope
	diagnose.Entry
}

// NewExplain makes a document of one registry entry.
func NewExplain(e Envelope, entry diagnose.Entry) *ExplainDocument {
	return &ExplainDocument{Envelope: e.of(SchemaExplain), Entry: entry}
}
