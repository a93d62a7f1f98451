package cli

import (
	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/report"
)

// --root is how a host is looked at from afar and later: somebody sends a tarball of /proc and /sys.
func (a *app) inspectCommand() *cobra.Command {
	var root string
	c := &cobra.Command{
		Use:   "inspect",
		Short: "Show what this host has, and the ceilings that follow",
		Long: `Show interfaces with driver, bus, link, rings, coalescing, features and queues; the TCP and
core settings; the processors; and the rates that none of them lets you pass.

Reads only. With --root it reads an unpacked copy of /proc and /sys instead of this host.`,
		Example: "  linerate inspect\n  linerate inspect --json | jq .ceilings",
		RunE: func(cmd *cobra.Command, _ []string) error {
			snapshot, err := host.Root{Dir: root}.Snapshot(cmd.Context())
			if err != nil {
				return err
			}
			doc := report.NewInspect(a.envelope(snapshot.Name), snapshot)
			return a.print(doc, func(s report.Style) error { return report.InspectText(a.out, doc, s) })
		},
	}
	c.Flags().StringVar(&root, "root", "", "directory that holds copies of /proc and /sys to read instead of this host")
	return c
}
