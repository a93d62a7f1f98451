package admission

import (
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

// How many sentences in a minute a server tells one by one. Some hundred bytes each, a port scan or
// a flood of forged sources then writes no more than some ten megabytes into a log in a day.
const (
	StrangerLines = 20 // of those that are turned away
	ClientLines   = 60 // of those that were served, and of UDP sources, which prove nothing
)

// LimitLines gives a log that passes perMinute sentences on in a minute and counts the others. How
// many those were is told before the first sentence of a later minute, so a log that falls silent
// keeps the last number to itself. who begins that sentence. What would break a line or command a
// terminal is replaced, whoever it came from. The result may be called from any goroutine if log
// may; a nil log is silence.
func LimitLines(log func(string), perMinute int, who string) func(string) {
	if log == nil {
		return func(string) {}
	}
	var (
		mu      sync.Mutex
		minute  time.Time // when the running one began
		n, more int       // sentences passed on in it, and left out
	)
	// The lock is not held while log runs: a slow log must hold up nobody who only has to be
	// counted.
	count := func() (pass bool, leftOut int) {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); now.Sub(minute) >= time.Minute {
			leftOut, minute, n, more = more, now, 0, 0
		}
		if n >= perMinute {
			more++
			return false, leftOut
		}
		n++
		return true, leftOut
	}
	return func(sentence string) {
		pass, leftOut := count()
		if leftOut > 0 {
			log(fmt.Sprintf("%s: %d more sentences like the last ones were left out within a minute", who, leftOut))
		}
		if pass {
			log(OneLine(sentence))
		}
	}
}

// OneLine replaces what would break a line or command a terminal: control characters, those of C1
// as well, separators of lines, and bytes that are no UTF-8.
func OneLine(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' ' // errors that were joined are lines
		case unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r == utf8.RuneError:
			return '.'
		}
		return r
	}, s)
}
