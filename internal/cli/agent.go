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
		Use:   "agent",
		Short: "Answer what only root may read, over a local socket: changes and stored runs, for linerate-hub",
		Long: `Let linerate-hub, which is not root, read the changes and the stored runs of this host. Questions are a
fixed list and only read; nothing on the host can be changed through the socket, and no file can be
named. Root and one group may ask. It runs until it is ended.

A unit for systemd, which opens the socket and shuts the agent in, is dist/systemd/linerate-agent.socket.`,
		Example: "  linerate agent\n  linerate agent --group monitoring --socket /run/linerate/agent.sock",
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := a.stateDir()
			if err != nil {
				return err
			}
			var told error
			err = agent.Serve(cmd.Context(), agent.Config{
				Local: agent.Local{Dir: dir}, Version: version, Socket: socket, Group: group,
				Log: func(line string) { fmt.Fprintln(a.err, "linerate: agent:", line) },
			}, func(socket string) {
				if a.json {
					told = report.Encode(a.out, report.NewAgent(a.envelope(""), socket, group, dir))
					return
				}
				_, told = fmt.Fprintf(a.out, "answering at %s about %s\n", socket, dir)
			})
			if errors.Is(err, fs.ErrPermission) {
				err = flagError{err, "run it as root, or name a socket in a directory of your own with --socket"}
			}
			return errors.Join(err, told)
		},
	}
	c.Flags().StringVar(&socket, "socket", agent.DefaultSocket,
		"where to answer; not used when systemd has opened the socket")
	c.Flags().StringVar(&group, "group", "linerate",
		"the group that may ask besides root, by name or number; empty: root alone")
	return c
}
