package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/change/hazard"
	"github.com/linerate/linerate/internal/change/knob/live"
	"github.com/linerate/linerate/internal/experiment/loop"
	"github.com/linerate/linerate/internal/experiment/tune"
	drawn "github.com/linerate/linerate/internal/report/page"
	"github.com/linerate/linerate/internal/report/text"
	"github.com/linerate/linerate/internal/storage"
)

// diskScheme begins the target of a tune that is a disk of this host.
const diskScheme = "disk:"

// diskGoal returns the goal of a disk from the flags, and refuses flags that are about a network.
func (f tuneFlags) diskGoal(cmd *cobra.Command) (loop.DiskGoal, error) {
	for _, name := range []string{"key", "key-file", "connect-timeout", "parallel", "reverse", "objective", "warm-up",
		"profile", "advice", "role"} {
		if flag := cmd.Flags().Lookup(name); flag != nil && flag.Changed {
			return "", usagef("--%s is for a host: disk:PATH has no such setting", name)
		}
	}
	g := loop.DiskGoal(cmp.Or(f.goal, string(loop.DiskThroughput)))
	if !slices.Contains(loop.DiskGoals(), g) {
		return "", usagef("--goal %q: of a disk it is one of %s", f.goal, words(loop.DiskGoals()))
	}
	return g, nil
}

// tuneDisk runs an experiment on a disk of this host.
func (a *app) tuneDisk(cmd *cobra.Command, path string, f tuneFlags) error {
	g, err := f.diskGoal(cmd)
	if err != nil {
		return err
	}
	o, err := f.bounds()
	if err != nil {
		return err
	}
	p, err := a.newProgress()
	if err != nil {
		return err
	}
	defer p.Done()
	page, err := newPage("html", f.html)
	if err != nil {
		return err
	}
	defer page.discard()
	ctx := cmd.Context()
	j, err := a.openForTune(ctx, cmd.Name())
	if err != nil {
		return err
	}
	defer j.Close()
	record, err := a.recordRun(diskScheme+path, string(g))
	if err != nil {
		return err
	}
	record.unit = g.Unit()
	session, err := storage.Open(ctx, storage.Target{Path: path}, func(share float64) {
		p.Status("filling a file: %s", unit.FormatPercent(share))
	})
	if err != nil {
		return fmt.Errorf("tune: %w", err)
	}
	defer session.Close() //nolint:errcheck // closed below; this one is for early ends
	o.Step = func(step string) { p.Status("%s", step) }
	o.Planned = func(plan *loop.Plan) { showPlan(p, plan) }
	o.Progress = tuneProgress(p, func(x float64) string {
		if g == loop.DiskThroughput {
			return unit.Bytes(x).String() + "/s"
		}
		return unit.FormatCount(x) + " operations/s"
	})
	near := loop.Near{Journal: j, Backend: hazard.Backend{Backend: live.New()}, For: leaseFor(f.budget),
		Run: record.recorder.ID}
	record.began = time.Now()
	if !o.DryRun {
		o.Checkpoint = record.checkpoint
	}
	t, err := loop.TuneDisk(ctx, near, session, session.Subject, g, o)
	// The file ends before the document is printed. If storage holds it, the outcome says so already.
	_ = session.Close()
	p.Done()
	switch {
	case err != nil && t != nil && t.Outcome != nil:
		record.finish(t, err)
		return tuneError{err, t.Outcome.State != tune.StateUndone}
	case err != nil:
		return err
	case o.DryRun:
		doc := record.document(t, "")
		doc.Run = ""
		return a.print(doc, func(s text.Style) error { return text.TunePlan(a.out, doc, doc.Plan, s) })
	}
	doc := record.finish(t, nil)
	if err := a.print(doc, func(s text.Style) error { return text.Tune(a.out, doc, s) }); err != nil {
		return err
	}
	if page != nil {
		if err := page.write(func(w io.Writer) error { return drawn.Tune(w, doc) }); err != nil {
			return err
		}
	}
	return tuneStatus(t.Outcome)
}
