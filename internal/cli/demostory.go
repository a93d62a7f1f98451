package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/linerate/linerate/internal/base/progress"
	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/lab"
	"github.com/linerate/linerate/internal/lab/scenario"
	"github.com/linerate/linerate/internal/report"
)

// demoScenario is the write-up of 2005 in small: a fast, long path and a receiver with the buffers
// of its day.
const demoScenario = "receive-window"

// demoTune returns the further flags of the demo's tune. Its segments are shorter than the default
// for such a path: the effects are large, and people watch. It tries every remedy, so that they
// also see what becomes of one that does not help.
func demoTune() []string {
	return []string{"--duration", "700ms", "--warm-up", "400ms", "--budget", "2m30s", "--thorough"}
}

// teller prints the demo as it runs. It takes the events of package lab one at a time, prints each
// result as a line, and shows the present step on the status line.
//
// An output that refuses a line (a closed pipe) does not stop the run, which has a world to clean
// up; err returns the error at the end.
type teller struct {
	out      io.Writer
	progress *progress.Line
	scenario scenario.Scenario
	verdict  func(*report.DiagnoseDocument) error // prints the document on out

	broken error
}

// err returns the errors of the output, if any.
func (d *teller) err() error { return d.broken }

// say clears the status line and prints one line.
func (d *teller) say(format string, args ...any) {
	d.progress.Done()
	if _, err := fmt.Fprintf(d.out, format+"\n", args...); err != nil {
		d.broken = errors.Join(d.broken, err)
	}
}

// begin prints which world is made, and that nothing outside it changes.
func (d *teller) begin() {
	link := d.scenario.World.Link.ToFar
	d.say("Two hosts in a private world on this machine, joined by an emulated link: %s, round trip %s.",
		unit.BitRate(link.RateBitsPerSec), unit.FormatSeconds(2*link.DelaySeconds))
	d.say("Nothing outside that world is touched.\n")
	d.progress.Status("making the world")
}

// event shows one event of the run; it is the Progress of lab.Options.
func (d *teller) event(e lab.Event) {
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

// diagnosis prints the first finding in full: the limit, and why. For a document that it cannot
// read it prints the sentence of the event instead.
func (d *teller) diagnosis(e lab.Event) {
	var doc report.DiagnoseDocument
	if err := json.Unmarshal(e.Document, &doc); err != nil || len(doc.Findings) == 0 {
		d.say("diagnosis  %s", e.Text)
		return
	}
	doc.Findings = doc.Findings[:1]
	d.progress.Done()
	d.broken = errors.Join(d.broken, d.verdict(&doc))
	d.say("\ntrying the remedies, one at a time:")
}

// step passes on a line of the command inside the world. A line that a terminal would rewrite goes
// to the status line.
func (d *teller) step(text string) {
	if status, ok := strings.CutPrefix(text, progress.StatusMark); ok {
		d.progress.Status("  %s", status)
		return
	}
	d.say("  %s", text)
}

// end prints the page and the proof.
func (d *teller) end(r *lab.Result, page string) {
	d.say("\nundone on both hosts; %d settings compared with the original, %d differ", r.Proof.Compared,
		len(r.Proof.Left))
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
