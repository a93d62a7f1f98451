package story

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

// Scenario is the write-up of 2005 in small: a fast, long path and a receiver with the buffers of
// its day.
const Scenario = "receive-window"

// Tune returns the further flags of the demo's tune. Its segments are shorter than those a tune of
// such a path takes by itself: its effects are large, and people watch. They shall also see what
// becomes of a remedy that does not help, so it tries all of them.
func Tune() []string {
	return []string{"--duration", "700ms", "--warm-up", "400ms", "--budget", "2m30s", "--thorough"}
}

// Teller tells the run as it goes: what is decided as lines, what is under way on the status line.
//
// An output that refuses a line (a closed pipe) does not stop the run, which has a world to clean
// up; Err has the error at the end.
type Teller struct {
	Out      io.Writer
	Progress *progress.Line
	Scenario scenario.Scenario
	Verdict  func(*report.DiagnoseDocument) error // prints the document on Out

	broken error // what the output refused
}

// Err is what the output refused; nil: nothing.
func (d *Teller) Err() error { return d.broken }

// say writes one line of the story, after the status line is out of the way.
func (d *Teller) say(format string, args ...any) {
	d.Progress.Done()
	if _, err := fmt.Fprintf(d.Out, format+"\n", args...); err != nil {
		d.broken = errors.Join(d.broken, err)
	}
}

// Begin says what world is made, and that nothing else is touched.
func (d *Teller) Begin() {
	link := d.Scenario.World.Link.ToFar
	d.say("Two hosts in a private world on this machine, joined by an emulated link: %s, round trip %s.",
		unit.BitRate(link.RateBitsPerSec), unit.FormatSeconds(2*link.DelaySeconds))
	d.say("Nothing outside that world is touched.\n")
	d.Progress.Status("making the world")
}

// Event tells one event of the run; it is for Options.Progress of package lab.
func (d *Teller) Event(e lab.Event) {
	switch e.Kind {
	case lab.EventWorld:
		d.Progress.Status("measuring the healthy world")
	case lab.EventHealthy:
		d.say("healthy    %s — what this path carries when nothing is wrong", unit.BitRate(e.BitsPerSecond))
	case lab.EventFaults:
		for host, settings := range d.Scenario.Faults {
			for _, s := range settings {
				d.say("the fault  %s gets the buffers of the write-ups: %s = %s", host, s.Knob, s.Value)
			}
		}
		d.Progress.Status("measuring with the fault")
	case lab.EventBefore:
		d.say("before     %s\n", unit.BitRate(e.BitsPerSecond))
		d.Progress.Status("asking what limits it")
	case lab.EventDiagnose:
		d.diagnosis(e)
	case lab.EventStep:
		d.step(e.Text)
	case lab.EventAfter:
		d.say("\nafter      %s", unit.BitRate(e.BitsPerSecond))
	case lab.EventUndo:
		d.Progress.Status("comparing every setting with the original")
	case lab.EventProof:
	}
}

// diagnosis shows the first finding in full: the limit, and why.
//
// Without a document that can be read, the sentence of the event stands in.
func (d *Teller) diagnosis(e lab.Event) {
	var doc report.DiagnoseDocument
	if err := json.Unmarshal(e.Document, &doc); err != nil || len(doc.Findings) == 0 {
		d.say("diagnosis  %s", e.Text)
		return
	}
	doc.Findings = doc.Findings[:1]
	d.Progress.Done()
	d.broken = errors.Join(d.broken, d.Verdict(&doc))
	d.say("\ntrying the remedies, one at a time:")
}

// step passes on what the command inside the world says: what a terminal would rewrite goes to the
// status line.
func (d *Teller) step(text string) {
	if status, ok := strings.CutPrefix(text, progress.StatusMark); ok {
		d.Progress.Status("  %s", status)
		return
	}
	d.say("  %s", text)
}

// End shows the page and the proof.
func (d *Teller) End(r *lab.Result, page string) {
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
