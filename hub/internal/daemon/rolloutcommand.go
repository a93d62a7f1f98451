package daemon

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/linerate/linerate/hub/internal/fleet/conduct"
	"github.com/linerate/linerate/hub/internal/fleet/desk"
	"github.com/linerate/linerate/hub/internal/fleet/message"
	"github.com/linerate/linerate/hub/internal/fleet/rollout"
	"github.com/linerate/linerate/hub/internal/fleet/selection"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/peer/order"
	"github.com/linerate/linerate/internal/report"
)

// The ends of a rollout that are no success: exit status 3, 5, 3 and 3.
var (
	errHalted    = errors.New("the rollout is halted")
	errTakenBack = errors.New("the change was taken back")
	errNotAll    = errors.New("not all hosts have made the change permanent")
	errNotUndone = errors.New("not all hosts have taken the change back; " +
		"a host that does not answer does so when it is back, while the signatures are valid")
)

// signing are the flags of the commands that sign.
type signing struct {
	keys      []string
	valid     time.Duration
	yes, wait bool
	to        string // file for the next person; empty: the hub
}

func (s *signing) add(c *cobra.Command) {
	s.addKeys(c)
	flags := c.Flags()
	flags.DurationVar(&s.valid, "valid", 23*time.Hour, "how long the signatures are valid, at most 23h59m")
	flags.StringVar(&s.to, "to", "", "write the signed orders to this file for the next person, and begin nothing")
	flags.BoolVar(&s.wait, "wait", false, "wait until the rollout is done or halted")
}

// addKeys adds the flags of who signs.
func (s *signing) addKeys(c *cobra.Command) {
	flags := c.Flags()
	flags.StringSliceVar(&s.keys, "key", nil,
		"file of a private key that signs; may be repeated where hosts ask for two people "+
			"(default: what 'linerate-hub fleet key' made)")
	flags.BoolVar(&s.yes, "yes", false, "sign without asking")
}

// namesOf returns who signs.
func namesOf(keys []orderKey) string {
	var names []string
	for _, k := range keys {
		names = append(names, k.name)
	}
	return strings.Join(names, "+")
}

// open reads the keys.
func (s *signing) open(env func(string) string) ([]orderKey, error) {
	files := s.keys
	if len(files) == 0 {
		name, err := orderKeyFile(env)
		if err != nil {
			return nil, err
		}
		files = []string{name}
	}
	var all []orderKey
	for _, name := range files {
		k, err := readOrderKey(name)
		if errors.Is(err, os.ErrNotExist) {
			return nil, hinted{err, "linerate-hub fleet key makes one"}
		}
		if err != nil {
			return nil, err
		}
		all = append(all, k)
	}
	return all, nil
}

