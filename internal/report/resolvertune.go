package report

import (
	"slices"
	"time"

	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/experiment/tune"
)

// SchemaResolverTune is the document of an experiment on a name server.
const SchemaResolverTune = "linerate.resolver-tune/1"

// ResolverTuneDocument is linerate.resolver-tune/1: an experiment with the options of one name
// server, with every raw segment. Objectives are sound answers per second of the server's CPU time.
type ResolverTuneDocument struct {
	Envelope
	Program string `json:"program"` // named, unbound or kresd
	Version string `json:"version,omitempty"`
	Config  string `json:"config"` // path of the configuration file
	Server  string `json:"server"` // address and port
	// Restarts is how often the server was restarted to begin with an empty cache.
	Restarts int    `json:"restarts_total"`
	Unit     string `json:"objective_unit"` // answers_per_second, of CPU time
	tune.Outcome
	Changes []journal.Change `json:"changes"` // what the run left in force
	// Fresh is how long a changed record stays hidden, for some sets of options: speed and freshness
	// on one page. Only a closed world can change a record.
	Fresh   []FreshRow `json:"fresh,omitempty"`
	Seconds float64    `json:"duration_seconds"`
}

// FreshRow is what one set of options means for a record that changes and lives 300 s.
type FreshRow struct {
	Name    string   `json:"name"`
	Options []string `json:"options"` // lines of the configuration
	// FreshSeconds is how long the old data were served; absent: longer than was waited for.
	FreshSeconds *float64 `json:"fresh_seconds,omitempty"`
	// AnswersPerSecond is the capacity with these options; absent: not measured.
	AnswersPerSecond float64 `json:"answers_per_second,omitempty"`
}

// ResolverTuneRun is what a document is made of.
type ResolverTuneRun struct {
	Program, Version, Config, Server string
	Outcome                          *tune.Outcome
	Changes                          []journal.Change
	Fresh                            []FreshRow
	Duration                         time.Duration
}

// NewResolverTune makes a document of an experiment.
func NewResolverTune(e Envelope, r ResolverTuneRun) *ResolverTuneDocument {
	d := &ResolverTuneDocument{Envelope: e.Of(SchemaResolverTune), Program: r.Program, Version: r.Version,
		Config: r.Config, Server: r.Server, Unit: "answers_per_second", Outcome: *r.Outcome,
		Changes: slices.Clone(r.Changes), Fresh: slices.Clone(r.Fresh), Seconds: r.Duration.Seconds()}
	d.Outcome.Segments = cleanSegments(r.Outcome.Segments)
	d.Restarts = len(d.Outcome.Segments)
	FillSlices(d)
	return d
}
