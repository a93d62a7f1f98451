package text

import (
	"fmt"
	"io"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/resolver/server"
)

// ResolverDiagnose writes what limits a name server: the first finding with its evidence, the
// others in short, and what could not be seen. Verbose writes all findings in full.
func ResolverDiagnose(w io.Writer, d *report.ResolverDiagnoseDocument, s Style, verbose bool) error {
	p := &printer{w: w, s: s}
	o := d.Observation
	name := string(o.Statistics.Kind)
	if o.Statistics.Version != "" {
		name += " " + o.Statistics.Version
	}
	if o.Address != "" {
		name += " at " + o.Address
	}
	span := ""
	switch {
	case o.SinceStart && o.Seconds > 0:
		span = ", since its start " + unit.FormatSeconds(o.Seconds) + " ago"
	case o.SinceStart:
		span = ", since its start"
	case o.Seconds > 0:
		span = ", observed for " + unit.FormatSeconds(o.Seconds)
	}
	p.line("%s", s.bold(clean(name+span)))
	p.line("")
	p.resolverFacts(o)
	for i, f := range d.Findings {
		p.line("")
		if i == 0 || verbose {
			p.finding(f, verbose)
		} else {
			p.brief(f)
		}
	}
	p.notes("COULD NOT SEE", o.Unseen)
	return p.err
}

// resolverFacts prints the few numbers that every reader asks for first.
func (p *printer) resolverFacts(o server.Observation) {
	st := o.Statistics
	t := newTable()
	queries := unit.FormatCount(st.Of(server.Queries))
	if o.Seconds > 0 {
		queries += fmt.Sprintf(" (%s)", perSecond(st.Of(server.Queries)/o.Seconds))
	}
	t.row("queries", queries)
	hits, ok := st.Get(server.Hits)
	misses := st.Of(server.Misses)
	if ok && hits+misses > 0 {
		t.row("from the cache", unit.FormatPercent(hits/(hits+misses)))
	}
	if up, ok := st.Get(server.Upstream); ok {
		text := unit.FormatCount(up)
		if misses > 0 {
			text += fmt.Sprintf(" (%.1f for each miss)", up/misses)
		}
		t.row("to other servers", text)
	}
	if n, ok := st.Get(server.Workers); ok {
		text := unit.FormatCount(n)
		if o.Host != nil && o.Host.CPUs > 0 {
			text += fmt.Sprintf(" on %d CPUs", o.Host.CPUs)
		}
		t.row("workers", text)
	}
	for _, setting := range []struct {
		name  string
		value server.Name
	}{{"query log", server.QueryLog}, {"QNAME minimisation", server.Minimisation}, {"prefetch", server.Prefetch},
		{"DNSSEC validation", server.Validation}} {
		if n, ok := st.Get(setting.value); ok {
			t.row(setting.name, map[bool]string{true: "on", false: "off"}[n > 0])
		}
	}
	t.print(p, "  ")
}
