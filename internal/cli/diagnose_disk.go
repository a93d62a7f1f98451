package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/base/progress"
	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/diagnose/disks"
	"github.com/linerate/linerate/internal/experiment/loop"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/storage"
)

// fromDiskFlag asks which of disk and network holds a copy.
type fromDiskFlag struct{ path string }

func (f *fromDiskFlag) add(c *cobra.Command) {
	c.Flags().StringVar(&f.path, "from-disk", "",
		"also measure this host's disk below `PATH`, and say whether disk or network limits a copy to TARGET; with "+
			"--reverse one from TARGET, for which PATH is a directory")
}

// copyDuration is the length of the test of the disk.
const copyDuration = 3 * time.Second

// check refuses the flag where nothing is loaded.
func (f *fromDiskFlag) check(args []string) error {
	if f.path != "" && len(args) == 0 {
		return flagError{usagef("--from-disk compares a disk with the path to a TARGET"),
			"linerate diagnose TARGET --from-disk " + f.path}
	}
	return nil
}

// open opens the disk before the path is loaded, so that a wrong path costs nothing.
func (f *fromDiskFlag) open(ctx context.Context, p *progress.Line) (*storage.Session, error) {
	if f.path == "" {
		return nil, nil
	}
	s, err := storage.Open(ctx, storage.Target{Path: f.path}, func(share float64) {
		p.Status("filling a file: %s", unit.FormatPercent(share))
	})
	if err != nil {
		return nil, fmt.Errorf("--from-disk: %w", err)
	}
	return s, nil
}

// compare measures the disk as a copy would use it, and adds the answer to the document. The path
// is idle meanwhile.
func (f *fromDiskFlag) compare(ctx context.Context, s *storage.Session, reverse bool, v *loop.Verdict,
	d *report.DiagnoseDocument) error {
	if s == nil {
		return nil
	}
	stream := v.Stream()
	if stream == nil {
		d.Warnings = append(d.Warnings, "the throughput of the path was not measured: nothing to compare the disk with")
		return nil
	}
	spec := storage.Spec{Test: storage.SequentialRead, Way: storage.Dropped, Duration: copyDuration}
	if reverse {
		spec.Test = storage.SequentialWrite
	}
	r, err := s.Run(ctx, spec, nil)
	if err != nil {
		return fmt.Errorf("--from-disk: %w", overwriteHint(err, f.path))
	}
	d.Copy = storage.NewCopy(f.path, stream.ThroughputBitsPerSec, r)
	d.Findings = append(d.Findings, report.CleanFindings(disks.Findings(s.Subject, []storage.Result{*r}))...)
	return nil
}
