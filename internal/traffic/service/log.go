package service

import (
	"fmt"

	"github.com/linerate/linerate/internal/traffic/admission"
)

// Limited returns a log of at most perMinute sentences per minute, see [admission.LimitLines]. A
// server has one for the clients that it serves and one for those that it refuses: any host can be
// refused any number of times, which must not silence the first log.
func Limited(log func(string), perMinute int, who string) func(format string, args ...any) {
	limited := admission.LimitLines(log, perMinute, who)
	return func(format string, args ...any) { limited(fmt.Sprintf(format, args...)) }
}
