package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/change/plan"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/snapshot"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/text"
)

// planFlags are the lines of a situation, given as flags.
type planFlags struct {
	os, release, role, link, rtt, memory, connections, mtu, nic string
	undo                                                        bool
}

// planCommand writes a plan. It reads a host or a file and changes nothing.
func (a *app) planCommand() *cobra.Command {
	var f planFlags
	c := &cobra.Command{
		Use:         "plan [FILE]",
		Annotations: exits(exitNotPermitted, exitInterrupted),
		Short:       "Write the settings for a system and a role as commands, files and undo",
		Long: `Write what one system can still set in one role on one path. That is the commands in the order
in which they must run, the files that keep them over a restart, and the reason of each. The
output is a script for the shell of that system; --undo prints the way back. What old write-ups
set there is listed with what became of it: default now, ignored, removed or harmful. plan
changes nothing.

FILE is a document of inspect --json, a capture, a sosreport, or six lines:

  link: 10G
  round trip: 20ms
  memory: 32GiB
  role: bulk
  os: freebsd
  release: 14.2

More lines are connections, mtu, interface and driver. Flags replace lines. Without FILE, plan
reads this host, unless --link is given. Values follow from the link, the round trip and the
memory: a buffer holds what is under way, as far as buffers × connections fit into memory.
Buffers are not raised on a router or a firewall.

Systems are linux (by kernel), debian, ubuntu, rhel, fedora, sles, alpine, arch, freebsd,
solaris, illumos and windows; FreeBSD 5 and 6, Solaris 9, XP and Server 2003 are for the record.
Roles are bulk, web, router, firewall, latency, virtual, nameserver and nfs.`,
		Example: "  linerate plan --role bulk --rtt 20ms\n  linerate plan --undo situation.txt\n" +
			"  linerate plan --os windows --release 2022 --role web --link 10G --rtt 40ms --memory 64GiB\n" +
			"  linerate inspect --json | linerate plan --role router -",
		RunE: func(cmd *cobra.Command, args []string) error {
			name := ""
			if len(args) > 0 {
				name = args[0]
			}
			given, err := a.planGiven(cmd.Context(), name, f)
			if err != nil {
				return err
			}
			if err := f.over(cmd, &given); err != nil {
				return err
			}
			situation, err := given.Resolve()
			if err != nil {
				return usagef("plan: %w", err)
			}
			made, err := plan.Make(situation)
			if err != nil {
				return usagef("plan: %w", err)
			}
			doc := report.NewPlan(a.envelope(""), made)
			return a.print(doc, func(text.Style) error {
				script := doc.Script
				if f.undo {
					script = doc.UndoScript
				}
				_, err := io.WriteString(a.out, script)
				return err
			})
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.os, "os", "", "system: linux, a distribution, freebsd, solaris, illumos or windows")
	flags.StringVar(&f.release, "release", "", "its release: 12, 24.04, 14.2, 11.4, 2022; of linux the kernel")
	flags.StringVar(&f.role, "role", "", "bulk, web, router, firewall, latency, virtual, nameserver or nfs")
	flags.StringVar(&f.link, "link", "", "speed of the link (10G); without FILE, no host is read")
	flags.StringVar(&f.rtt, "rtt", "", "round trip of the path without load (20ms)")
	flags.StringVar(&f.memory, "memory", "", "memory of the host (32GiB)")
	flags.StringVar(&f.connections, "connections", "", "connections that are busy at a time (default: by role)")
	flags.StringVar(&f.mtu, "mtu", "", "set this MTU in bytes")
	flags.StringVar(&f.nic, "interface", "", "interface of the path (default: the fastest one that is up)")
	flags.BoolVar(&f.undo, "undo", false, "print the way back instead")
	return c
}

// over replaces lines of the file by flags.
func (f *planFlags) over(cmd *cobra.Command, g *plan.Given) error {
	for _, x := range []struct{ flag, key, value string }{
		{"os", "os", f.os}, {"release", "release", f.release}, {"role", "role", f.role}, {"link", "link", f.link},
		{"rtt", "rtt", f.rtt}, {"memory", "memory", f.memory}, {"connections", "connections", f.connections},
		{"mtu", "mtu", f.mtu}, {"interface", "interface", f.nic},
	} {
		if !cmd.Flags().Changed(x.flag) {
			continue
		}
		// The release of a file belongs to its system.
		if x.flag == "os" && x.value != g.OS {
			g.Release = ""
		}
		if err := g.Put(x.key, x.value); err != nil {
			return usagef("--%s: %w", x.flag, err)
		}
	}
	return nil
}

// longestPlanInput bounds what a plan is made from: an inspect document of a large host has about a
// megabyte, and a capture a few.
const longestPlanInput = 64 << 20

// planGiven reads the file of a plan, or this host.
func (a *app) planGiven(ctx context.Context, name string, f planFlags) (plan.Given, error) {
	if name == "" {
		if f.link != "" {
			return plan.Given{}, nil
		}
		h, err := host.Root{}.Snapshot(ctx)
		if err != nil {
			return plan.Given{}, err
		}
		return ofHost(h, f.nic)
	}
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return a.planSnapshot(ctx, name, nil, f.nic)
	}
	in, err := a.openInput(name)
	if err != nil {
		return plan.Given{}, fmt.Errorf("plan: %w", err)
	}
	defer func() { _ = in.Close() }() // opened for reading: nothing to lose
	data, err := io.ReadAll(io.LimitReader(in, longestPlanInput+1))
	switch {
	case err != nil:
		return plan.Given{}, fmt.Errorf("plan %s: %w", name, err)
	case len(data) > longestPlanInput:
		return plan.Given{}, usagef("plan %s: more than 64 MiB: no document of one host", name)
	}
	if trimmed := bytes.TrimSpace(data); len(trimmed) > 0 && trimmed[0] == '{' {
		return planDocumentOf(name, data, f.nic)
	}
	given, err := plan.ReadSituation(data)
	if err == nil {
		return given, nil
	}
	// A capture is text as well.
	if snap, notSnapshot := a.planSnapshot(ctx, name, data, f.nic); notSnapshot == nil {
		return snap, nil
	}
	return given, usagef("plan %s: %w", name, err)
}

