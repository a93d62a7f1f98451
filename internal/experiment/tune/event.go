package tune

import (
	"fmt"
	"math"
	"time"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/change/knob"
)

// EventKind distinguishes events.
type EventKind string

// The kinds. A log prints the Text of all but EventSegment and EventEstimate; a terminal may redraw
// one line for those two.
const (
	EventPhase    EventKind = "phase"    // a phase or a candidate begins
	EventSegment  EventKind = "segment"  // one segment is measured
	EventEstimate EventKind = "estimate" // one pair is complete
	EventResolve  EventKind = "resolve"  // the pilot knows what this bench can resolve
	EventVerdict  EventKind = "verdict"  // a candidate, the kept set or one of its members is judged
	EventWarning  EventKind = "warning"
	EventState    EventKind = "state" // committed, held or undone
)

// Event is a step of progress. Fields that do not apply are zero.
type Event struct {
	Kind      EventKind
	Phase     Phase
	Text      string // one plain line without a full stop
	Knob      knob.ID
	Side      Side
	From, To  knob.Value
	Arm       string // A, B, or the level
	Pair      int    // complete or under way, from 1
	Pairs     int    // planned up to the next look
	Objective float64
	Discard   string
	Effect    Effect // so far; between looks it decides nothing
	Verdict   Verdict
	State     State
	Segments  int           // measured so far, discarded ones included
	Elapsed   time.Duration // since the start
}

// checkpoint hands over everything known so far.
func (s *session) checkpoint() {
	if s.cfg.Checkpoint != nil {
		s.out.PossiblyCommitted = s.askedToStay()
		s.cfg.Checkpoint(s.out)
	}
}

// emit runs in the goroutine of the experiment. A slow listener delays the next segment, which is
// better than events out of order, and is not part of any measurement.
func (s *session) emit(e Event) {
	if e.Kind == EventSegment || e.Kind == EventVerdict {
		s.checkpoint()
	}
	if s.progress == nil {
		return
	}
	e.Segments = len(s.out.Segments)
	e.Elapsed = s.cfg.Now().Sub(s.started)
	s.progress(e)
}

// warn also adds the warning to the outcome, because a reader of the document has not seen the
// progress.
func (s *session) warn(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	s.out.Warnings = append(s.out.Warnings, text)
	s.emit(Event{Kind: EventWarning, Text: text})
}

// String formats an effect for users: "×25.3 (×24.8…×25.9)" if it is large, "+3.2 % (+1.4 %…+5.1
// %)" otherwise, and in words if one side was nothing.
func (e Effect) String() string {
	switch {
	case e.Ratio == 0:
		return "effect not known"
	case stats.FromNothing(e.Ratio):
		return "something where there was nothing"
	case stats.ToNothing(e.Ratio):
		return "nothing is left"
	case stats.FromNothing(e.High) && e.Low > 1:
		return "×" + unit.FormatCount(e.Low) + " or more"
	case stats.ToNothing(e.Low) && e.High > 0 && e.High < 1:
		return "×" + unit.FormatCount(e.High) + " or less"
	}
	// An interval beside no change keeps as many decimals as show that: "worse: 0.0 %" would be none.
	decimals := 1
	for near := max(e.Low-1, 1-e.High); near > 0 && decimals < 4 && near < 0.005*math.Pow10(-decimals); decimals++ {
	}
	print := func(r float64) string {
		if e.Ratio >= 2 || e.Ratio <= 0.5 {
			return "×" + unit.FormatCount(r)
		}
		return unit.FormatDifference(r-1, decimals)
	}
	// An end that stands for nothing on one side is no number.
	known := func(end float64) bool { return end != 0 && !stats.FromNothing(end) && !stats.ToNothing(end) }
	switch low, high := known(e.Low), known(e.High); {
	case low && high:
		return fmt.Sprintf("%s (%s…%s)", print(e.Ratio), print(e.Low), print(e.High))
	case low && stats.FromNothing(e.High):
		return fmt.Sprintf("%s (at least %s)", print(e.Ratio), print(e.Low))
	case high && stats.ToNothing(e.Low):
		return fmt.Sprintf("%s (at most %s)", print(e.Ratio), print(e.High))
	}
	return print(e.Ratio)
}
