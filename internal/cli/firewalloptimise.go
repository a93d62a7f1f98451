package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/firewall/cost"
	"github.com/linerate/linerate/internal/firewall/equal"
	"github.com/linerate/linerate/internal/firewall/rewrite"
	"github.com/linerate/linerate/internal/firewall/ruleset"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/text"
)

func (a *app) firewallOptimise() *cobra.Command {
	var from, output string
	var diff, put, yes bool
	var trial time.Duration
	c := &cobra.Command{
		Use:   "optimise",
		Short: "Write rules that do the same for fewer comparisons per packet, with a proof",
		Long: `Write rules that treat every packet as the present ones do, with the same verdict and the same
counters, and compare it with fewer rules. They look up sets and maps with a counter for each
element, branch into chains by interface or prefix, and follow the order of the hits. Rules with
effects that are not modelled (limits, marks, log lines, NAT) stay where they are.

optimise prints the new rules as a difference. It offers only rules that it has proven to be equal, over all
packets and by packets at the ends of the rules' ranges. Root's optimise also lets the kernel forward packets
through both, in network namespaces of its own. A chain without a proof keeps its rules.

--apply puts the new rules of nftables or iptables in force, as a trial. A guard process brings
the old ones back when the time is over, unless linerate confirm lets the new ones stay.
linerate undo brings them back later. No packet passes without rules, and every counter goes on,
in both directions. A table that another program writes to (docker, firewalld, ufw) keeps its
rules. If the rules change while optimise works, it applies nothing.`,
		Example: "  linerate firewall optimise\n" +
			"  linerate firewall optimise --output new.nft\n" +
			"  linerate firewall optimise --apply --for 10m\n" +
			"  ssh router iptables-save -c | linerate firewall optimise --from - --diff",
		Annotations: exits(exitNotPermitted, exitLocked, exitInterrupted),
		Args:        cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case put && from != "":
				return usagef("--apply changes the rules of this namespace and cannot read a file (--from)")
			case !put && (yes || cmd.Flags().Changed("for")):
				return usagef("--for and --yes need --apply")
			case trial <= 0:
				return usagef("--for %v: must be longer than 0s", trial)
			}
			all, err := a.rulesets(cmd.Context(), from)
			if err != nil {
				return err
			}
			prices, err := a.rulePrices(cmd.Context(), false)
			if err != nil {
				return err
			}
			doc, offers, err := a.optimised(cmd.Context(), from, all, prices)
			if err != nil {
				return err
			}
			if err := writeOffers(output, offers); err != nil {
				return err
			}
			if put {
				if err := a.applyRules(cmd.Context(), offers, trial, yes); err != nil {
					return err
				}
			}
			return a.print(doc, func(s text.Style) error {
				if diff {
					return text.FirewallDiff(a.out, doc, s)
				}
				return text.Firewall(a.out, doc, s)
			})
		},
	}
	c.Flags().StringVar(&from, "from", "", firewallFrom)
	c.Flags().StringVar(&output, "output", "",
		"write the new rules to this new `FILE` too; those of a second program to FILE.PROGRAM")
	c.Flags().BoolVar(&diff, "diff", false, "print only the difference between the rules")
	c.Flags().BoolVar(&put, "apply", false, "put the new rules of nftables or iptables in force, on trial; root only")
	c.Flags().DurationVar(&trial, "for", time.Minute, "with --apply: how long the trial lasts unless confirmed")
	c.Flags().BoolVar(&yes, "yes", false, "with --apply: confirm at once: the new rules stay until undo or reboot")
	return c
}

// optimised rewrites the rules of each program, those of the largest first.
func (a *app) optimised(ctx context.Context, from string, all []*ruleset.Ruleset,
	prices report.FirewallPrices) (*report.FirewallDocument, []offer, error) {
	costs := make([]report.FirewallCost, len(all))
	for i, r := range all {
		costs[i] = report.FirewallCost{Rules: r, Cost: cost.Of(r, prices.Nanoseconds)}
	}
	doc := report.NewFirewall(a.envelope(""), from, costs, prices)
	parts := byProgram(all)
	sorting.StableFunc(parts, func(x, y *ruleset.Ruleset) int { return cmp.Compare(countRules(y), countRules(x)) })
	var offers []offer
	for _, r := range parts {
		o := offer{before: r, result: rewrite.Optimise(r, equal.Usual())}
		var err error
		if o.doc, err = doc.Rewritten(r, o.result); err != nil {
			return nil, nil, err
		}
		if from == "" && o.doc.Ruleset != "" {
			if err := compareInKernel(ctx, o); err != nil {
				return nil, nil, err
			}
		}
		offers = append(offers, o)
	}
	return doc, offers, nil
}

// writeOffers writes the new rules of each program to a file of its own.
func writeOffers(output string, offers []offer) error {
	written := 0
	for _, o := range offers {
		if output == "" || o.doc.Ruleset == "" {
			continue
		}
		name := output
		if written++; written > 1 {
			name += "." + string(o.before.Program)
		}
		if err := writeNew(name, o.doc.Ruleset); err != nil {
			return err
		}
	}
	return nil
}

func countRules(r *ruleset.Ruleset) (n int) {
	for _, t := range r.Tables {
		for _, c := range t.Chains {
			n += len(c.Rules)
		}
	}
	return n
}

// writeNew writes a file that does not exist yet.
func writeNew(path, content string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return usagef("--output %s: the file exists; choose another name", path)
	}
	if err != nil {
		return fmt.Errorf("write rules: %w", err)
	}
	_, err = f.WriteString(content)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write rules: %w", err)
	}
	return nil
}