func (a *app) applyCommand(f *runFlags) *cobra.Command {
	var s signing
	var metric string
	var planOnly bool
	change := conduct.Change{}
	timing := rollout.DefaultTiming()
	c := &cobra.Command{
		Use:   "apply KNOB=VALUE [-- SELECTION]",
		Short: "Change a setting on many hosts, in waves that stop when they do harm",
		Long: `apply asks the hosts of the selection what the knob holds, shows the plan, and signs it with your key.
The hub then lets a few hosts of each class try the change against itself, compares changed hosts
with like ones, and goes on in waves of 1, 10, 50 and 100 %. It judges by a metric of the hosts'
production traffic; a host without traffic halts the rollout. Measured harm takes the change back
everywhere. After any other halt only a person resumes.

  sent          bytes a second that leave the host; more is better
  received      bytes a second that arrive; more is better
  retransmits   share of the TCP segments that are sent again; less is better

Each host carries out what its own policy and keys allow: see linerate agent --orders.`,
		Example: "  linerate-hub fleet apply --plan net.ipv4.tcp_slow_start_after_idle=0 -- group:web\n" +
			"  linerate-hub fleet apply --metric retransmits --soak 2h net.core.rmem_max=8388608 -- class:mlx5-6.12",
		RunE: func(cmd *cobra.Command, words []string) error {
			var chosen string
			if dash := cmd.ArgsLenAtDash(); dash >= 0 {
				chosen, words = strings.Join(words[dash:], " "), words[:dash]
			}
			if len(words) != 1 {
				return usageError{errors.New("name one change: KNOB=VALUE, and a selection after --")}
			}
			name, value, ok := strings.Cut(words[0], "=")
			if !ok || name == "" {
				return usageError{fmt.Errorf("%.100q: want KNOB=VALUE", words[0])}
			}
			id, err := knob.ParseID(knob.WithKind(name))
			if err != nil {
				return usageError{err}
			}
			change.Knob, change.To, change.Metric = id, knob.Value(value), message.Metric(metric)
			if err := change.Check(timing); err != nil {
				return usageError{err}
			}
			if least := timing.Settle + 5*message.BeatEvery/3; timing.Deadline < least {
				return usageError{fmt.Errorf("a trial of %v is too short: a host says every %v that it lives, and is confirmed "+
					"after that; want %v", timing.Deadline, message.BeatEvery, least)}
			}
			if _, err := selection.Parse(chosen); err != nil { // before a key is asked for
				return usageError{err}
			}
			keys, err := s.open(a.env)
			if err != nil && !planOnly {
				return err
			}
			var draft conduct.Draft
			q := desk.Request{Do: desk.DoPlan, Selection: chosen, Change: &change, Timing: &timing,
				ValidMS: s.valid.Milliseconds()}
			if err := a.call(cmd, f, q, &draft, nil); err != nil {
				return err
			}
			if draft.Plan == nil {
				for _, m := range draft.Missing {
					fmt.Fprintf(a.err, "%s: %s\n", m.Name, m.Reason)
				}
				return conduct.ErrNothing
			}
			// The hub is not trusted with what a person signs.
			if draft.Knob != change.Knob || draft.To != change.To || draft.Plan.Timing != timing || draft.Kind != conduct.Apply {
				return errors.New("the hub has planned another change than was typed; nothing is signed")
			}
			return a.sign(cmd, f, &draft, chosen, s, keys, planOnly)
		},
	}
	flags := c.Flags()
	s.add(c)
	flags.BoolVar(&planOnly, "plan", false, "print the plan, and sign nothing")
	flags.StringVar(&metric, "metric", string(message.Sent), "what is judged: sent, received, retransmits")
	flags.DurationVar(&change.Window, "window", 10*time.Second, "how long the metric is read each time")
	flags.DurationVar(&change.Pause, "pause", 2*time.Second, "between a change and the reading after it")
	flags.IntVar(&change.Pairs, "pairs", 10, "pairs of readings of an experiment on one host")
	flags.DurationVar(&timing.Deadline, "deadline", timing.Deadline, "how long a trial lasts without a confirmation")
	flags.DurationVar(&timing.Settle, "settle", timing.Settle, "from the start of a trial to its confirmation")
	flags.DurationVar(&timing.Soak, "soak", timing.Soak, "from the last change of a stage to its measurements")
	flags.DurationVar(&timing.LongSoak, "long-soak", timing.LongSoak, "the soak of the waves of 10 and 50 %")
	flags.DurationVar(&timing.Collect, "collect", timing.Collect, "how long the measurements of a stage may take")
	flags.StringVar(&change.Reason, "reason", "", "one line for the journals of the hosts' orders")
	return c
}

