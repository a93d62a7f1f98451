package daemon

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/hub/internal/fleet/join"
	"github.com/linerate/linerate/hub/internal/fleet/member"
	"github.com/linerate/linerate/hub/internal/fleet/node"
	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/knob/live"
	"github.com/linerate/linerate/internal/peer/agent"
	"github.com/linerate/linerate/internal/peer/policy"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/traffic/lease"
)

//go:embed linerate-node.service
var nodeUnitFile string

// The memory of a node: it shares a host with its work.
const (
	nodeMemoryLimit = 20 << 20 // bytes; runtime/debug.SetMemoryLimit
	nodeCollectAt   = 25       // percent; runtime/debug.SetGCPercent
)

func about() join.About {
	name, _ := os.Hostname() // an unknown name is absent
	return join.About{Machine: join.Machine(), Name: name}
}

// joined returns the document of a membership.
func joined(h *join.Home, state, reason string) *report.FleetJoinDocument {
	return &report.FleetJoinDocument{Envelope: report.NewEnvelope(version, about().Name).Of(report.SchemaFleetJoin),
		Hub: h.Hub, State: state, ID: h.ID, Reason: reason, Fingerprint: h.Fingerprint()}
}

func (a *app) printJoined(doc *report.FleetJoinDocument) error {
	return a.print(doc, func(w io.Writer) {
		switch doc.State {
		case "member":
			fmt.Fprintf(w, "joined the fleet of %s as %s; `linerate-hub node` serves it\n", doc.Hub, doc.ID)
			fmt.Fprintln(w, "this host takes no orders yet; `linerate fleet trust` as root, with the line that "+
				"`linerate fleet key` prints, allows it")
		default:
			fmt.Fprintf(w, "the hub %s: %s\nkey %s; `linerate-hub node` waits for the decision\n", doc.Hub, doc.Reason,
				doc.Fingerprint)
		}
	})
}

func (a *app) joinCommand() *cobra.Command {
	var home string
	c := &cobra.Command{
		Use:   "join HOST:PORT TOKEN",
		Short: "Make this host a member of a fleet, by the line of `linerate-hub invite`",
		Long: `join makes a key on this host, proves by the token that the hub is the one that made the
invitation, and gets an identity. The key stays on this host. Nothing runs afterwards: start
linerate-hub node, or its unit.`,
		RunE: func(cmd *cobra.Command, words []string) error {
			address, token, err := member.ParseLine(words)
			if err != nil {
				return usageError{err}
			}
			dir, err := homeDir(home, a.env, os.Geteuid() == 0)
			if err != nil {
				return usageError{err}
			}
			h, err := join.Prepare(durable.ForOwner(), dir, address, token)
			if err != nil {
				return err
			}
			err = h.Ask(cmd.Context(), about())
			if refusal, ok := errors.AsType[*member.Refusal](err); ok && refusal.Retry {
				return a.printJoined(joined(h, "waiting", refusal.Reason))
			}
			if err != nil {
				return err
			}
			return a.printJoined(joined(h, "member", ""))
		},
	}
	c.Flags().StringVar(&home, "home", "", homeHelp)
	return c
}

const homeHelp = "directory of the membership (default /var/lib/linerate-node for root, otherwise " +
	"$XDG_STATE_HOME/linerate-node)"

func (a *app) leaveCommand() *cobra.Command {
	var home string
	c := &cobra.Command{
		Use:   "leave",
		Short: "End the membership of this host; it works without the hub",
		Args:  noArguments,
		RunE: func(*cobra.Command, []string) error {
			dir, err := homeDir(home, a.env, os.Geteuid() == 0)
			if err != nil {
				return usageError{err}
			}
			h, err := join.Open(durable.ForOwner(), dir)
			if err != nil {
				return err
			}
			if err := h.Leave(); err != nil {
				return err
			}
			return a.print(joined(h, "left", ""), func(w io.Writer) {
				fmt.Fprintf(w, "left the fleet of %s; `linerate-hub fleet remove %s` there forgets this host\n", h.Hub, h.ID)
			})
		},
	}
	c.Flags().StringVar(&home, "home", "", homeHelp)
	return c
}

