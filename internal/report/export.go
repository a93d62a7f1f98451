package report

import (
	"github.com/linerate/linerate/internal/change/export"
)

// SchemaExport is the document of a set of changes for other hosts.
const SchemaExport = "linerate.export/1"

// ExportDocument is linerate.export/1: a set of changes, where it was proven, and the files that
// carry it to other hosts.
type ExportDocument struct {
	Envelope
	export.Set
	export.Bundle
}

// NewExport makes an export document.
func NewExport(e Envelope, set export.Set, bundle export.Bundle) *ExportDocument {
	d := &ExportDocument{Envelope: e.Of(SchemaExport), Set: set, Bundle: bundle}
	FillSlices(d)
	return d
}
