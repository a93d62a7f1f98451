package cli

import (
	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/diagnose/processors"
	"github.com/linerate/linerate/internal/experiment/loop"
	"github.com/linerate/linerate/internal/report"
)

// cpuFlag is the view of a host's processors: what vmstat, mpstat, sar and /proc/interrupts say, on
// one screen.
type cpuFlag struct{ on bool }

func (f *cpuFlag) add(c *cobra.Command) {
	c.Flags().BoolVar(&f.on, "cpu", false,
		"tell where this host's processor time goes, to which interrupt of which card, and what would help")
}

// check refuses it with a target: who wants the processors under a load starts the load beside.
func (f *cpuFlag) check(args []string) error {
	if f.on && len(args) > 0 {
		return flagError{usagef("--cpu: it is about this host; a TARGET has no place beside it"),
			"linerate diagnose --cpu, while the load runs"}
	}
	return nil
}

// of puts the triage into the document of a host that was watched, where it was asked for.
func (f *cpuFlag) of(v *loop.Verdict, d *report.DiagnoseDocument) bool {
	if !f.on || len(v.Watched) == 0 {
		return false
	}
	d.CPU = processors.Examine(&v.Watched[0])
	return true
}