// againCommand is `resume`, `persist` or `undo`.
func (a *app) againCommand(f *runFlags, kind conduct.Kind) *cobra.Command {
	var s signing
	short := "Go on with a halted rollout, after you have looked at why"
	long := `resume asks the hosts what became of their orders, shows what is left, and signs it anew. It is possible
once every trial from before the halt has ended.`
	switch kind {
	case conduct.Persist:
		short = "Make the change of a rollout that is done and proven survive a restart of the hosts"
		long = `persist asks the hosts which of them have the change, and signs an order for each to write it into the
configuration that applies at its start. Hosts do so whose policy says persist: on, and which do not
need another line by hand; by default the policy asks for two people. undo removes the files again.`
	case conduct.Undo:
		short = "Take a rollout back, on every host that still has the change"
		long = `undo asks the hosts which of them have the change, and signs an order for each to take it back. The value
from before is restored where no other program has set another one since. It works for a rollout that
the hub has lost, too: the hosts know it.`
	case conduct.Apply, conduct.Resume:
	}
	c := &cobra.Command{
		Use: string(kind) + " ROLLOUT", Short: short, Long: long,
		RunE: func(cmd *cobra.Command, words []string) error {
			if len(words) != 1 {
				return usageError{errors.New("name one rollout; `linerate-hub fleet rollouts` lists them")}
			}
			keys, err := s.open(a.env)
			if err != nil {
				return err
			}
			var draft conduct.Draft
			q := desk.Request{Do: desk.DoAgain, Rollout: words[0], Kind: kind, ValidMS: s.valid.Milliseconds()}
			if err := a.call(cmd, f, q, &draft, nil); err != nil {
				return err
			}
			if draft.Plan == nil || draft.Plan.ID != words[0] || draft.Kind != kind {
				return errors.New("the hub answers with another rollout than was typed; nothing is signed")
			}
			return a.sign(cmd, f, &draft, "", s, keys, false)
		},
	}
	s.add(c)
	return c
}

// sign shows a draft, asks, signs and sends it.
func (a *app) sign(cmd *cobra.Command, f *runFlags, d *conduct.Draft, chosen string, s signing, keys []orderKey,
	planOnly bool) error {
	plan := a.planOf(desk.Signed{Draft: d}, chosen)
	if planOnly {
		return a.print(plan, func(w io.Writer) { writePlan(w, plan) })
	}
	if !a.json {
		writePlan(a.out, plan)
	}
	by := namesOf(keys)
	if err := a.agree(s, fmt.Sprintf("sign %d orders as %s?", plan.Orders, by)); err != nil {
		return err
	}
	orders, err := d.Sign(func(e *order.Envelope) {
		for _, k := range keys {
			e.Sign(k.name, k.private)
		}
	})
	if err != nil {
		return err
	}
	if s.to != "" {
		return a.writeSigned(s.to, desk.Signed{Draft: d, Orders: orders}, chosen)
	}
	return a.begin(cmd, f, desk.Signed{Draft: d, Orders: orders}, by, s)
}

// begin hands signed orders to the hub, and follows the rollout if that is wanted.
func (a *app) begin(cmd *cobra.Command, f *runFlags, signed desk.Signed, by string, s signing) (err error) {
	var doc report.FleetRolloutDocument
	q := desk.Request{Do: desk.DoBegin, Signed: &signed, By: by}
	if err := a.call(cmd, f, q, &doc, nil); err != nil {
		return err
	}
	if s.wait {
		if doc, err = a.follow(cmd, f, doc); err != nil {
			return err
		}
	}
	if err := a.print(&doc, func(w io.Writer) { writeRollout(w, &doc) }); err != nil || !s.wait {
		return err
	}
	switch {
	case doc.Phase == string(rollout.Halted):
		return errHalted
	case signed.Draft.Kind == conduct.Persist:
		for _, s := range []rollout.State{rollout.Committed, rollout.NotPersistable, rollout.Lost} {
			if doc.States[string(s)] > 0 {
				return errNotAll
			}
		}
	case signed.Draft.Kind == conduct.Undo:
		if left(&doc) {
			return errNotUndone
		}
	case doc.Halted != "" && left(&doc):
		return errNotUndone
	case doc.Halted != "":
		return errTakenBack
	}
	return nil
}

// left reports whether a host has the change although the rollout was undone, or may have it.
func left(doc *report.FleetRolloutDocument) bool {
	for _, s := range []rollout.State{rollout.Lost, rollout.NotUndone, rollout.Committed, rollout.Persisted,
		rollout.NotPersistable} {
		if doc.States[string(s)] > 0 {
			return true
		}
	}
	return false
}

