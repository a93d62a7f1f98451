package daemon

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/hub/internal/fleet/conduct"
	"github.com/linerate/linerate/hub/internal/fleet/desk"
	"github.com/linerate/linerate/hub/internal/fleet/selection"
	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/base/visible"
	"github.com/linerate/linerate/internal/report"
)

// errPartial is an answer with holes: exit status 3.
var errPartial = errors.New("not every host answered")

// fleetExits are what the statuses mean for the commands of a fleet.
var fleetExits = map[int]string{exitOK: "ok", exitFailed: "failed", exitUsage: "usage",
	exitPartial: "not every host answered, or the rollout is halted", exitRolledBack: "the change was taken back",
	exitNotPermitted: "not permitted", exitUnreachable: "no hub answers"}

// withExits ends the help of a command with the statuses that it can end with, besides ok, failed,
// usage and not permitted.
func withExits(c *cobra.Command, more ...int) *cobra.Command {
	statuses := append([]int{exitOK, exitFailed, exitUsage, exitNotPermitted}, more...)
	slices.Sort(statuses)
	var words []string
	for _, s := range statuses {
		words = append(words, fmt.Sprintf("%d %s", s, fleetExits[s]))
	}
	c.SetHelpTemplate(c.HelpTemplate() + "\nEXIT STATUS\n  " + strings.Join(words, " · ") + "\n")
	return c
}

// call asks the desk of the hub on this host.
func (a *app) call(cmd *cobra.Command, f *runFlags, q desk.Request, doc any, item func(desk.Item) error) error {
	if _, err := selection.Parse(q.Selection); err != nil { // also where no hub runs
		return usageError{err}
	}
	c, _, err := a.configured(f)
	if err != nil {
		return err
	}
	err = desk.Call(cmd.Context(), c.fleetDir(), q, doc, item)
	if errors.Is(err, desk.ErrNoHub) {
		return hinted{err, "linerate-hub --fleet 0.0.0.0:7072"}
	}
	if usage, ok := errors.AsType[desk.UsageError](err); ok {
		return usageError{usage}
	}
	return err
}

// print prints a document as JSON, or as text by the function.
func (a *app) print(doc any, text func(io.Writer)) error {
	if a.json {
		return report.Encode(a.out, doc)
	}
	text(visible.NewWriter(a.out, false))
	return nil
}

func (a *app) inviteCommand(f *runFlags) *cobra.Command {
	var q desk.Request
	var ttl string
	var labels []string
	c := &cobra.Command{
		Use:   "invite",
		Short: "Print the line with which hosts join the fleet of this hub",
		Long: `invite makes an invitation at the hub that runs on this host, and prints the line to use on
the host that joins. The line holds a secret and the fingerprint of the hub: any host that has it can
join until it expires or is used up.`,
		Example: "  linerate-hub invite --group web --label site=ams\n  linerate-hub invite --uses 500 --ttl 24h --approve",
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := unit.ParseSpan(ttl)
			if err != nil || d <= 0 {
				return usageError{fmt.Errorf("--ttl %q is not a duration: write 1h, 2d", ttl)}
			}
			q.Do, q.TTLMS, q.Labels = desk.DoInvite, time.Duration(d).Milliseconds(), make(map[string]string)
			for _, l := range labels {
				k, v, ok := strings.Cut(l, "=")
				if !ok {
					return usageError{fmt.Errorf("--label %q: want NAME=VALUE", l)}
				}
				q.Labels[k] = v
			}
			var doc report.FleetInviteDocument
			if err := a.call(cmd, f, q, &doc, nil); err != nil {
				return err
			}
			return a.print(&doc, func(w io.Writer) { fmt.Fprintln(w, doc.Line) })
		},
	}
	flags := c.Flags()
	flags.StringSliceVar(&q.Groups, "group", nil, "group that the hosts belong to; may be repeated")
	flags.StringSliceVar(&labels, "label", nil, "label of the hosts, NAME=VALUE, such as site=ams; may be repeated")
	flags.StringVar(&ttl, "ttl", "1h", "how long the line can be used, at most 90d")
	flags.IntVar(&q.Uses, "uses", 1, "how many hosts can use it")
	flags.BoolVar(&q.Approve, "approve", false, "a person has to approve each host")
	c.Args = noArguments
	return c
}

