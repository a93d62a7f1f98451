package cli

import (
	"context"
	"fmt"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/plan"
	"github.com/linerate/linerate/internal/experiment/goal"
	"github.com/linerate/linerate/internal/experiment/loop"
	"github.com/linerate/linerate/internal/host"
)

// goalOfRole returns what a tune for a role improves unless the user says.
func goalOfRole(r plan.Role) goal.Goal {
	switch r {
	case plan.Latency:
		return goal.Latency
	case plan.Router, plan.Firewall, plan.Nameserver:
		return goal.Packets
	}
	return goal.Throughput
}

// askedByRole returns a function that makes what a tune tries from the path that it has measured:
// what `linerate plan` would set on this host in a role. The values are candidates, which the
// experiment has to prove.
func askedByRole(ctx context.Context, command string, role plan.Role) func(loop.Path) ([]loop.Asked, error) {
	return func(path loop.Path) ([]loop.Asked, error) {
		h, err := host.Root{}.Snapshot(ctx)
		if err != nil {
			return nil, err
		}
		given, err := plan.OfHost(h, path.NIC)
		if err != nil {
			return nil, err
		}
		given.Role = string(role)
		if path.RoundTrip > 0 {
			given.RoundTrip = path.RoundTrip
		}
		// A virtual NIC has no speed of its own.
		if given.Link == 0 {
			given.Link = unit.BitRate(path.BitsPerSecond)
		}
		situation, err := given.Resolve()
		if err != nil {
			return nil, fmt.Errorf("%s: plan for role %s: %w", command, role, err)
		}
		made, err := plan.Make(situation)
		if err != nil {
			return nil, fmt.Errorf("%s: plan for role %s: %w", command, role, err)
		}
		asked := []loop.Asked{} // not nil: a role that needs nothing here asks for nothing
		for i := range made.Lines {
			if l := &made.Lines[i]; l.Set {
				asked = append(asked, loop.Asked{Knob: knob.ID(l.Knob), Value: knob.Value(l.Value), Why: l.Reason})
			}
		}
		return asked, nil
	}
}