// agree asks the person at the terminal.
func (a *app) agree(s signing, question string) error {
	if s.yes {
		return nil
	}
	file, ok := a.in.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return usageError{errors.New("standard input is no terminal to ask at: add --yes to sign")}
	}
	fmt.Fprintf(a.err, "%s [y/N] ", question)
	line, err := bufio.NewReader(io.LimitReader(file, 100)).ReadString('\n')
	if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
		return errors.Join(errors.New("nothing is signed"), err)
	}
	return nil
}

// follow waits until a rollout is halted or done. A hub that restarts meanwhile is waited for.
func (a *app) follow(cmd *cobra.Command, f *runFlags, doc report.FleetRolloutDocument) (report.FleetRolloutDocument,
	error) {
	for doc.Phase != string(rollout.Done) && (doc.Phase != string(rollout.Halted) || doc.Harm) {
		select {
		case <-cmd.Context().Done():
			return doc, fmt.Errorf("wait for rollout %s, which goes on: %w", doc.ID, context.Cause(cmd.Context()))
		case <-time.After(time.Second / 2):
		}
		var now report.FleetRolloutDocument
		err := a.call(cmd, f, desk.Request{Do: desk.DoRollouts, Rollout: doc.ID}, &now, nil)
		if errors.Is(err, desk.ErrNoHub) {
			continue
		}
		if err != nil {
			return doc, err
		}
		if !a.json && (now.Phase != doc.Phase || now.Stage != doc.Stage) {
			fmt.Fprintf(a.err, "%s: %s: %s\n", now.ID, now.Stage, now.Phase)
		}
		if now.Harm && doc.Harm && now.Phase == string(rollout.Halted) {
			return now, nil // harm that the signed orders could not take back
		}
		doc = now
	}
	return doc, nil
}

func (a *app) haltCommand(f *runFlags) *cobra.Command {
	return &cobra.Command{
		Use: "halt ROLLOUT", Short: "Stop a rollout: no further order leaves the hub",
		Long: `halt needs no key. Trials end at their deadlines, at the hosts alone. What is confirmed
stays until undo.`,
		RunE: func(cmd *cobra.Command, words []string) error {
			if len(words) != 1 {
				return usageError{errors.New("name one rollout; `linerate-hub fleet rollouts` lists them")}
			}
			var doc report.FleetRolloutDocument
			q := desk.Request{Do: desk.DoHalt, Rollout: words[0], By: person(a.env)}
			if err := a.call(cmd, f, q, &doc, nil); err != nil {
				return err
			}
			return a.print(&doc, func(w io.Writer) { writeRollout(w, &doc) })
		},
	}
}

func (a *app) rolloutsCommand(f *runFlags) *cobra.Command {
	return &cobra.Command{
		Use: "rollouts [ROLLOUT]", Short: "List rollouts, or show where one stands, host by host",
		RunE: func(cmd *cobra.Command, words []string) error {
			q := desk.Request{Do: desk.DoRollouts}
			switch len(words) {
			case 0:
				var doc report.FleetRolloutsDocument
				if err := a.call(cmd, f, q, &doc, nil); err != nil {
					return err
				}
				return a.print(&doc, func(w io.Writer) { writeRollouts(w, &doc) })
			case 1:
				q.Rollout = words[0]
				var doc report.FleetRolloutDocument
				if err := a.call(cmd, f, q, &doc, nil); err != nil {
					return err
				}
				return a.print(&doc, func(w io.Writer) { writeRollout(w, &doc) })
			}
			return usageError{errors.New("name one rollout, or none")}
		},
	}
}

// hostsShown is how many hosts of a rollout a text lists.
const hostsShown = 40

