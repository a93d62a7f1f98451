package service

import (
	"fmt"

	"github.com/linerate/linerate/internal/traffic/admission"
)

// Limited is a log of at most perMinute sentences in a minute, see [admission.LimitLines]. A server
// has one for those it serves and one for those it turns away: anybody can be turned away any
// number of times, which must not silence the others.
func Limited(log func(string), perMinute int, who string) func(format string, args ...any) {
	limited := admission.LimitLines(log, perMinute, who)
	return func(format string, args ...any) { limited(fmt.Sprintf(format, args...)) }
}
