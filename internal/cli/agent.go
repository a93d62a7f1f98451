package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/hazard"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob/live"
	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/peer/agent"
	"github.com/linerate/linerate/internal/peer/executor"
	"github.com/linerate/linerate/internal/report"
)

// agentFlags are how an agent is started.
type agentFlags struct {
	socket, group, config string
	orders, check         bool
}

func (a *app) agentCommand() *cobra.Command {
	var f agentFlags
	c := &cobra.Command{
		Use:         "agent",
		Annotations: exits(exitNotPermitted, exitLocked),
		Short:       "Let linerate-hub read changes and stored runs, which only root may read, over a local socket",
		Long: `Let linerate-hub, which is not root, read the changes and the stored runs of this host. The
agent answers a fixed list of questions, and without --orders all of them only read: a client can
change nothing and name no file. Root and one group may ask. The agent runs until it is stopped.

--orders makes this host a member of a fleet that can be changed: the agent then also takes
signed orders. It reads three files in /etc/linerate, which only root may be able to change.
host.id has the id of this host in the fleet, and order.keys a name and a public key on each
line. policy.yaml says what the fleet may do here; without it, nothing is changed. linerate fleet
trust writes them. Each order needs a signature of a person on that list, whatever the process
that brings it says. A change is a trial with a deadline: without a signed confirmation the host
takes it back, without the network. --check prints what the three files allow, and ends.

dist/systemd/linerate-agent.socket is a unit for systemd, which opens the socket and confines
the agent.`,
		Example: "  linerate agent\n  linerate agent --group monitoring --socket /run/linerate/agent.sock\n" +
			"  linerate agent --orders --check",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.agent(cmd.Context(), f) },
	}
	c.Flags().StringVar(&f.socket, "socket", agent.DefaultSocket,
		"path of the socket; ignored when systemd has opened one")
	c.Flags().StringVar(&f.group, "group", "linerate",
		"group that may ask besides root, by name or number; empty: only root")
	c.Flags().BoolVar(&f.orders, "orders", false, "also take signed orders of a fleet")
	c.Flags().StringVar(&f.config, "config", executor.DefaultDir, "with --orders: directory of its three files")
	c.Flags().BoolVar(&f.check, "check", false, "with --orders: print what its files allow, and end")
	return c
}

func (a *app) agent(ctx context.Context, f agentFlags) error {
	if f.check && !f.orders {
		return usagef("--check needs --orders")
	}
	dir, err := a.stateDir()
	if err != nil {
		return err
	}
	log := func(line string) { fmt.Fprintln(a.err, "linerate: agent:", line) }
	config := agent.Config{Local: agent.Local{Dir: dir}, Version: version, Socket: f.socket, Group: f.group, Log: log}
	var allowed *report.AgentOrders
	if f.orders {
		if config.Orders, allowed, err = a.orders(dir, f.config, log); err != nil {
			return err
		}
	}
	show := func(socket string) error {
		if a.json {
			return report.Encode(a.out, report.NewAgent(a.envelope(""), socket, f.group, dir, allowed))
		}
		if !f.check {
			if _, err := fmt.Fprintf(a.out, "answering at %s about %s\n", socket, dir); err != nil {
				return err
			}
		}
		return writeOrders(a, allowed)
	}
	if f.check {
		return show(f.socket)
	}
	var printed error
	err = agent.Serve(ctx, config, func(socket string) { printed = show(socket) })
	if errors.Is(err, fs.ErrPermission) {
		err = flagError{err, "run it as root, or name a socket in a directory of your own with --socket"}
	}
	return errors.Join(err, printed)
}

// writeOrders says in plain words whose orders the agent takes.
func writeOrders(a *app, allowed *report.AgentOrders) error {
	if allowed == nil {
		return nil
	}
	keys := "none, because order.keys names no key"
	if len(allowed.Keys) > 0 {
		keys = strings.Join(allowed.Keys, ", ")
	}
	_, err := fmt.Fprintf(a.out, "host %s of a fleet; orders signed by: %s\n%s\n", allowed.HostID, keys,
		strings.Join(allowed.Policy, "\n"))
	return err
}

// orders returns what carries out orders on this host, and what its files allow. A wrong file stops
// the start; one that becomes wrong later makes the host refuse all orders.
func (a *app) orders(state, config string, log func(string)) (*executor.Executor, *report.AgentOrders, error) {
	files := executor.Files{FS: durable.OS(), Dir: config}
	host, err := files.Host()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, flagError{err, "linerate fleet trust writes it, with the line that linerate fleet key prints"}
	}
	if err != nil {
		return nil, nil, err
	}
	keys, err := files.Keys()
	if err != nil {
		return nil, nil, err
	}
	policy, err := files.Policy()
	if err != nil {
		return nil, nil, err
	}
	if err := journal.Trusted(durable.OS(), state); err != nil {
		return nil, nil, err
	}
	backend := live.New()
	carry := executor.New(executor.Config{
		Host: host, State: state, Keys: files.Keys, Policy: files.Policy, Read: backend.Read, BootID: sys.BootID, Log: log,
		Files: orderedFiles,
		Open: func() (*journal.Journal, error) {
			guarded := hazard.Backend{Backend: backend, Warn: func(h hazard.Hazard) { log("an order sets " + h.String()) }}
			options := journalOptions(state, guarded, journal.Deadline, "")
			options.Patience = storagePatience
			return journal.Open(options)
		},
	})
	return carry, &report.AgentOrders{HostID: host, Keys: slices.Sorted(maps.Keys(keys)), Policy: policy.Meaning()}, nil
}
