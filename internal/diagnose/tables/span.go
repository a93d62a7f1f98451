package tables

import (
	"fmt"
	"strconv"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
)

const (
	// nearlyFull is how full a table may be before it is worth a notice: the next burst takes the
	// rest.
	nearlyFull = 0.90
	// full is the fill of a table without practical room. Entries change while it is read, so a
	// table that refuses entries may appear slightly below its limit.
	full = 0.95
)

// lasting reports whether something keeps happening in the span: at least three times, and at least
// perSecond times a second. One or two may be an accident in a watch of three seconds.
//
// Counts since boot are never lasting: all of them may come from one bad minute of last year.
func lasting(s *evidence.Span, n, perSecond float64) bool {
	return !s.SinceBoot && n >= 3 && s.PerSecond(n) >= perSecond
}

// part returns a/b; 0 if b is unknown.
func part(a, b float64) float64 {
	if b <= 0 {
		return 0
	}
	return a / b
}

// counted returns a counter as evidence, under its name in package host.
func counted(s *evidence.Span, name, counter, unit string) evidence.Evidence {
	return evidence.Evidence{Name: name, Value: s.Count(counter), Unit: unit, Source: s.Source(counter)}
}

// multiples returns levels of a limit: the given multiples of its present value.
func multiples(now float64, times ...float64) []knob.Value {
	var levels []knob.Value
	for _, t := range times {
		if now > 0 {
			levels = append(levels, knob.Value(strconv.FormatInt(int64(now*t), 10)))
		}
	}
	return levels
}

// perSecond returns a number of the span as a rate for use in a sentence, " (12 a second)", or
// nothing if the rate is unknown.
func perSecond(s *evidence.Span, n float64) string {
	if s.SinceBoot || s.Seconds <= 0 {
		return ""
	}
	return fmt.Sprintf(" (%s a second)", evidence.Count(s.PerSecond(n)))
}
