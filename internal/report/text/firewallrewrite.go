package text

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/report"
)

// firewallRewrite writes what a rewrite of rules saves, how it was proved, and the rules as a
// difference.
func firewallRewrite(w io.Writer, d *report.FirewallDocument, s Style) error {
	p := &printer{w: w, s: s}
	oneRewrite(p, d.Rewrite)
	for _, r := range d.More {
		p.line("")
		oneRewrite(p, r)
	}
	return p.err
}

func oneRewrite(p *printer, r *report.FirewallRewrite) {
	s := p.s
	if len(r.Changed) == 0 {
		p.line("No shorter rules were found. A packet meets %s rules (%s).", decimal(r.Before), r.Program)
	} else {
		by := "on average over packets at the ends of the rules' ranges"
		if r.Counted {
			by = "weighed by the counters"
		}
		p.head("A packet meets " + decimal(r.After) + " rules instead of " + decimal(r.Before) + " (" +
			r.Program + "), " + by)
		for _, c := range r.Changed {
			p.line("  %s %s: %s before, %d after", c.Table, c.Chain, unit.Counted(c.Before, "rule"), c.After)
		}
		answer := s.green("equal")
		if !r.Proof.Equal {
			answer = s.red("not proven")
		}
		kernel := ""
		if r.Proof.KernelPackets > 0 {
			kernel = ", and by " + unit.Counted(r.Proof.KernelPackets, "packet") + " through the kernel"
		}
		p.line("Proof: %s, for every verdict and every counter, by %s and %s%s.", answer,
			unit.Counted(r.Proof.Cells, "cell"), unit.Counted(r.Proof.Packets, "traced packet"), kernel)
	}
	for _, k := range r.Kept {
		p.wrapped("", strings.TrimSpace(k.Table+" "+k.Chain)+
			" keeps its rules, because the new ones are not proven to be equal: "+k.Why)
	}
	for _, n := range r.Notes {
		p.wrapped("", n)
	}
	if r.Ruleset != "" {
		p.line("")
		firewallDiff(p, r)
	}
	if r.Applied != nil {
		p.line("")
		firewallApplied(p, r.Applied)
	}
}

// firewallApplied writes which rules are in force now, and until when.
func firewallApplied(p *printer, a *report.FirewallApplied) {
	for _, k := range a.Left {
		p.wrapped("", k.Table+" keeps its old rules: "+k.Why)
	}
	if a.Carried > 0 {
		p.wrapped("", fmt.Sprintf("%s were counted while the rules changed. They are in the chain linerate_carry of the "+
			"table; linerate undo adds them to their counters.", unit.Counted(int(min(a.Carried, math.MaxInt)), "packet")))
	}
	p.set(a.Changes)
}

// FirewallDiff writes how new rules differ from the old ones, and nothing else.
func FirewallDiff(w io.Writer, d *report.FirewallDocument, s Style) error {
	p := &printer{w: w, s: s}
	if d.Rewrite != nil && d.Rewrite.Ruleset != "" {
		firewallDiff(p, d.Rewrite)
	}
	for _, r := range d.More {
		if r.Ruleset != "" {
			firewallDiff(p, r)
		}
	}
	return p.err
}

func firewallDiff(p *printer, r *report.FirewallRewrite) {
	for _, l := range r.Diff() {
		switch l[0] {
		case '+':
			l = p.s.green(l)
		case '-':
			l = p.s.red(l)
		}
		p.line("%s", l)
	}
}
