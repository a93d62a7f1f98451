package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/lab"
	"github.com/linerate/linerate/internal/lab/ground"
	"github.com/linerate/linerate/internal/lab/scenario"
	"github.com/linerate/linerate/internal/report"
)

// labPlay plays one scenario of `lab run`, in a guest when it needs one and this is none.
func (a *app) labPlay(ctx context.Context, s scenario.Scenario, f labRunFlags, p *progress) (*report.LabDocument, error) {
	if s.On() == scenario.Guest && !f.inside {
		return a.labPlayInGuest(ctx, s, f.budget, p)
	}
	o := lab.Options{Measure: labMeasure, Budget: f.budget, Tune: labTune, Progress: func(e lab.Event) {
		p.Status("%s: %s %s", s.Name, e.Kind, strings.TrimPrefix(e.Text, statusMark))
	}}
	if s.Replay != nil {
		o.Tune = nil // a replay has flags of its own
	}
	r, err := lab.Run(ctx, s, o)
	if err != nil {
		return nil, err
	}
	return report.NewLab(a.envelope(""), labOutcome(r)), nil
}

// labPlayInGuest boots the guest that a scenario needs and plays it there with the same command. A machine that cannot have guests skips it.
func (a *app) labPlayInGuest(ctx context.Context, s scenario.Scenario, budget time.Duration, p *progress) (*report.LabDocument, error) {
	p.Status("%s: boots a guest", s.Name)
	// Its own time goes by many times slower than ours.
	inner, cancel := context.WithTimeout(ctx, 10*budget+2*guestPatience)
	defer cancel()
	g, err := ground.Boot(inner, groundOf(s.Guest))
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return report.NewLab(a.envelope(""), report.LabOutcome{Scenario: s.Name, Expected: s.Expect.Finding, Skipped: true, Reason: err.Error()}), nil
	}
	defer g.Close()
	var out, said bytes.Buffer
	status, err := g.Linerate(inner, &out, io.MultiWriter(&said, a.progressOf(p, s.Name)), "lab", "run", s.Name, "--inside", "--json", "--progress", "all", "--budget", budget.String())
	if err != nil {
		return nil, err
	}
	doc := &report.LabDocument{}
	if err := json.Unmarshal(out.Bytes(), doc); err != nil {
		return nil, fmt.Errorf("linerate in the guest: exit status %d: %w: %s", status, err, strings.TrimSpace(said.String()))
	}
	return doc, nil
}

// progressOf shows the last line that a command says.
func (a *app) progressOf(p *progress, name string) io.Writer {
	return lineWriter(func(line string) { p.Status("%s: %s", name, strings.TrimPrefix(line, statusMark)) })
}

// lineWriter calls a function with the last line of each piece that is written.
type lineWriter func(line string)

func (w lineWriter) Write(b []byte) (int, error) {
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	w(lines[len(lines)-1])
	return len(b), nil
}

// labReplay is what a played replay proved, and the unit of its figures; nothing for other scenarios.
func labReplay(r *lab.Result) (*report.LabReplay, string) {
	w := r.Scenario.Replay
	if w == nil {
		return nil, ""
	}
	d := &report.LabReplay{Row: w.Row, Source: w.Source, Before: w.Before, After: w.After, Needed: w.Ratio, Trials: []report.LabReplayTrial{}}
	if g := r.Gain; g != nil {
		d.Confirmed = &report.LabGain{Pairs: g.Pairs, Ratio: g.Ratio, Low: g.Low, High: g.High, Confidence: g.Confidence}
	}
	for _, t := range r.Tried {
		d.Trials = append(d.Trials, report.LabReplayTrial{Change: t.Side + " " + t.Knob, From: t.From, To: t.To, Verdict: t.Verdict, Reason: t.Reason})
	}
	return d, w.Unit
}
