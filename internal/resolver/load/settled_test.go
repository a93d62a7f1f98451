package load

import (
	"errors"
	"net"
	"time"

	"github.com/linerate/linerate/internal/resolver/message"
)

// expected is how many messages of a kind must arrive.
type expected struct {
	kind  message.Kind
	total uint64
}

// settled runs a load with longer and longer timeouts, until it loses only the queries of the
// faults and receives each wrong message while its query waits: on a busy machine a short time
// passes before an answer is sent or read, or a connection is there. A message that comes later is
// wrong in another way, as it has an unknown id. The last timeout is a minute, and its result
// counts whatever it is.
func settled(lost uint64, wrong expected, run func(timeout time.Duration) (*Result, error)) (r *Result, err error) {
	for timeout := time.Second / 4; ; timeout *= 4 {
		r, err = run(min(timeout, MaxTimeout))
		var slow net.Error
		late := errors.As(err, &slow) && slow.Timeout() ||
			err == nil && (r.Lost > lost || r.kind(wrong.kind) < wrong.total)
		if !late || timeout > MaxTimeout {
			return r, err
		}
	}
}
