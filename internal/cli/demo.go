package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/lab"
	"github.com/linerate/linerate/internal/lab/scenario"
	"github.com/linerate/linerate/internal/progress"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/text"
	"github.com/linerate/linerate/internal/unit"
)

// demoScenario is the write-up of 2005 in small: a fast, long path and a receiver with the buffers of its day.
const demoScenario = "receive-window"

// The demo's segments are shorter than those a tune of such a path takes by itself: its effects are large, and people watch. They shall
// also see what becomes of a remedy that does not help, so it tries all of them.
var demoTune = []string{"--duration", "700ms", "--warm-up", "400ms", "--budget", "2m30s", "--thorough"}

// The demo plays a scenario of the lab with the ordinary commands inside the world; nothing in it is staged, which is
// why it takes two minutes.
func (a *app) demoCommand() *cobra.Command {
	var page string
	c := &cobra.Command{
		Use:   "demo",
		Short: "The whole loop in a private world on this machine: measure, diagnose, tune, prove, undo",
		Long: `Make two hosts in private namespaces, joined by an emulated 1 Gb/s link with a round trip of 20 ms, give
the receiver the buffers of 2005, and let linerate find and repair it: it measures, names the limit, tries the
remedies one by one, keeps what is proven, confirms the total, undoes everything and proves that every value is back.

It takes about two minutes and touches nothing outside that world. Root is not needed where the kernel lets ordinary
users make namespaces. --json prints the linerate.tune/1 document of the run.`,
		Example: "  linerate demo\n  linerate demo --json | jq .final",
		RunE: func(cmd *cobra.Command, _ []string) error {
			scenario, err := scenario.Load(demoScenario)
			if err != nil {
				return err
			}
			p, err := a.newProgress()
			if err != nil {
				return err
			}
			defer p.Done()
			if page, err = filepath.Abs(page); err != nil {
				return err
			}
			// The page is written by the tune inside the world, a minute from now; that it can be is found out at once.
			probe, err := newPage(page)
			if err != nil {
				return err
			}
			probe.discard()
			story := &demoStory{out: a.out, progress: p, scenario: scenario, style: text.Style{Colour: a.colour(a.out)}}
			if a.json {
				story.out = io.Discard
			}
			story.begin()
			result, err := lab.Run(cmd.Context(), scenario, lab.Options{
				Progress: story.event, Verdict: true, HTML: page, Tune: demoTune,
			})
			p.Done()
			if err != nil {
				return err
			}
			return a.demoResult(story, result, page)
		},
	}
	c.Flags().StringVar(&page, "html", "linerate-demo.html", "where to write the page with the plots")
	return c
}

// demoResult prints the end of the story, or the document, and fails when the loop did not close.
//
// A document that was measured is printed also when the loop did not close: the figures are what tells why.
func (a *app) demoResult(story *demoStory, r *lab.Result, page string) error {
	if a.json && len(r.Tune) > 0 {
		if _, err := fmt.Fprintf(a.out, "%s\n", strings.TrimSpace(string(r.Tune))); err != nil {
			return err
		}
	} else if len(r.Tune) > 0 {
		var doc report.TuneDocument
		if err := json.Unmarshal(r.Tune, &doc); err != nil {
			return fmt.Errorf("read the tune document: %w", err)
		}
		if err := text.Tune(a.out, &doc, story.style); err != nil {
			return err
		}
		story.end(r, page)
	}
	if !r.Pass {
		return statusError{status: exitFailed, message: "demo: " + r.Reason}
	}
	return story.broken
}

// demoStory tells the run as it goes: what is decided as lines, what is under way on the status line.
//
// Standard output that refuses a line (a closed pipe) does not stop the run, which has a world to clean up; the error
// is told at the end.
type demoStory struct {
	out      io.Writer
	progress *progress.Line
	scenario scenario.Scenario
	style    text.Style
	broken   error // what standard output refused
}

// say writes one line of the story, after the status line is out of the way.
func (d *demoStory) say(format string, args ...any) {
	d.progress.Done()
	if _, err := fmt.Fprintf(d.out, format+"\n", args...); err != nil {
		d.broken = errors.Join(d.broken, err)
	}
}

func (d *demoStory) begin() {
	link := d.scenario.World.Link.ToFar
	d.say("Two hosts in a private world on this machine, joined by an emulated link: %s, round trip %s.",
		unit.BitRate(link.RateBitsPerSec), unit.FormatSeconds(2*link.DelaySeconds))
	d.say("Nothing outside that world is touched.\n")
	d.progress.Status("making the world")
}

func (d *demoStory) event(e lab.Event) {
	switch e.Kind {
	case lab.EventWorld:
		d.progress.Status("measuring the healthy world")
	case lab.EventHealthy:
		d.say("healthy    %s — what this path carries when nothing is wrong", unit.BitRate(e.BitsPerSecond))
	case lab.EventFaults:
		for host, settings := range d.scenario.Faults {
			for _, s := range settings {
				d.say("the fault  %s gets the buffers of the write-ups: %s = %s", host, s.Knob, s.Value)
			}
		}
		d.progress.Status("measuring with the fault")
	case lab.EventBefore:
		d.say("before     %s\n", unit.BitRate(e.BitsPerSecond))
		d.progress.Status("asking what limits it")
	case lab.EventDiagnose:
		d.diagnosis(e)
	case lab.EventStep:
		d.step(e.Text)
	case lab.EventAfter:
		d.say("\nafter      %s", unit.BitRate(e.BitsPerSecond))
	case lab.EventUndo:
		d.progress.Status("comparing every setting with the original")
	case lab.EventProof:
	}
}

// diagnosis shows the first finding in full: the limit, and why.
//
// Without a document that can be read, the sentence of the event stands in.
func (d *demoStory) diagnosis(e lab.Event) {
	var doc report.DiagnoseDocument
	if err := json.Unmarshal(e.Document, &doc); err != nil || len(doc.Findings) == 0 {
		d.say("diagnosis  %s", e.Text)
		return
	}
	doc.Findings = doc.Findings[:1]
	d.progress.Done()
	d.broken = errors.Join(d.broken, text.Diagnose(d.out, &doc, d.style, false))
	d.say("\ntrying the remedies, one at a time:")
}

// step passes on what the command inside the world says: what a terminal would rewrite goes to the status line.
func (d *demoStory) step(text string) {
	if status, ok := strings.CutPrefix(text, progress.StatusMark); ok {
		d.progress.Status("  %s", status)
		return
	}
	d.say("  %s", text)
}

// end shows the page and the proof.
func (d *demoStory) end(r *lab.Result, page string) {
	d.say("\nundone on both hosts; %d settings compared with the original, %d differ", r.Proof.Compared, len(r.Proof.Left))
	for _, v := range r.Proof.Turned {
		back := "back"
		if v.AfterUndo != v.Before {
			back = "NOT BACK: " + v.AfterUndo
		}
		d.say("  %-4s %s: %s → %s → %s  (%s)", v.Host, v.Knob, v.Before, v.Tuned, v.AfterUndo, back)
	}
	d.say("\n%s before, %s after, %s healthy; the page with the plots: %s",
		unit.BitRate(r.Before), unit.BitRate(r.After), unit.BitRate(r.Healthy), page)
}
