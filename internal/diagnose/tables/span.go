package tables

import (
	"fmt"
	"strconv"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
)

const (
	// nearlyFull is how full a table may be before it is worth a word: what is left is used up by
	// the next burst, not by the next year.
	nearlyFull = 0.90
	// full is a table that has no room for practical purposes. Entries come and go while it is
	// read, so that one which refuses is seen a little below its limit.
	full = 0.95
)

// lasting tells that something goes on in the span: at least three times, and at least so often a
// second. One or two are an accident that a watch of three seconds happened to see.
//
// What was counted since boot is never lasting: all of it may have happened in one bad minute of
// last year.
func lasting(s *evidence.Span, n, perSecond float64) bool {
	return !s.SinceBoot && n >= 3 && s.PerSecond(n) >= perSecond
}

// part is a/b, 0 where b is not known.
func part(a, b float64) float64 {
	if b <= 0 {
		return 0
	}
	return a / b
}

// counted is a counter as evidence, under the name that it has in package host.
func counted(s *evidence.Span, name, counter, unit string) evidence.Evidence {
	return evidence.Evidence{Name: name, Value: s.Count(counter), Unit: unit, Source: s.Source(counter)}
}

// multiples are levels of a limit: so many times what it is now.
func multiples(now float64, times ...float64) []knob.Value {
	var levels []knob.Value
	for _, t := range times {
		if now > 0 {
			levels = append(levels, knob.Value(strconv.FormatInt(int64(now*t), 10)))
		}
	}
	return levels
}

// perSecond is a number of the span as a rate in a sentence: " (12 a second)", or nothing where it
// would say nothing.
func perSecond(s *evidence.Span, n float64) string {
	if s.SinceBoot || s.Seconds <= 0 {
		return ""
	}
	return fmt.Sprintf(" (%s a second)", evidence.Count(s.PerSecond(n)))
}
