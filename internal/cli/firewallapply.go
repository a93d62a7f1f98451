package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/change/hazard"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/knob/live"
	"github.com/linerate/linerate/internal/firewall/apply"
	"github.com/linerate/linerate/internal/firewall/equal"
	"github.com/linerate/linerate/internal/firewall/owner"
	"github.com/linerate/linerate/internal/firewall/read"
	"github.com/linerate/linerate/internal/firewall/rewrite"
	"github.com/linerate/linerate/internal/firewall/ruleset"
	"github.com/linerate/linerate/internal/kernel/nl/nft"
	"github.com/linerate/linerate/internal/report"
)

// offer is a rewrite of one program's rules.
type offer struct {
	before *ruleset.Ruleset
	result rewrite.Result
	doc    *report.FirewallRewrite
}

// kernelPackets is how many packets the kernel forwards through old and new rules each.
const kernelPackets = 1000

// compareInKernel lets the kernel forward the same packets through old and new rules, where it can,
// and says so in the document. The error is a difference.
func compareInKernel(ctx context.Context, o offer) error {
	packets := equal.Forwarded(o.before, kernelPackets)
	skip := func(why string) error {
		o.doc.Notes = append(o.doc.Notes, "The kernel itself did not compare the rules: "+why+".")
		return nil
	}
	switch {
	case o.before.Program == ruleset.IPFW || o.before.Program == ruleset.PF:
		return skip("it is asked for rules of nftables and iptables only")
	case len(packets) == 0 || !slices.ContainsFunc(o.before.Tables, forwardsIPv4):
		return skip("no rule for IPv4 is at the hook forward")
	}
	r, err := equal.Kernel(ctx, o.before, o.result.Rules, packets, 1)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return skip("only root may make network namespaces")
	case err != nil:
		return skip(oneSentence(err))
	case r.Different != "":
		return fmt.Errorf("optimise rules: nothing is offered: in the kernel they differ: %s", r.Different)
	}
	o.doc.Proof.Method = append(o.doc.Proof.Method, "kernel")
	o.doc.Proof.KernelPackets, o.doc.Proof.KernelCounters = r.Packets, r.Counters
	return nil
}

// forwardsIPv4 reports whether a table has rules for forwarded packets of IPv4, which are those
// that the kernel is sent.
func forwardsIPv4(t *ruleset.Table) bool {
	return (t.Family == "ip" || t.Family == "inet") && slices.ContainsFunc(t.Chains, func(c *ruleset.Chain) bool {
		return c.Hook == "forward"
	})
}

// applyRules puts what is offered in force, as trials of the journal.
func (a *app) applyRules(ctx context.Context, offers []offer, trial time.Duration, yes bool) error {
	all, err := applicable(offers)
	if err != nil {
		return err
	}
	var plans []tableChange
	var why []string
	for _, o := range all {
		o.doc.Applied = &report.FirewallApplied{Changes: []journal.Change{}}
		some, left, err := planned(ctx, o, nil)
		if err != nil {
			return err
		}
		for _, k := range left {
			name := k.table.Family + " " + k.table.Name
			o.doc.Applied.Left = append(o.doc.Applied.Left, report.FirewallKept{Table: name, Why: k.why})
			why = append(why, name+": "+k.why)
		}
		for _, p := range some {
			plans = append(plans, tableChange{p, o.doc.Applied})
		}
	}
	if len(plans) == 0 {
		return statusError{exitFailed, "apply rules: nothing changed: " + strings.Join(why, "; "),
			"--output writes the new rules, for the program that owns them"}
	}
	return a.changeTables(ctx, all, plans, trial, yes)
}

// tableChange is the change of a table, and the document that shows it.
type tableChange struct {
	*apply.Plan
	done *report.FirewallApplied
}

// leftTable is a table that keeps its rules.
type leftTable struct {
	table *ruleset.Table
	why   string
}

// planned rehearses the changes of an offer, and returns which tables keep their rules, as those do
// whose rules one of the given changes has in force.
func planned(ctx context.Context, o offer, changes []journal.Change) (plans []*apply.Plan, left []leftTable,
	err error) {
	claims := owner.Claims(o.before)
	for i, t := range o.before.Tables {
		after := o.result.Rules.Tables[i]
		name := t.Family + " " + t.Name
		if !slices.ContainsFunc(o.result.Changed, func(c rewrite.Change) bool { return c.Table == name }) {
			continue
		}
		why := claimed(claims, t)
		if c := tableChangeOf(changes, ruleKnob(o, t)); c != "" {
			why = "change " + c + " of it is in force: undo that first"
		}
		if why != "" {
			left = append(left, leftTable{t, why})
			continue
		}
		p, err := apply.Rehearse(ctx, o.before.Program, t, after)
		switch {
		case errors.Is(err, apply.ErrRefused), errors.Is(err, ruleset.ErrUnprintable):
			left = append(left, leftTable{t, oneSentence(err)})
		case errors.Is(err, errors.ErrUnsupported):
			return nil, nil, flagError{fmt.Errorf("apply rules: nothing changed: %w", err),
				"install the programs of the rules and ip, or load what --output writes"}
		case err != nil:
			return nil, nil, fmt.Errorf("apply rules: nothing changed: %w", err)
		default:
			plans = append(plans, p)
		}
	}
	return plans, left, nil
}

