package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/base/pattern"
	"github.com/linerate/linerate/internal/change/advice"
	"github.com/linerate/linerate/internal/kernel/hostfs"
	"github.com/linerate/linerate/internal/kernel/procfs"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/text"
	"github.com/linerate/linerate/internal/storage/nfs"
	"github.com/linerate/linerate/internal/storage/nfs/mount"
)

// nfsCommand shows where the calls of NFS mounts wait. It changes and sends nothing.
func (a *app) nfsCommand() *cobra.Command {
	var (
		duration time.Duration
		from     string
	)
	c := &cobra.Command{
		Use:         "nfs [MOUNT|SERVER:/EXPORT]",
		Annotations: exits(exitNotPermitted, exitInterrupted),
		Short:       "Show where the calls of an NFS mount wait",
		Long: `Read the counters of the kernel's NFS client, and show for each mount, or for MOUNT, where its
calls wait. They wait in this host for a slot or the transport, in the network, in the server,
or in this host for the processing of answers. Each procedure has its queue, round trip,
execution time, retransmissions and bytes per call. Nothing is sent and nothing is changed.

Without --duration the counters are those since the mount; with it, those of that time. --from
FILE reads a /proc/self/mountstats of another host; "-" is standard input.

The network's part of the round trip is that of the quickest small procedure (GETATTR, ACCESS,
LOOKUP). A server that is slow for those too looks like a slow network. Where too few of them were
called, "network-or-server" leaves the two together.`,
		Example: "  linerate nfs\n" +
			"  linerate nfs /mnt/data --duration 10s\n" +
			"  ssh host cat /proc/self/mountstats | linerate nfs --from -",
		RunE: func(cmd *cobra.Command, args []string) error {
			if from != "" && duration > 0 {
				return usagef("--from reads one file: leave --duration out")
			}
			if err := given(cmd.Flags(), "from", "duration"); err != nil {
				return err
			}
			tree := hostfs.Running()
			read := func() ([]procfs.NFSMount, error) { return nfs.Read(tree) }
			if from != "" {
				var err error
				if read, tree, err = a.mountStats(from); err != nil {
					return err
				}
			}
			all, err := read()
			if err != nil {
				return fmt.Errorf("nfs: %w", err)
			}
			if all, err = chosenMount(all, args); err != nil {
				return err
			}
			mounts := make([]nfs.Mount, 0, len(all))
			if duration == 0 {
				for _, m := range all {
					mounts = append(mounts, nfs.Judge(tree, m, m.Age))
				}
			} else {
				began := time.Now()
				select {
				case <-cmd.Context().Done():
					return cmd.Context().Err()
				case <-time.After(duration):
				}
				later, err := read()
				if err != nil {
					return fmt.Errorf("nfs: %w", err)
				}
				span := time.Since(began)
				for _, m := range all {
					i := slices.IndexFunc(later, func(x procfs.NFSMount) bool { return x.Path == m.Path && x.Source == m.Source })
					if i >= 0 { // unmounted since: there is nothing to show
						mounts = append(mounts, nfs.JudgeSince(tree, m, later[i], span))
					}
				}
			}
			doc := report.NewNFS(a.envelope(""), mounts)
			return a.print(doc, func(s text.Style) error { return text.NFS(a.out, doc, s) })
		},
	}
	c.Flags().DurationVar(&duration, "duration", 0, "count for this time, not since the mount")
	c.Flags().StringVar(&from, "from", "", "read a mountstats file of another host; - is standard input")
	c.AddCommand(a.nfsTuneCommand())
	return c
}

// mountStatsLine is the first line of each mount, of any file system (show_vfsstat in
// fs/proc_namespace.c).
var mountStatsLine = pattern.New(`(?m)^(?:no )?device .*mounted on .* with fstype `)

// mountStats reads a recorded file. What surrounds the mounts of another host is not known.
func (a *app) mountStats(name string) (func() ([]procfs.NFSMount, error), *hostfs.Tree, error) {
	b, err := a.readText(name)
	if err != nil {
		return nil, nil, fmt.Errorf("nfs: %w", err)
	}
	if len(b) > advice.MaxBytes {
		return nil, nil, fmt.Errorf("nfs: %s: larger than %d bytes", name, advice.MaxBytes)
	}
	if !mountStatsLine.Match(b) {
		return nil, nil, fmt.Errorf("nfs: %s: no line of a /proc/self/mountstats in it", name)
	}
	tree, err := hostfs.Of(hostfs.NewMemory([]hostfs.Entry{{Name: "proc/self/mountstats", Content: b},
		{Name: "proc/filesystems", Content: []byte("nodev nfs\n")}}))
	if err != nil {
		return nil, nil, fmt.Errorf("nfs: %w", err)
	}
	return func() ([]procfs.NFSMount, error) { return nfs.Read(tree) }, tree, nil
}

// chosenMount returns the mount that the user names, or all.
func chosenMount(all []procfs.NFSMount, args []string) ([]procfs.NFSMount, error) {
	if len(args) == 0 {
		return all, nil
	}
	path := filepath.Clean(args[0])
	chosen := slices.DeleteFunc(slices.Clone(all),
		func(m procfs.NFSMount) bool { return m.Path != path && m.Source != args[0] })
	if len(chosen) > 0 {
		return chosen, nil
	}
	var paths []string
	for _, m := range all {
		paths = append(paths, m.Path)
	}
	if _, _, err := mount.SplitSource(args[0]); err == nil {
		return nil, flagError{fmt.Errorf("nfs %s: not mounted", args[0]), "`linerate nfs tune` mounts an export itself"}
	}
	err := fmt.Errorf("nfs %s: not an NFS mount", args[0])
	if _, stat := os.Stat(path); errors.Is(stat, os.ErrNotExist) {
		err = fmt.Errorf("nfs %s: %w", args[0], os.ErrNotExist)
	}
	if len(paths) > 0 {
		return nil, flagError{err, fmt.Sprintf("the NFS mounts are %q", paths)}
	}
	return nil, err
}
