package text

import (
	"fmt"
	"io"
	"strings"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/resolver/load"
)

// Resolver writes a load on a name server as one screen of text.
func Resolver(w io.Writer, d *report.ResolverDocument, s Style) error {
	p := &printer{w: w, s: s}
	p.line("%s", s.bold(clean(fmt.Sprintf("%s → %s over %s", nameOr(d.Host.Name, "near"), d.Server, d.Transport))))
	p.line("")
	p.line("  %s", resolverLoad(d))
	p.line("")
	t := newTable()
	t.row("queries", perSecond(d.QueriesPerSecond))
	t.row("answers", cell{perSecond(d.AnswersPerSecond) + " checked", s.bold})
	if len(d.Steps) > 0 {
		knee := "no rate was held"
		if d.Knee > 0 {
			knee = perSecond(d.Knee)
		}
		t.row("knee", cell{knee, s.bold})
	}
	lost := cell{fmt.Sprintf("%s (%s)", unit.FormatPercent(d.LossRatio), unit.FormatCount(float64(d.Lost))), nil}
	if d.Lost > 0 {
		lost.paint = s.yellow
	}
	t.row("lost", lost)
	for _, c := range []struct {
		name string
		n    uint64
	}{{"late", d.Late}, {"twice", d.Duplicates}, {"truncated", d.Truncated}, {"without EDNS", d.NoEDNS},
		{"port closed", d.Refused}, {"interrupted", d.Interrupted}, {"dropped here", d.SocketDrops}} {
		if c.n > 0 {
			t.row(c.name, unit.FormatCount(float64(c.n)))
		}
	}
	for _, k := range d.Wrong {
		t.row("wrong", cell{fmt.Sprintf("%s %s", unit.FormatCount(float64(k.Total)), k.Kind), s.red})
	}
	var codes []string
	for _, c := range d.Codes {
		codes = append(codes, fmt.Sprintf("%s %s", c.Code, unit.FormatPercent(ratio(c.Total, d.Answers))))
	}
	t.row("codes", strings.Join(codes, " · "))
	if d.CacheHitRatio != nil {
		t.row("cache hits", unit.FormatPercent(*d.CacheHitRatio))
	}
	if d.FreshSeconds != nil {
		t.row("a change is seen after", unit.FormatSeconds(*d.FreshSeconds))
	}
	if d.CPUSecondsPerAnswer > 0 {
		t.row("cost here", unit.FormatSeconds(d.CPUSecondsPerAnswer)+" of CPU an answer")
	}
	t.print(p, "  ")
	p.latencies(d)
	p.steps(d.Steps)
	p.notes("TAKE WITH CARE", d.Warnings)
	return p.err
}

// resolverLoad describes what was sent.
func resolverLoad(d *report.ResolverDocument) string {
	mode := ""
	switch d.Mode {
	case load.Closed:
		mode = fmt.Sprintf("closed loop of %d queries", d.Outstanding)
	case load.Ramp:
		mode = "ramp"
	default:
		mode = "open loop at " + perSecond(d.Target)
	}
	return fmt.Sprintf("%s for %s, %s, %s", mode, unit.FormatSeconds(d.DurationSeconds),
		unit.Counted(d.Sockets, "socket"), d.Method)
}

// perSecond is a rate of queries.
func perSecond(rate float64) string { return unit.FormatCount(rate) + "/s" }

// latencies prints the distributions of a load.
func (p *printer) latencies(d *report.ResolverDocument) {
	if d.Latency == nil {
		return
	}
	p.line("")
	t := newTable("latency", ">min", ">p50", ">p90", ">p99", ">p99.9", ">max")
	for _, l := range []struct {
		name string
		*stats.Latencies
	}{{"since due", d.Latency}, {"since sent", d.ServiceLatency}, {"sent late by", d.SendDelay}} {
		if l.Latencies != nil {
			t.row(l.name, unit.FormatSeconds(l.Min), unit.FormatSeconds(l.P50), unit.FormatSeconds(l.P90),
				unit.FormatSeconds(l.P99), unit.FormatSeconds(l.P999), unit.FormatSeconds(l.Max))
		}
	}
	t.print(p, "  ")
}

// steps prints the rates of a ramp.
func (p *printer) steps(steps []load.Step) {
	if len(steps) == 0 {
		return
	}
	p.line("")
	t := newTable(">asked", ">answers", ">lost", ">p50", ">p99", "held")
	for _, s := range steps {
		held := cell{"yes", p.s.green}
		if !s.Held {
			held = cell{"no: " + s.Why, p.s.yellow}
		}
		t.row(perSecond(s.Target), perSecond(s.AnswersPerSecond), unit.FormatPercent(s.LossRatio),
			unit.FormatSeconds(s.P50), unit.FormatSeconds(s.P99), held)
	}
	t.print(p, "  ")
}

// ResolverAnswer writes where our own server answers.
func ResolverAnswer(w io.Writer, d *report.ResolverAnswerDocument, s Style) error {
	p := &printer{w: w, s: s}
	p.line("answering on %s over udp and tcp", d.Listen)
	if d.ListenTLS != "" {
		p.line("answering on %s over tls", d.ListenTLS)
	}
	return p.err
}

// ResolverLab writes a comparison of configurations as a table.
func ResolverLab(w io.Writer, d *report.ResolverLabDocument, s Style) error {
	p := &printer{w: w, s: s}
	p.line("%s", s.bold(clean(fmt.Sprintf("%s, %s names", d.Version, unit.FormatCount(float64(d.Names))))))
	p.line("")
	t := newTable("options", ">answers", ">p50", ">p99", ">lost", ">hits", ">evicted", ">upstream",
		">a change is seen after")
	for _, r := range d.Rows {
		if !r.Started {
			t.row(r.Name, cell{"does not start", s.red})
			continue
		}
		hits, evicted, fresh := "", "", ""
		if r.CacheHitRatio != nil {
			hits = unit.FormatPercent(*r.CacheHitRatio)
		}
		if r.Evictions != nil {
			evicted = unit.FormatCount(float64(*r.Evictions))
		}
		if r.FreshSeconds != nil {
			fresh = unit.FormatSeconds(*r.FreshSeconds)
		}
		t.row(r.Name, cell{perSecond(r.AnswersPerSecond), s.bold}, unit.FormatSeconds(r.P50Seconds),
			unit.FormatSeconds(r.P99Seconds), unit.FormatPercent(r.LossRatio), hits, evicted,
			unit.FormatCount(float64(r.Upstream)), fresh)
	}
	t.print(p, "  ")
	var remarks []string
	for _, r := range d.Rows {
		if r.Why != "" {
			remarks = append(remarks, r.Name+": "+r.Why)
			continue
		}
		for _, remark := range r.Remarks {
			remarks = append(remarks, r.Name+": "+remark)
		}
	}
	p.notes("WHAT THE PROGRAM SAID", remarks)
	return p.err
}