// planDocumentOf reads a document of inspect.
func planDocumentOf(name string, data []byte, nic string) (plan.Given, error) {
	var d report.InspectDocument
	if err := json.Unmarshal(data, &d); err != nil {
		return plan.Given{}, usagef("plan %s: no document of inspect: %w", name, err)
	}
	if d.Schema != report.SchemaInspect {
		return plan.Given{}, usagef("plan %s: the schema is %q; plan reads documents of inspect --json (%s)", name, d.Schema,
			report.SchemaInspect)
	}
	return ofHost(&host.Snapshot{OS: d.Host.OS, Kernel: d.Host.Kernel, MemoryBytes: d.Host.MemoryBytes,
		Interfaces: d.Interfaces, Settings: d.Settings}, nic)
}

// planSnapshot reads a capture, a sosreport, or a copy of /proc and /sys; data is what was read of
// it already.
func (a *app) planSnapshot(ctx context.Context, name string, data []byte, nic string) (plan.Given, error) {
	var read *snapshot.File
	var err error
	if name == "-" {
		read, err = snapshot.Read(ctx, name, bytes.NewReader(data))
	} else {
		read, err = a.openSnapshot(ctx, name)
	}
	if err != nil {
		return plan.Given{}, err
	}
	h, err := read.Snapshot(ctx)
	if err != nil {
		return plan.Given{}, err
	}
	return ofHost(h, nic)
}

// ofHost is plan.OfHost for a flag of the user.
func ofHost(h *host.Snapshot, nic string) (plan.Given, error) {
	g, err := plan.OfHost(h, nic)
	if err != nil {
		return g, usagef("--interface: %w", err)
	}
	return g, nil
}
