package report

import (
	"slices"

	"github.com/linerate/linerate/internal/storage/nfs"
)

// SchemaNFS is the schema of the document of `linerate nfs`.
const SchemaNFS = "linerate.nfs/1"

// NFSDocument is linerate.nfs/1: where the calls of NFS mounts wait.
type NFSDocument struct {
	Envelope
	Mounts   []nfs.Mount `json:"mounts"`
	Warnings []string    `json:"warnings,omitempty"`
}

// NewNFS makes an NFS document.
func NewNFS(e Envelope, mounts []nfs.Mount) *NFSDocument {
	d := &NFSDocument{Envelope: e.Of(SchemaNFS), Mounts: slices.Clone(mounts)}
	FillSlices(d)
	return d
}
