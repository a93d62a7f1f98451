package report

import (
	"slices"

	"github.com/linerate/linerate/internal/resolver/load"
	"github.com/linerate/linerate/internal/resolver/world"
)

// The documents about name servers.
const (
	SchemaResolver       = "linerate.resolver/1"
	SchemaResolverAnswer = "linerate.resolver-answer/1"
	SchemaResolverLab    = "linerate.resolver-lab/1"
)

// ResolverDocument is linerate.resolver/1: a load on a name server, with every answer checked.
type ResolverDocument struct {
	Envelope
	load.Result
	// CacheHitRatio is the share of the queries that the server answered from its cache, as its own
	// counters say; absent: they were not read.
	CacheHitRatio *float64 `json:"cache_hit_ratio,omitempty"`
	// FreshSeconds is how long the server went on serving the old data of a changed record; absent:
	// not measured.
	FreshSeconds *float64 `json:"fresh_seconds,omitempty"`
}

// NewResolver makes a document of a load.
func NewResolver(e Envelope, r *load.Result) *ResolverDocument {
	d := &ResolverDocument{Envelope: e.Of(SchemaResolver), Result: *r}
	FillSlices(d)
	return d
}

// ResolverAnswerDocument is linerate.resolver-answer/1: where our own name server answers. It is
// printed once, before the first query.
type ResolverAnswerDocument struct {
	Envelope
	Listen    string `json:"listen"`               // UDP and TCP
	ListenTLS string `json:"listen_tls,omitempty"` // absent: none
}

// NewResolverAnswer makes a document of a server.
func NewResolverAnswer(e Envelope, listen, listenTLS string) *ResolverAnswerDocument {
	return &ResolverAnswerDocument{Envelope: e.Of(SchemaResolverAnswer), Listen: listen, ListenTLS: listenTLS}
}

// ResolverLabDocument is linerate.resolver-lab/1: what options of a recursor do, in a closed world.
type ResolverLabDocument struct {
	Envelope
	Recursor world.Recursor `json:"recursor"`
	Version  string         `json:"version"` // as the program says
	Names    int            `json:"names_total"`
	Rows     []world.Row    `json:"rows"` // the first is the default configuration
}

// NewResolverLab makes a document of a comparison.
func NewResolverLab(e Envelope, r world.Recursor, version string, names int, rows []world.Row) *ResolverLabDocument {
	d := &ResolverLabDocument{Envelope: e.Of(SchemaResolverLab), Recursor: r, Version: version, Names: names,
		Rows: slices.Clone(rows)}
	FillSlices(d)
	return d
}
