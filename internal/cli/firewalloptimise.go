package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/firewall/cost"
	"github.com/linerate/linerate/internal/firewall/equal"
	"github.com/linerate/linerate/internal/firewall/rewrite"
	"github.com/linerate/linerate/internal/firewall/ruleset"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/text"
)

func (a *app) firewallOptimise() *cobra.Command {
	var from, output string
	var diff bool
	c := &cobra.Command{
		Use:   "optimise",
		Short: "Write rules that do the same for fewer comparisons per packet, with a proof",
		Long: `Write rules that treat every packet as the present ones do, with the same verdict and the same counters, and
that compare it with fewer rules: lookups in sets and maps with a counter for each element, chains by interface
or prefix, and the order of the hits. Rules with effects that are not modelled (limits, marks, log lines, NAT)
stay where they are.

optimise prints the new rules as a difference and applies nothing. It offers only rules that it has proven to be
equal, over all packets and by packets at the ends of the rules' ranges. A chain without a proof keeps its rules.`,
		Example: "  linerate firewall optimise\n" +
			"  linerate firewall optimise --output new.nft\n" +
			"  ssh router iptables-save -c | linerate firewall optimise --from - --diff",
		Annotations: exits(exitNotPermitted, exitInterrupted),
		Args:        cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := a.rulesets(cmd.Context(), from)
			if err != nil {
				return err
			}
			prices, err := a.rulePrices(cmd.Context(), false)
			if err != nil {
				return err
			}
			doc, err := a.optimised(from, all, prices)
			if err != nil {
				return err
			}
			if output != "" && doc.Rewrite.Ruleset != "" {
				if err := writeNew(output, doc.Rewrite.Ruleset); err != nil {
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
	c.Flags().StringVar(&output, "output", "", "write the new rules to this new `FILE` too")
	c.Flags().BoolVar(&diff, "diff", false, "print only the difference between the rules")
	return c
}

// optimised rewrites the ruleset with most rules, and notes the others.
func (a *app) optimised(from string, all []*ruleset.Ruleset,
	prices report.FirewallPrices) (*report.FirewallDocument, error) {
	costs := make([]report.FirewallCost, len(all))
	for i, r := range all {
		costs[i] = report.FirewallCost{Rules: r, Cost: cost.Of(r, prices.Nanoseconds)}
	}
	doc := report.NewFirewall(a.envelope(""), from, costs, prices)
	largest := slices.MaxFunc(all, func(x, y *ruleset.Ruleset) int { return cmp.Compare(countRules(x), countRules(y)) })
	if err := doc.Rewritten(largest, rewrite.Optimise(largest, equal.Usual())); err != nil {
		return nil, err
	}
	for _, r := range all {
		if r != largest {
			doc.Rewrite.Notes = append(doc.Rewrite.Notes, fmt.Sprintf("The %d rules of %s stay as they are: "+
				"save them, and rewrite them with --from.", countRules(r), r.Program))
		}
	}
	return doc, nil
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
