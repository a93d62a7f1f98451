package policy

import (
	"fmt"
	"strings"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/change/knob"
)

// Meaning says in plain words what the policy allows, a sentence each.
func (p Policy) Meaning() []string {
	if p.KillSwitch {
		return []string{"The kill switch is on: the fleet can neither measure nor change anything on this host."}
	}
	return append(p.Tests.meaning(), p.Changes.meaning()...)
}

func (t Tests) meaning() []string {
	if t.MaxShareRatio == 0 || t.MaxSecondsPerHour == 0 {
		return []string{"The fleet cannot run load tests on this host."}
	}
	link := "the rate of the link"
	if t.LinkRate > 0 {
		link = unit.BitRate(t.LinkRate).String()
	}
	text := fmt.Sprintf("The fleet can run load tests for %s an hour, with at most %.3g %% of %s%s.",
		unit.Counted(t.MaxSecondsPerHour, "second"), 100*t.MaxShareRatio, link, between(t.Hours))
	if len(t.Peers) > 0 {
		return []string{text, "The other end of a test must be one of " + strings.Join(t.Peers, ", ") + "."}
	}
	return []string{text, "The other end of a test can be each host of the fleet."}
}

func (c Changes) meaning() []string {
	if len(c.Allow) == 0 {
		return []string{"The fleet cannot change any setting of this host."}
	}
	text := fmt.Sprintf("The fleet can change %s%s, up to class %s (%s)%s.", join(c.Allow), except(c.Deny), c.MaxClass,
		classes[c.MaxClass], between(c.Hours))
	signed := fmt.Sprintf("Each change needs %s", unit.Counted(c.Needs(knob.DisturbsNewSockets), "signature"))
	if n := c.Needs(knob.DisturbsBriefLoss); c.MaxClass > knob.DisturbsNewSockets && n > c.Needs(knob.DisturbsNewSockets) {
		signed += fmt.Sprintf(", and %s of different people from class d2 on", unit.Counted(n, "signature"))
	}
	last := "A restart ends each change: none can be made permanent."
	if c.Persist {
		last = fmt.Sprintf("A confirmed change can be made permanent with %s.",
			unit.Counted(c.NeedsPersisting(), "signature"))
	}
	return []string{text, signed + ". An order to undo needs one, at any hour.",
		fmt.Sprintf("A change that is not confirmed is taken back within %v, without the network.", c.MaxDeadline), last}
}

var classes = [...]string{"disturbs nothing", "affects new connections only", "loses packets for a moment",
	"takes the link down", "reloads a driver or restarts the host"}

func between(h Hours) string {
	if h.From == h.To {
		return ", at any hour"
	}
	return fmt.Sprintf(", from %02d:%02d to %02d:%02d local time", h.From/60, h.From%60, h.To/60, h.To%60)
}

func except(ids []knob.ID) string {
	if len(ids) == 0 {
		return ""
	}
	return " except " + join(ids)
}

func join(ids []knob.ID) string {
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = string(id)
	}
	return strings.Join(words, ", ")
}
