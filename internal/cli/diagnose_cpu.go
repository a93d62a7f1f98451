package cli

import (
	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/diagnose/processors"
	"github.com/linerate/linerate/internal/experiment/loop"
	"github.com/linerate/linerate/internal/report"
)

// cpuFlag selects the view of a host's processors: what vmstat, mpstat, sar and /proc/interrupts
// show, on one screen.
type cpuFlag struct{ on bool }

func (f *cpuFlag) add(c *cobra.Command) {
	c.Flags().BoolVar(&f.on, "cpu", false,
		"show where this host's CPU time goes, to which interrupt of which NIC, and what would help")
}

// check refuses the flag with a target: to see the processors under a load, start the load beside.
func (f *cpuFlag) check(args []string) error {
	if f.on && len(args) > 0 {
		return flagError{usagef("--cpu: it is about this host; leave out the TARGET"),
			"linerate diagnose --cpu, while the load runs"}
	}
	return nil
}

// of adds the view to the document of a watched host, and reports whether it did.
func (f *cpuFlag) of(v *loop.Verdict, d *report.DiagnoseDocument) bool {
	if !f.on || len(v.Watched) == 0 {
		return false
	}
	d.CPU = processors.Examine(&v.Watched[0])
	return true
}
