package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/hub/internal/fleet/desk"
	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/peer/order"
	"github.com/linerate/linerate/internal/report"
)

// mostSigned is the longest file of signed orders, in bytes: what the hub takes.
const mostSigned = 128 << 20

// errNoOrders reports a file that is not one of signed orders.
var errNoOrders = errors.New("not a file of signed orders, which `apply --to`, `resume --to` and `undo --to` write")

// readSigned reads signed orders and their signers. The file is the word of a stranger: the orders
// are exactly those of its draft, or it is refused.
func readSigned(file string) (s desk.Signed, by []string, err error) {
	f, err := os.Open(file)
	if err != nil {
		return s, nil, fmt.Errorf("read signed orders: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, mostSigned+1))
	if err != nil {
		return s, nil, fmt.Errorf("read signed orders: %w", err)
	}
	if len(b) > mostSigned || json.Unmarshal(b, &s) != nil || s.Draft == nil {
		return s, nil, fmt.Errorf("read %s: %w", file, errNoOrders)
	}
	if by, err = s.Draft.Signers(s.Orders); err != nil {
		return s, nil, fmt.Errorf("read %s: %w", file, err)
	}
	return s, by, nil
}

// writeSigned writes signed orders for the next person, and the plan with its signers.
func (a *app) writeSigned(file string, s desk.Signed, chosen string) error {
	by, err := s.Draft.Signers(s.Orders)
	if err != nil {
		return err
	}
	b, err := json.Marshal(s)
	if err == nil {
		err = durable.Replace(durable.OS(), file, append(b, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("write signed orders: %w", err)
	}
	plan := a.planOf(s, chosen)
	plan.SignedBy = by
	return a.print(plan, func(w io.Writer) { // the plan was shown before the question
		fmt.Fprintf(w, "signed by %s, in %s\n", strings.Join(by, "+"), file)
		fmt.Fprintf(w, "the next person reads and signs it with `linerate-hub fleet sign FILE`, on any machine\n")
		fmt.Fprintf(w, "`linerate-hub fleet begin FILE`, at the hub, begins the rollout\n")
	})
}

func (a *app) planOf(s desk.Signed, chosen string) *report.FleetPlanDocument {
	plan := s.Draft.Describe()
	plan.Envelope = report.NewEnvelope(version, about().Name).Of(report.SchemaFleetPlan)
	plan.Selection = chosen
	return plan
}

// cosignCommand is `fleet sign`: another person signs, on a machine of their own.
func (a *app) cosignCommand() *cobra.Command {
	var s signing
	c := &cobra.Command{
		Use:   "sign FILE",
		Short: "Sign orders that another person has signed, where hosts ask for two people",
		Long: `sign shows the plan in a file that apply --to, resume --to or undo --to has written, asks, and adds
your signature to the file. It needs no hub: the file travels to the machine with your key, and back.
What is shown is what is signed: a file whose orders are others than those of its plan is refused.`,
		Example: "  linerate-hub fleet apply --to change.orders net.core.rmem_max=8388608 -- group:db\n" +
			"  linerate-hub fleet sign change.orders\n  linerate-hub fleet begin change.orders",
		RunE: func(_ *cobra.Command, words []string) error {
			if len(words) != 1 {
				return usageError{errors.New("name the file of the signed orders")}
			}
			signed, by, err := readSigned(words[0])
			if err != nil {
				return err
			}
			keys, err := s.open(a.env)
			if err != nil {
				return err
			}
			plan := a.planOf(signed, "")
			if !a.json {
				writePlan(a.out, plan)
				fmt.Fprintf(a.out, "signed by %s\n", strings.Join(by, "+"))
			}
			if err := a.agree(s, fmt.Sprintf("sign %d orders as %s?", plan.Orders, namesOf(keys))); err != nil {
				return err
			}
			signed.Orders, err = signed.Draft.Cosign(signed.Orders, time.Now(), func(e *order.Envelope) {
				for _, k := range keys {
					e.Sign(k.name, k.private)
				}
			})
			if err != nil {
				return err
			}
			return a.writeSigned(words[0], signed, "")
		},
	}
	s.addKeys(c)
	return c
}

// beginCommand is `fleet begin`: it hands signed orders to the hub.
func (a *app) beginCommand(f *runFlags) *cobra.Command {
	var s signing
	c := &cobra.Command{
		Use:   "begin FILE",
		Short: "Begin the rollout whose orders people have signed into a file",
		Long: `begin hands the signed orders of a file to the hub. It needs no key. Each host checks the signatures,
and how many its policy asks for.`,
		RunE: func(cmd *cobra.Command, words []string) error {
			if len(words) != 1 {
				return usageError{errors.New("name the file of the signed orders")}
			}
			signed, by, err := readSigned(words[0])
			if err != nil {
				return err
			}
			return a.begin(cmd, f, signed, strings.Join(by, "+"), s)
		},
	}
	c.Flags().BoolVar(&s.wait, "wait", false, "wait until the rollout is done or halted")
	return c
}
