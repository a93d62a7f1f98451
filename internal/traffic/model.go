package traffic

import (
	"time"

	"github.com/linerate/linerate/internal/traffic/engine"
)

// Silence is how much longer than else the control channel of a test may be silent because of what
// the test itself sends: datagrams as fast as they go leave nothing of a path for anybody else, and
// TCP waits twice as long before each next retransmission, so that what was lost in a flood may
// come as long after its end as the flood was long. Two minutes at most, because a peer that is
// gone is noticed as much later. Zero for all that makes room for others by itself. The bounds of
// package traffic's own have it; whoever owns the channel must grant it there.
func Silence(s Spec) time.Duration {
	if s.Test != UDP {
		return 0
	}
	return 2 * min(s.Duration+warmUpOf(s), time.Minute)
}

// warmUpOf is how long the warm-up may last.
func warmUpOf(s Spec) time.Duration {
	if s.WarmUp < 0 {
		return s.SteadyBound()
	}
	return s.WarmUp
}

// longest is how long a test may take from start to result when nothing is wrong.
func longest(s Spec, t timing) time.Duration {
	return 2*t.Setup + warmUpOf(s) + s.Duration + t.Slack + Silence(s) + time.Duration(2*s.Streams)*crowding
}

// roleOf tells what one side does on connection index.
func roleOf(s Spec, near bool, index int) engine.Role {
	switch {
	case !s.Bulk() && near:
		return engine.Requester
	case !s.Bulk():
		return engine.Responder
	case s.NearSends(index) == near:
		return engine.Sender
	}
	return engine.Receiver
}
