package cli

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/peer/agent"
	"github.com/linerate/linerate/internal/report"
)

func (a *app) agentCommand() *cobra.Command {
	var socket, group string
	c := &cobra.Command{
		Use:         "agent",
		Annotations: exits(exitNotPermitted, exitLocked),
		Short:       "Let linerate-hub read changes and stored runs, which only root may read, over a local socket",
		Long: `Let linerate-hub, which is not root, read the changes and the stored runs of this host. The
agent answers a fixed list of questions, and all of them only read: a client can change nothing
and name no file. Root and one group may ask. The agent runs until it is stopped.

dist/systemd/linerate-agent.socket is a unit for systemd, which opens the socket and confines
the agent.`,
		Example: "  linerate agent\n  linerate agent --group monitoring --socket /run/linerate/agent.sock",
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := a.stateDir()
			if err != nil {
				return err
			}
			var printed error
			err = agent.Serve(cmd.Context(), agent.Config{
				Local: agent.Local{Dir: dir}, Version: version, Socket: socket, Group: group,
				Log: func(line string) { fmt.Fprintln(a.err, "linerate: agent:", line) },
			}, func(socket string) {
				if a.json {
					printed = report.Encode(a.out, report.NewAgent(a.envelope(""), socket, group, dir))
					return
				}
				_, printed = fmt.Fprintf(a.out, "answering at %s about %s\n", socket, dir)
			})
			if errors.Is(err, fs.ErrPermission) {
				err = flagError{err, "run it as root, or name a socket in a directory of your own with --socket"}
			}
			return errors.Join(err, printed)
		},
	}
	c.Flags().StringVar(&socket, "socket", agent.DefaultSocket,
		"path of the socket; ignored when systemd has opened one")
	c.Flags().StringVar(&group, "group", "linerate",
		"group that may ask besides root, by name or number; empty: only root")
	return c
}
