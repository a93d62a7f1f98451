package text

import (
	"fmt"
	"io"
	"strconv"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/report"
)

// mostShown bounds the pairs of rules that the text lists; the JSON has all.
const mostShown = 20

// Firewall writes what rules cost: hooks and their chains, the costly rules, and pairs of rules.
func Firewall(w io.Writer, d *report.FirewallDocument, s Style) error {
	if d.Rewrite != nil {
		return firewallRewrite(w, d, s)
	}
	p := &printer{w: w, s: s}
	for _, h := range d.Hooks {
		if h.Rules == 0 {
			continue
		}
		by := "for a packet that matches no rule"
		if h.Counted {
			by = "by the counters"
		}
		p.head(fmt.Sprintf("%s (%s): %s of %d rules per packet, %s ns, %s", h.Name, h.Program, decimal(h.PerPacket), h.Rules,
			decimal(h.Nanoseconds), by))
		t := newTable("table", "chain", "priority", "rules", "without counter", "packets", "rules per packet",
			"ns per packet")
		for _, c := range h.Chains {
			packets := ""
			if c.Packets > 0 {
				packets = decimal(c.Packets)
			}
			t.row(c.Table, c.Chain, strconv.Itoa(c.Priority), strconv.Itoa(c.Rules), strconv.Itoa(c.Uncounted), packets,
				decimal(c.PerPacket), decimal(c.Nanoseconds))
		}
		t.print(p, "  ")
		p.line("")
	}
	if len(d.Costly) > 0 {
		p.head("rules that cost most (position × hits)")
		t := newTable("table", "chain", "position", "hits", "share of looks", "rule")
		t.wrap = true
		for _, r := range d.Costly {
			t.row(r.Table, r.Chain, strconv.Itoa(r.Position), decimal(r.Hits), unit.FormatPercent(r.Share), r.Text)
		}
		t.print(p, "  ")
		p.line("")
	}
	if len(d.Hooks) == 0 {
		p.line("There are no rules.")
	}
	if d.NeverHit > 0 {
		p.line("Rules with a counter that never matched: %d", d.NeverHit)
	}
	for i, f := range d.Findings {
		if i == mostShown {
			p.line("… and %d more pairs; --json lists all.", len(d.Findings)-mostShown)
			break
		}
		by := "by"
		if f.Relation == "redundant" {
			by = "beside"
		}
		p.line("%s %s, rule %d is %s %s rule %d:", f.Table, f.Chain, f.Position, s.yellow(f.Relation), by, f.Other)
		p.line("  %d  %s", f.Position, f.Text)
		p.line("  %d  %s", f.Other, f.OtherIs)
	}
	for _, n := range d.Notes {
		p.wrapped("", n)
	}
	return p.err
}

// decimal writes a number without a useless fraction.
func decimal(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// FirewallTrace writes what one packet meets.
func FirewallTrace(w io.Writer, d *report.FirewallTraceDocument, s Style) error {
	p := &printer{w: w, s: s}
	p.head(d.Packet)
	for _, h := range d.Hooks {
		verdict := s.green(h.Verdict)
		if h.Verdict != "accept" {
			verdict = s.red(h.Verdict)
		}
		increase := "increase"
		if h.Counters == 1 {
			increase = "increases"
		}
		p.line("%s (%s): %s by %s after %s and %s; %s %s", h.Name, h.Program, verdict, h.By,
			unit.Counted(h.Rules, "rule"), unit.Counted(h.Lookups, "lookup"), unit.Counted(h.Counters, "counter"), increase)
		t := newTable()
		t.wrap = true
		for _, r := range h.Matched {
			note := ""
			if r.Unknown {
				note = "may match: a condition is not known from the packet's shape"
			}
			t.row(r.Table, r.Chain, strconv.Itoa(r.Position), r.Text, cell{note, s.dim})
		}
		t.print(p, "  ")
	}
	if len(d.Hooks) == 0 {
		p.line("No rule sees this packet.")
	}
	return p.err
}