// fleetCommand is `linerate-hub fleet`.
func (a *app) fleetCommand(f *runFlags) *cobra.Command {
	c := &cobra.Command{
		Use:   "fleet",
		Short: "Show and ask the hosts that joined, and change them in waves",
		Long: `fleet talks to the hub that runs on this host, as its user or as root. A SELECTION chooses hosts:

  class:mlx5-6.12 site:ams finding:rx-ring-overrun drift:yes seen>10m version<1.4 -host:db*
  knob:net.ipv4.tcp_rmem!=VALUE

All terms must hold. A value with blanks is in quotes within its term: 'rack:"row 1"'.
The keys are ` + strings.Join(selection.Keys(), ", ") + `, knob and label.NAME.
No selection means every host.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, sub := range []*cobra.Command{a.statusCommand(f), a.hostsCommand(f), a.haltCommand(f), a.rolloutsCommand(f),
		a.decideCommand(f, desk.DoApprove, "approve ID...", "Make waiting or quarantined hosts members"),
		a.decideCommand(f, desk.DoRemove, "remove ID...", "End the membership of hosts, and their connections"),
		a.decideCommand(f, desk.DoWithdraw, "withdraw ID...", "End invitations")} {
		c.AddCommand(withExits(sub, exitUnreachable))
	}
	for _, sub := range []*cobra.Command{a.askCommand(f), a.fetchCommand(f), a.measureCommand(f)} {
		c.AddCommand(withExits(sub, exitPartial, exitUnreachable))
	}
	for _, sub := range []*cobra.Command{a.applyCommand(f), a.againCommand(f, conduct.Resume),
		a.againCommand(f, conduct.Persist), a.againCommand(f, conduct.Undo), a.beginCommand(f)} {
		c.AddCommand(withExits(sub, exitPartial, exitRolledBack, exitUnreachable))
	}
	c.AddCommand(withExits(a.resolverCommand(f)), withExits(a.orderKeyCommand()), withExits(a.cosignCommand()))
	return withExits(c)
}

func (a *app) statusCommand(f *runFlags) *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Count the hosts by state, class and finding", Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var doc report.FleetStatusDocument
			if err := a.call(cmd, f, desk.Request{Do: desk.DoStatus}, &doc, nil); err != nil {
				return err
			}
			return a.print(&doc, func(w io.Writer) { writeStatus(w, &doc) })
		},
	}
}

func writeStatus(w io.Writer, doc *report.FleetStatusDocument) {
	unit := "members"
	if doc.Members["member"] == 1 {
		unit = "member"
	}
	fmt.Fprintf(w, "%d %s", doc.Members["member"], unit)
	for _, state := range slices.Sorted(maps.Keys(doc.Members)) {
		if state != "member" {
			fmt.Fprintf(w, " · %d %s", doc.Members[state], state)
		}
	}
	fmt.Fprintf(w, "\n%d silent · %d with drifted changes · %d differ from their class\n", doc.Silent, doc.Drifted,
		doc.Differing)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if len(doc.Classes) > 0 {
		fmt.Fprintf(t, "\nclass\thosts\tsilent\tdrifted\tdiffer\n")
		for _, c := range doc.Classes {
			fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\n", c.Name, c.Hosts, c.Silent, c.Drifted, c.Differing)
		}
	}
	if len(doc.Findings) > 0 {
		fmt.Fprintf(t, "\nfinding\thosts\n")
		for _, code := range slices.Sorted(maps.Keys(doc.Findings)) {
			fmt.Fprintf(t, "%s\t%d\n", code, doc.Findings[code])
		}
	}
	if len(doc.Undecided) > 0 {
		fmt.Fprintf(t, "\nto decide\tname\tfingerprint\treason\n")
		for _, h := range doc.Undecided {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s: %s\n", h.ID, h.Name, h.Fingerprint, h.State, h.Reason)
		}
	}
	if len(doc.Invitations) > 0 {
		fmt.Fprintf(t, "\ninvitation\tuses left\tuntil\n")
		for _, i := range doc.Invitations {
			fmt.Fprintf(t, "%s\t%d\t%s\n", i.ID, i.Uses-i.Used, i.Expires.Local().Format(time.DateTime))
		}
	}
	_ = t.Flush() // the writer below has the error
}

func (a *app) hostsCommand(f *runFlags) *cobra.Command {
	var q desk.Request
	c := &cobra.Command{
		Use: "hosts [SELECTION]", Short: "List hosts, a page at a time",
		Long: "hosts lists what the hub knows of hosts. Of a single one it also lists in what it differs from its class.",
		RunE: func(cmd *cobra.Command, words []string) error {
			q.Do, q.Selection = desk.DoHosts, strings.Join(words, " ")
			var doc report.FleetHostsDocument
			if err := a.call(cmd, f, q, &doc, nil); err != nil {
				return err
			}
			return a.print(&doc, func(w io.Writer) { writeHosts(w, &doc) })
		},
	}
	c.Flags().IntVar(&q.Limit, "limit", 100, "hosts on a page, at most 1000")
	c.Flags().StringVar(&q.After, "after", "", "begin after this host: next of the page before")
	return c
}

func writeHosts(w io.Writer, doc *report.FleetHostsDocument) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "name\tid\tstate\tclass\tseen\tdrift\tdiffers\tfindings\n")
	for _, h := range doc.Hosts {
		seen := "never"
		if h.LastSeen != nil {
			seen = fmt.Sprintf("%.0fs ago", doc.Time.Sub(*h.LastSeen).Seconds())
		}
		drift := strconv.Itoa(len(h.Drifted))
		if h.JournalNotRead != "" {
			drift = "not known"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\n", h.Name, h.ID, h.State, h.Class, seen, drift,
			h.Differs, strings.Join(h.Findings, " "))
	}
	_ = t.Flush() // the writer below has the error
	if len(doc.Differences) > 0 {
		fmt.Fprintf(t, "\ndiffers in\tvalue\tusual\tshare of the class\n")
		for _, d := range doc.Differences {
			fmt.Fprintf(t, "%s\t%s\t%s\t%.0f %%\n", d.Knob, d.Value, d.Usual, 100*d.Share)
		}
		_ = t.Flush()
	}
	fmt.Fprintf(w, "%d of %d hosts\n", len(doc.Hosts), doc.Selected)
	if doc.Next != "" {
		fmt.Fprintf(w, "next page: --after %q\n", doc.Next)
	}
}

func (a *app) askCommand(f *runFlags) *cobra.Command {
	var q desk.Request
	var within time.Duration
	c := &cobra.Command{
		Use: "ask ping|state|knob [KNOB...] [-- SELECTION]", Short: "Ask hosts one question, and count equal answers",
		Long: `ask sends one question to all hosts of a selection and waits until each has answered, or for --within.
Hosts that are not connected and hosts that do not answer are listed by name.

  ping          the version of linerate
  state         findings, kept and drifted changes
  knob KNOB...  the present values of up to 8 knobs`,
		Example: "  linerate-hub fleet ask ping\n" +
			"  linerate-hub fleet ask knob net.ipv4.tcp_rmem -- class:mlx5-6.12 -host:db*",
		RunE: func(cmd *cobra.Command, words []string) error {
			if dash := cmd.ArgsLenAtDash(); dash >= 0 {
				q.Selection, words = strings.Join(words[dash:], " "), words[:dash]
			}
			if len(words) == 0 {
				return usageError{errors.New("name a question: ping, state or knob")}
			}
			q.Do, q.Verb, q.Args, q.WithinMS = desk.DoAsk, words[0], words[1:], within.Milliseconds()
			var doc report.FleetAskDocument
			if err := a.call(cmd, f, q, &doc, nil); err != nil {
				return err
			}
			if err := a.print(&doc, func(w io.Writer) { writeAsked(w, &doc) }); err != nil {
				return err
			}
			if doc.Incomplete || len(doc.Absent)+len(doc.Silent) > 0 {
				return errPartial
			}
			return nil
		},
	}
	c.Flags().DurationVar(&within, "within", 0,
		"how long to wait for answers (default 10s and a second for each 10 000 hosts)")
	return c
}

// namesShown is how many hosts a line of text names.
const namesShown = 5

func names(hosts []report.FleetName) string {
	var all []string
	for _, h := range hosts[:min(len(hosts), namesShown)] {
		all = append(all, h.Name)
	}
	if more := len(hosts) - namesShown; more > 0 {
		all = append(all, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(all, " ")
}

func writeAsked(w io.Writer, doc *report.FleetAskDocument) {
	answered := 0
	for _, a := range doc.Answers {
		answered += len(a.Hosts)
		text := string(a.Answer)
		if a.Error != "" {
			text = "error: " + a.Error
		}
		fmt.Fprintf(w, "%6d  %s\n        %s\n", len(a.Hosts), text, names(a.Hosts))
	}
	fmt.Fprintf(w, "%d of %d hosts answered in %.2f s\n", answered, doc.Asked, doc.Seconds)
	if len(doc.Absent) > 0 {
		fmt.Fprintf(w, "not connected: %d: %s\n", len(doc.Absent), names(doc.Absent))
	}
	if len(doc.Silent) > 0 {
		fmt.Fprintf(w, "no answer: %d: %s\n", len(doc.Silent), names(doc.Silent))
	}
	if doc.Incomplete {
		fmt.Fprintln(w, "the hub lost its own connection meanwhile: silent hosts may have answered")
	}
}

func (a *app) fetchCommand(f *runFlags) *cobra.Command {
	var q desk.Request
	var dir string
	c := &cobra.Command{
		Use:   "fetch facts|inspect|history|runs|measurements|run/ID|measurement/ID [SELECTION]",
		Short: "Fetch a document from each host into a directory",
		RunE: func(cmd *cobra.Command, words []string) error {
			if len(words) == 0 {
				return usageError{errors.New("name a document")}
			}
			q.Do, q.Document, q.Selection = desk.DoFetch, words[0], strings.Join(words[1:], " ")
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return err
			}
			file := func(id string) string {
				return filepath.Join(dir, id+"-"+strings.ReplaceAll(q.Document, "/", "-")+".json")
			}
			var doc report.FleetFetchDocument
			err := a.call(cmd, f, q, &doc, func(i desk.Item) error {
				return durable.Replace(durable.OS(), file(i.ID), i.Data, 0o600)
			})
			if err != nil {
				return err
			}
			for i := range doc.Fetched {
				doc.Fetched[i].File = file(doc.Fetched[i].ID)
			}
			if err := a.print(&doc, func(w io.Writer) {
				for _, m := range doc.Missing {
					fmt.Fprintf(w, "%s  %s\n", m.Name, m.Error)
				}
				fmt.Fprintf(w, "%d documents in %s, %d missing, %.2f s\n", len(doc.Fetched), dir, len(doc.Missing), doc.Seconds)
			}); err != nil {
				return err
			}
			if len(doc.Missing) > 0 {
				return errPartial
			}
			return nil
		},
	}
	c.Flags().StringVar(&dir, "output", "fleet-documents", "directory for one file for each host")
	return c
}

func (a *app) decideCommand(f *runFlags, do, use, short string) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use: use, Short: short,
		RunE: func(cmd *cobra.Command, ids []string) error {
			if len(ids) == 0 {
				return usageError{fmt.Errorf("%s: ID is missing", cmd.Name())}
			}
			var doc report.FleetDecideDocument
			if err := a.call(cmd, f, desk.Request{Do: do, IDs: ids, Reason: reason}, &doc, nil); err != nil {
				return err
			}
			return a.print(&doc, func(w io.Writer) {
				for _, h := range doc.Hosts {
					fmt.Fprintf(w, "%s  %s  %s\n", h.ID, h.Name, h.State)
				}
			})
		},
	}
	if do == desk.DoRemove {
		c.Flags().StringVar(&reason, "reason", "", "why, for the register")
	}
	return c
}

func (a *app) resolverCommand(f *runFlags) *cobra.Command {
	var claims, leaf string
	c := &cobra.Command{
		Use: "resolver", Short: "Print the configuration that makes a cluster of nats-server trust this fleet",
		Long: `resolver prints the part of a configuration of nats-server by which it knows the hosts
of this fleet. Include it at each server of the cluster, with TLS and handshake_first: true, and name
the servers under fleet: servers: in hub.yaml.`,
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			config, _, err := a.configured(f)
			if err != nil {
				return err
			}
			if leaf != "" {
				credentials, account, err := desk.Leaf(config.fleetDir(), leaf)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(a.out, "# account: %s\n%s", account, credentials)
				return err
			}
			text, err := desk.Resolver(config.fleetDir(), claims)
			if err != nil {
				return err
			}
			_, err = io.WriteString(a.out, text)
			return err
		},
	}
	c.Flags().StringVar(&claims, "claims", "", "directory in which the server keeps claims (default /var/lib/nats/claims)")
	c.Flags().StringVar(&leaf, "leaf", "", "print the credentials of the leaf node of this site instead; keep them secret")
	return c
}