// applicable returns the offers that can be applied.
func applicable(offers []offer) ([]offer, error) {
	var all []offer
	var other []string
	for _, o := range offers {
		switch {
		case len(o.result.Changed) == 0:
			continue
		case o.before.Program == ruleset.IPFW || o.before.Program == ruleset.PF:
			other = append(other, string(o.before.Program))
		case o.result.Proof.Answer != equal.Equal:
			return nil, statusError{exitFailed,
				"apply rules: nothing changed: the new rules are not proven to be equal", ""}
		default:
			all = append(all, o)
		}
	}
	if len(all) > 0 {
		return all, nil
	}
	if len(other) > 0 {
		return nil, statusError{exitFailed, "apply rules: nothing changed: --apply is for rules of nftables and " +
			"iptables, and these are of " + strings.Join(other, " and "),
			"write them with --output, and load them with their program"}
	}
	return nil, statusError{exitFailed, "apply rules: nothing changed: no shorter rules were found", ""}
}

// claimed returns which program rewrites a table when it likes; nothing if none does.
func claimed(claims []owner.Claim, t *ruleset.Table) string {
	for _, c := range claims {
		if c.Family != t.Family || c.Table != t.Name {
			continue
		}
		name := c.Program
		if name == "" {
			name = "another program"
		}
		why := name + " writes rules there, and would undo this"
		if c.How != "" {
			why += "; use " + c.How
		}
		return why
	}
	return ""
}

// changeTables applies plans under the journal.
func (a *app) changeTables(ctx context.Context, offers []offer, plans []tableChange, trial time.Duration,
	yes bool) error {
	dir, err := a.stateDir()
	if err != nil {
		return err
	}
	j, err := a.openJournalWith(hazard.Backend{Backend: live.New()}, journal.Deadline, "near")
	if err != nil {
		return err
	}
	defer j.Close()
	tables := &apply.Tables{Dir: ruleDir(dir)}
	var settings []knob.Setting
	for _, p := range plans {
		if c := tableChangeOf(j.Changes(), p.ID()); c != "" {
			return statusError{exitFailed, fmt.Sprintf("apply rules: nothing changed: change %s of table %s %s is in force",
				c, p.Family, p.Table), "linerate undo " + c + " takes it back first"}
		}
		settings = append(settings, knob.Setting{Knob: p.ID(), Value: p.To()})
	}
	// The rules that were proven must be those that are replaced.
	for _, o := range offers {
		if err := sameRules(ctx, o.before); err != nil {
			return flagError{fmt.Errorf("apply rules: nothing changed: %w", err), "run it again"}
		}
	}
	for _, p := range plans {
		if err := tables.Add(p.Plan); err != nil {
			return fmt.Errorf("apply rules: nothing changed: %w", err)
		}
	}
	changes, err := j.Apply(ctx, journal.Request{Reason: "linerate firewall optimise", For: trial}, settings...)
	if err != nil {
		return err
	}
	for _, p := range plans {
		packets, counters, err := tables.Carried(ctx, p.ID())
		if err != nil {
			a.warn("%s", oneSentence(err))
			continue
		}
		p.done.Carried, p.done.Counters = p.done.Carried+packets, p.done.Counters+counters
	}
	if yes && len(changes) > 0 {
		if err := j.Commit(ctx, ids(changes)...); err != nil {
			return err
		}
		changes = byID(j.Changes(), ids(changes))
	}
	for _, c := range changes {
		for _, p := range plans {
			if p.ID() == c.Knob {
				p.done.Changes = append(p.done.Changes, c)
			}
		}
	}
	return nil
}

// ruleKnob is the knob of the rules of a table.
func ruleKnob(o offer, t *ruleset.Table) knob.ID {
	return (&apply.Plan{Program: o.before.Program, Family: t.Family, Table: t.Name}).ID()
}

// tableChangeOf returns the id of a change of a table that is not undone. Its undo needs the plan
// that is stored, and another plan of the table would replace that.
func tableChangeOf(all []journal.Change, id knob.ID) string {
	for _, c := range all {
		if c.Knob == id && c.State != journal.Undone {
			return c.ID
		}
	}
	return ""
}

// sameRules compares the rules of this namespace with those that were read before: by the number of
// the ruleset, or by the rules themselves, because iptables-legacy has no such number.
func sameRules(ctx context.Context, before *ruleset.Ruleset) error {
	if before.Program != ruleset.IPTablesLegacy {
		g, err := nft.Generation()
		if err != nil || uint64(g) != before.Generation {
			return errors.Join(apply.ErrChanged, err)
		}
		return nil
	}
	all, err := read.Live(ctx)
	if err != nil {
		return err
	}
	for _, r := range all {
		if r.Program == before.Program && r.Subtract(before) == nil {
			return nil
		}
	}
	return apply.ErrChanged
}

// byProgram parts the tables of iptables-nft from those of nft, which the same reader returns.
func byProgram(all []*ruleset.Ruleset) []*ruleset.Ruleset {
	var out []*ruleset.Ruleset
	for _, r := range all {
		if r.Program != ruleset.NFT {
			out = append(out, r)
			continue
		}
		own, compat := *r, *r
		own.Tables, compat.Tables, compat.Program = nil, nil, ruleset.IPTablesNFT
		for _, t := range r.Tables {
			if ofIPTables(t) {
				compat.Tables = append(compat.Tables, t)
			} else {
				own.Tables = append(own.Tables, t)
			}
		}
		for _, part := range []*ruleset.Ruleset{&own, &compat} {
			if len(part.Tables) > 0 {
				out = append(out, part)
			}
		}
	}
	return out
}

// ofIPTables reports whether iptables-nft has printed the rules of a table.
func ofIPTables(t *ruleset.Table) bool {
	return slices.ContainsFunc(t.Chains, func(c *ruleset.Chain) bool {
		return slices.ContainsFunc(c.Rules, func(r *ruleset.Rule) bool { return r.Text != "" })
	})
}
