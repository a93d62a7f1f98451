package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/firewall/cost"
	"github.com/linerate/linerate/internal/firewall/measure"
	"github.com/linerate/linerate/internal/firewall/read"
	"github.com/linerate/linerate/internal/firewall/ruleset"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/text"
)

// longestRules bounds a file of rules in bytes: a hundred thousand elements take nft 10 MB.
const longestRules = 256 << 20

const firewallFrom = "read `FILE` instead of this namespace: nft [-j] list ruleset, iptables-save -c " +
	"(ipset save before it), ipfw -a list or pfctl -vvsr; - is standard input"

// firewallCommand looks at packet filters. Only optimise --apply changes them.
func (a *app) firewallCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "firewall",
		Short: "Show what the rules of a packet filter cost, and rules that do the same for less",
		Long: `Read the rules of nftables, iptables, ipfw or pf with their counters, and show what they cost each
packet, or write rules that do the same for less. Only optimise --apply changes rules, under the journal.`,
		Example: "  linerate firewall cost\n" +
			"  linerate firewall trace 'in eth0 out eth1 tcp 10.1.2.3:80 -> 10.2.3.4:5000'",
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(a.firewallCost(), a.firewallOptimise(), a.firewallTrace())
	return c
}

func (a *app) firewallCost() *cobra.Command {
	var from string
	var watch time.Duration
	var calibrate bool
	c := &cobra.Command{
		Use:   "cost",
		Short: "Show how many rules each packet is compared with, and which rules cost most",
		Long: `Show for each hook and chain how many rules a packet is compared with, as the counters say, and
about how many nanoseconds that takes. Then follow the rules that cost most, and those that
never matched. Last come pairs of rules of which one is shadowed, redundant, or an exception of
the other. With --watch only the packets of that time count.

--calibrate measures first what rules cost on this host: it loads some dozens of rulesets in network
namespaces of its own and sends datagrams there for five seconds. It needs root and changes nothing outside
these namespaces. The prices are kept in the state directory, and used as long as kernel and processor stay.`,
		Example: "  linerate firewall cost\n" +
			"  linerate firewall cost --watch 10s\n" +
			"  linerate firewall cost --from sosreport/sos_commands/networking/nft_list_ruleset\n" +
			"  ssh router iptables-save -c | linerate firewall cost --from -",
		Annotations: exits(exitNotPermitted, exitInterrupted),
		Args:        cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if from != "" && watch > 0 {
				return usagef("--watch looks at this host's counters and cannot read a file (--from)")
			}
			prices, err := a.rulePrices(cmd.Context(), calibrate)
			if err != nil {
				return err
			}
			all, err := a.rulesets(cmd.Context(), from)
			if err != nil && !(calibrate && errors.Is(err, read.ErrNone)) {
				return err
			}
			if watch > 0 {
				if all, err = a.watchRules(cmd.Context(), all, watch); err != nil {
					return err
				}
			}
			costs := make([]report.FirewallCost, len(all))
			for i, r := range all {
				costs[i] = report.FirewallCost{Rules: r, Cost: cost.Of(r, prices.Nanoseconds)}
			}
			doc := report.NewFirewall(a.envelope(""), from, costs, prices)
			return a.print(doc, func(s text.Style) error { return text.Firewall(a.out, doc, s) })
		},
	}
	c.Flags().StringVar(&from, "from", "", firewallFrom)
	c.Flags().DurationVar(&watch, "watch", 0, "count only the packets of this time")
	c.Flags().BoolVar(&calibrate, "calibrate", false,
		"measure what rules cost on this host first, about ten seconds, and keep it; root only")
	return c
}

