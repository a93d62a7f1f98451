package report

import (
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/diagnose/resolvers"
	"github.com/linerate/linerate/internal/resolver/server"
)

// SchemaResolverDiagnose is the schema of the document of `linerate resolver diagnose`.
const SchemaResolverDiagnose = "linerate.resolver-diagnose/1"

// ResolverDiagnoseDocument is linerate.resolver-diagnose/1: what holds a name server, and what was
// observed of it.
type ResolverDiagnoseDocument struct {
	Envelope
	Limit       evidence.Code      `json:"limit"` // of the first finding
	Findings    []evidence.Finding `json:"findings"`
	Observation server.Observation `json:"observation"`
}

// NewResolverDiagnose makes a document of an observation.
func NewResolverDiagnose(e Envelope, o server.Observation) *ResolverDiagnoseDocument {
	d := &ResolverDiagnoseDocument{Envelope: e.Of(SchemaResolverDiagnose), Observation: o,
		Findings: CleanFindings(resolvers.Findings(o))}
	d.Limit = d.Findings[0].Code
	FillSlices(d)
	return d
}
