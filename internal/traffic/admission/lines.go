package admission

import (
	"fmt"
	"sync"
	"time"

	"github.com/linerate/linerate/internal/base/visible"
)

// How many sentences per minute a server logs. With some hundred bytes each, a port scan or a flood
// of forged sources then writes no more than some ten megabytes into a log per day.
const (
	StrangerLines = 20 // about refused clients
	ClientLines   = 60 // about served clients, and about UDP sources, which prove nothing
)

// LimitLines returns a log that passes on perMinute sentences per minute and counts the rest.
// Before the first sentence of a later minute it logs their number, so a log that falls silent does
// not report the last number. who begins that sentence. LimitLines replaces characters that would
// break a line or control a terminal, from every source. Any goroutine may call the result if any
// may call log; a nil log discards everything.
func LimitLines(log func(string), perMinute int, who string) func(string) {
	if log == nil {
		return func(string) {}
	}
	var (
		mu      sync.Mutex
		minute  time.Time // when the current minute began
		n, more int       // sentences passed on in it, and left out
	)
	// The lock is not held while log runs: a slow log must not delay goroutines that only count.
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

// OneLine replaces what would break a line or control a terminal.
func OneLine(s string) string { return visible.Line(s) }