// nodeFlags are the flags of `linerate-hub node`.
type nodeFlags struct {
	home, log, state, agent string
	serve, meshKey, policy  string
	rotate                  bool
}

func (a *app) nodeCommand() *cobra.Command {
	var f nodeFlags
	c := &cobra.Command{
		Use:   "node",
		Short: "Serve this host to the fleet that it joined, without privileges",
		Long: `node connects to the hub's bus, says that the host lives, answers questions and hands out
documents. It reads what every user may read, and asks ` + "`linerate agent`" + ` for the rest. It changes nothing: an
order that a person has signed goes to ` + "`linerate agent --orders`" + `, which checks it and carries it out.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := a.logger(f.log)
			if err != nil {
				return err
			}
			dir, err := homeDir(f.home, a.env, os.Geteuid() == 0)
			if err != nil {
				return usageError{err}
			}
			h, err := join.Open(durable.ForOwner(), dir)
			if err != nil {
				return err
			}
			if f.rotate {
				if err := h.Rotate(cmd.Context(), about()); err != nil {
					return err
				}
				return a.printJoined(joined(h, "member", ""))
			}
			return a.serveNode(cmd.Context(), h, f, log)
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.home, "home", "", homeHelp)
	flags.StringVar(&f.log, "log", "text", "format of the log on standard error: text, json")
	flags.StringVar(&f.state, "state", "/var/lib/linerate", "directory of linerate's journal, runs and measurements")
	flags.StringVar(&f.agent, "agent", DefaultAgent, "socket of 'linerate agent'")
	flags.StringVar(&f.serve, "serve", "",
		"HOST:PORT of linerate serve on this host, where other hosts of the fleet measure it")
	flags.StringVar(&f.meshKey, "mesh-key", "/etc/linerate/mesh.key",
		"file with the key that all linerate serve of the fleet let in")
	flags.StringVar(&f.policy, "policy", policy.DefaultPath, "file that limits what the fleet may measure from here")
	flags.BoolVar(&f.rotate, "rotate", false, "give this host a new key, and end; restart the node afterwards")
	return c
}

// serveNode runs a node until the context ends.
func (a *app) serveNode(ctx context.Context, h *join.Home, f nodeFlags, log *slog.Logger) error {
	debug.SetMemoryLimit(nodeMemoryLimit)
	debug.SetGCPercent(nodeCollectAt)
	source := node.NewHost(newHostSource(Config{State: f.state, Agent: f.agent}), live.New(), version, log)
	prober := &node.Prober{KeyFile: f.meshKey, Policy: f.policy, Version: version, Lease: &lease.Lease{},
		Speed: source.Speed}
	source.ServeAt(f.serve)
	source.AfterRead = func() {
		if err := trim(); err != nil {
			log.Debug("trim the resident size", "error", err)
		}
	}
	work := &node.Work{Agent: agent.NewClient(f.agent)}
	reports := agent.NewClient(f.agent)
	source.Reports = reports.Orders
	defer func() {
		_ = work.Agent.Close() // nothing is under way any more
		_ = reports.Close()
	}()
	ctx, stop := context.WithCancel(ctx)
	var parts sync.WaitGroup
	defer parts.Wait()
	defer stop()
	parts.Go(func() { source.Run(ctx) })
	return node.Run(ctx, node.Options{Home: h, About: about(), Source: source, Prober: prober, Tasks: work,
		Version: version, Log: log,
		Joined: func(id string) {
			log.Info("serving", "host", id, "hub", h.Hub)
			if err := notify(a.env("NOTIFY_SOCKET"), "READY=1"); err != nil {
				log.Warn(err.Error())
			}
		},
		Connected: func() { log.Info("connected to the bus") }})
}

// NodeUnit returns the systemd unit of a node whose program is at path.
func NodeUnit(path string) string { return strings.ReplaceAll(nodeUnitFile, "@COMMAND@", path) }