func writePlan(w io.Writer, doc *report.FleetPlanDocument) {
	fmt.Fprintf(w, "%s %s: %s = %s on %d hosts\n", doc.Kind, doc.Rollout, doc.Knob, doc.To, len(doc.Hosts))
	tries := conduct.Kind(doc.Kind).Tries()
	if doc.Metric != "" && tries {
		fmt.Fprintf(w, "judged by %s over %s; %d pairs an experiment; trials of %s\n", doc.Metric, span(doc.Window),
			doc.Pairs, span(doc.Deadline))
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if tries {
		fmt.Fprintf(t, "\nstage\thosts\tclasses\n")
		for _, s := range doc.Stages {
			fmt.Fprintf(t, "%s\t%d\t%s\n", s.Name, s.Hosts, strings.Join(s.Classes, " "))
		}
	}
	holds := "holds"
	switch doc.Kind {
	case string(conduct.Undo):
		holds = "goes back to"
	case string(conduct.Persist):
		holds = "held before"
	}
	fmt.Fprintf(t, "\nhost\tstage\t%s\track\tsite\n", holds)
	for _, h := range doc.Hosts[:min(len(doc.Hosts), hostsShown)] {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", h.Name, h.Stage, h.Expect, h.Rack, h.Site)
	}
	_ = t.Flush() // the writer below has the error
	if more := len(doc.Hosts) - hostsShown; more > 0 {
		fmt.Fprintf(w, "and %d more; --json lists all\n", more)
	}
	if len(doc.Missing) > 0 {
		fmt.Fprintf(w, "\nleft out: %d\n", len(doc.Missing))
		for _, m := range doc.Missing[:min(len(doc.Missing), hostsShown)] {
			fmt.Fprintf(w, "  %s: %s\n", m.Name, m.Reason)
		}
	}
	fmt.Fprintf(w, "\n%d orders to sign, valid until %s\n", doc.Orders, doc.ValidUntil.Local().Format(time.DateTime))
}

// span writes seconds as people do.
func span(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

func states(m map[string]int) string {
	var words []string
	for _, s := range slices.Sorted(maps.Keys(m)) {
		words = append(words, fmt.Sprintf("%d %s", m[s], s))
	}
	return strings.Join(words, " · ")
}

func writeRollouts(w io.Writer, doc *report.FleetRolloutsDocument) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "rollout\tchange\tphase\tstage\tby\thosts\n")
	for _, r := range doc.Rollouts {
		fmt.Fprintf(t, "%s\t%s=%s\t%s\t%s\t%s\t%s\n", r.ID, r.Knob, r.To, r.Phase, r.Stage, r.By, states(r.States))
	}
	_ = t.Flush() // the writer below has the error
}

func writeRollout(w io.Writer, doc *report.FleetRolloutDocument) {
	fmt.Fprintf(w, "%s: %s = %s, signed by %s\n%s in %s: %s\n", doc.ID, doc.Knob, doc.To, doc.By, doc.Phase, doc.Stage,
		states(doc.States))
	if doc.Halted != "" {
		fmt.Fprintf(w, "halted: %s\n", doc.Halted)
	}
	switch {
	case doc.Phase == string(rollout.Halted) && doc.Resumable:
		fmt.Fprintf(w, "`linerate-hub fleet resume %s` goes on, `linerate-hub fleet undo %s` takes it back\n", doc.ID, doc.ID)
	case doc.Proven:
		fmt.Fprintln(w, "the benefit is proven")
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if len(doc.Looks) > 0 {
		fmt.Fprintf(t, "\nafter\tpairs\teffect\tt\tboundary\tharm\n")
		for _, l := range doc.Looks {
			fmt.Fprintf(t, "%s\t%d\t%+.1f %%\t%.2f\t%.2f\t%s\n", l.Stage, l.Pairs, 100*math.Expm1(l.Effect), l.T,
				l.Boundary, l.Harm)
		}
	}
	fmt.Fprintf(t, "\nhost\tstage\tstate\texperiment\tlast answer\n")
	for _, h := range doc.Hosts[:min(len(doc.Hosts), hostsShown)] {
		text := ""
		if e := h.Experiment; e != nil {
			text = fmt.Sprintf("%+.1f %% ± %.1f", 100*math.Expm1(e.Effect), 100*math.Exp(e.Effect)*e.Error)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", h.Name, h.Stage, h.State, text, h.Answer)
	}
	_ = t.Flush() // the writer below has the error
	if more := len(doc.Hosts) - hostsShown; more > 0 {
		fmt.Fprintf(w, "and %d more; --json lists all\n", more)
	}
}
