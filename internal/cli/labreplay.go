package cli

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/base/progress"
	"github.com/linerate/linerate/internal/lab"
	"github.com/linerate/linerate/internal/lab/matrix"
	"github.com/linerate/linerate/internal/lab/scenario"
	"github.com/linerate/linerate/internal/report"
)

// labPlay plays one scenario of `lab run`, in a guest when it needs one and does not run in one
// already.
func (a *app) labPlay(ctx context.Context, s scenario.Scenario, f labRunFlags,
	p *progress.Line) (*report.LabDocument, error) {
	if s.On() == scenario.Guest && !f.inside {
		return a.labPlayInGuest(ctx, s, f.budget, p)
	}
	o := lab.Options{Measure: labMeasure, Budget: f.budget, Tune: labTune, Progress: func(e lab.Event) {
		p.Status("%s: %s %s", s.Name, e.Kind, strings.TrimPrefix(e.Text, progress.StatusMark))
	}}
	if s.Replay != nil {
		o.Tune = nil // a replay has flags of its own
	}
	r, err := lab.Run(ctx, s, o)
	if err != nil {
		return nil, err
	}
	return report.NewLab(a.envelope(""), matrix.Outcome(r)), nil
}

// labPlayInGuest boots the guest that a scenario needs and plays it there with the same command. A
// machine that cannot run guests skips the scenario.
func (a *app) labPlayInGuest(ctx context.Context, s scenario.Scenario, budget time.Duration,
	p *progress.Line) (*report.LabDocument, error) {
	p.Status("%s: booting a guest", s.Name)
	doc, reason, err := matrix.RunInGuest(ctx, s, budget, a.progressOf(p, s.Name))
	if err == nil && doc == nil {
		doc = report.NewLab(a.envelope(""), report.LabOutcome{Scenario: s.Name, Expected: s.Expect.Finding,
			Skipped: true, Reason: reason})
	}
	return doc, err
}

// progressOf returns a writer that shows the last line of a command's output.
func (a *app) progressOf(p *progress.Line, name string) io.Writer {
	return lineWriter(func(line string) { p.Status("%s: %s", name, strings.TrimPrefix(line, progress.StatusMark)) })
}

// lineWriter calls a function with the last line of each piece that is written.
type lineWriter func(line string)

func (w lineWriter) Write(b []byte) (int, error) {
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	w(lines[len(lines)-1])
	return len(b), nil
}