// rulePrices returns the prices of rules: measured now, or earlier on this host, or the built-in
// ones.
func (a *app) rulePrices(ctx context.Context, calibrate bool) (report.FirewallPrices, error) {
	dir, err := a.stateDir()
	if err != nil {
		return report.FirewallPrices{}, err
	}
	if calibrate {
		p, err := a.newProgress()
		if err != nil {
			return report.FirewallPrices{}, err
		}
		p.Status("calibrating: rulesets in network namespaces of their own, about ten seconds")
		c, err := measure.Calibrate(ctx)
		p.Done()
		if errors.Is(err, fs.ErrPermission) {
			return report.FirewallPrices{}, flagError{err,
				"only root may make network namespaces and load rules there: use sudo"}
		} else if err != nil {
			return report.FirewallPrices{}, err
		}
		c.At = time.Now().UTC().Truncate(time.Second)
		if err := measure.Store(durable.OS(), dir, c); err != nil {
			return report.FirewallPrices{}, err
		}
	}
	prices, c := measure.Prices(durable.OS(), dir)
	if c == nil {
		return report.FirewallPrices{Source: report.PricesBuiltIn, Nanoseconds: prices}, nil
	}
	return report.FirewallPrices{Source: report.PricesCalibrated, Kernel: c.Kernel, Processor: c.Processor, Time: &c.At,
		Cases: c.Cases, Missing: c.Missing, Error: c.Error, New: calibrate, Nanoseconds: prices}, nil
}

func (a *app) firewallTrace() *cobra.Command {
	var from string
	c := &cobra.Command{
		Use:   "trace PACKET",
		Short: "Show which rules a packet meets, without sending one",
		Long: `Show which rules a packet meets at each hook, which of them match, how many counters increase, and
what decides.
PACKET is a shape in one argument: in NAME and out NAME, protocol, source -> destination with ports, and the
state of the connection (new, established, related, invalid, untracked; new if none is given). With both
interfaces it is forwarded, with in alone received, with out alone sent. A new packet of TCP is a SYN, an
established one has ACK, and passes pf by its state. A condition on anything else (a limit, a mark) is taken
not to hold, and its rule is marked.`,
		Example: "  linerate firewall trace 'in eth0 tcp 10.1.2.3:80 -> 10.2.3.4:5000'\n" +
			"  linerate firewall trace --from rules.v4 'in eth0 out eth1 udp 10.1.2.3 -> 10.2.3.4:53 established'",
		Annotations: exits(exitNotPermitted, exitInterrupted),
		Args:        cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := ruleset.ParsePacket(args[0])
			if err != nil {
				return usageError{err}
			}
			all, err := a.rulesets(cmd.Context(), from)
			if err != nil {
				return err
			}
			doc := report.NewFirewallTrace(a.envelope(""), from, p, all, append(p.Hooks(), read.BSDHook))
			return a.print(doc, func(s text.Style) error { return text.FirewallTrace(a.out, doc, s) })
		},
	}
	c.Flags().StringVar(&from, "from", "", firewallFrom)
	return c
}

// rulesets reads the rules of a file, or of this namespace.
func (a *app) rulesets(ctx context.Context, from string) ([]*ruleset.Ruleset, error) {
	if from == "" {
		rules, err := read.Live(ctx)
		if errors.Is(err, fs.ErrPermission) {
			return nil, flagError{err, "only root reads the rules: use sudo, or read what root has saved with --from FILE"}
		}
		return rules, err
	}
	in, err := a.openInput(from)
	if err != nil {
		return nil, fmt.Errorf("read rules: %w", err)
	}
	defer in.Close()
	b, err := io.ReadAll(io.LimitReader(in, longestRules+1))
	if err != nil {
		return nil, fmt.Errorf("read rules: %w", err)
	}
	if len(b) > longestRules {
		return nil, fmt.Errorf("read rules %s: more than %d bytes", from, longestRules)
	}
	r, err := read.Any(b)
	if err != nil {
		return nil, err
	}
	return []*ruleset.Ruleset{r}, nil
}

// watchRules waits and returns the rules with the packets of that time on their counters.
func (a *app) watchRules(ctx context.Context, before []*ruleset.Ruleset,
	span time.Duration) ([]*ruleset.Ruleset, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(span):
	}
	after, err := read.Live(ctx)
	if err != nil {
		return nil, err
	}
	if len(before) != len(after) {
		return nil, fmt.Errorf("watch rules: they changed within %s", span)
	}
	for i := range after {
		if err := after[i].Subtract(before[i]); err != nil {
			return nil, fmt.Errorf("watch rules: %w", err)
		}
	}
	return after, nil
}
