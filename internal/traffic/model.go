package traffic

import (
	"time"

	"github.com/linerate/linerate/internal/traffic/channel"
	"github.com/linerate/linerate/internal/traffic/engine"
	"github.com/linerate/linerate/internal/traffic/plan"
)

// What a test can be asked for is in package plan; these are its names for everybody who runs one.
type (
	// Spec is one test to run.
	Spec = plan.Spec
	// Test names what is measured.
	Test = plan.Test
	// Direction is seen from the near side: up is near to far.
	Direction = plan.Direction
	// Limits are what a far side grants to anybody who may run tests at all.
	Limits = plan.Limits
)

// The tests.
const (
	Stream = plan.Stream
	RR     = plan.RR
	CRR    = plan.CRR
	UDP    = plan.UDP
	Ping   = plan.Ping
	MTU    = plan.MTU
	Load   = plan.Load
)

// The directions.
const (
	Up    = plan.Up
	Down  = plan.Down
	Bidir = plan.Bidir
)

// Bounds of a Spec that hold on every host.
const (
	MaxStreams     = plan.MaxStreams
	MinPacketBytes = plan.MinPacketBytes
	MaxPacketBytes = plan.MaxPacketBytes
)

// longest is how long a test may take from start to result when nothing is wrong.
func longest(s Spec, t channel.Timing) time.Duration {
	warm := s.WarmUp
	if warm < 0 {
		warm = s.SteadyBound()
	}
	return 2*t.Setup + warm + s.Duration + t.Slack + time.Duration(2*s.Streams)*crowding
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
