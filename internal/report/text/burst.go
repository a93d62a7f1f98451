package text

import (
	"fmt"
	"strings"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/traffic"
)

// burstText is the result of a burst test in a few words.
func burstText(b traffic.BurstResult) string {
	switch {
	case b.LostAtPackets == 0:
		return fmt.Sprintf("%d back to back, none lost", b.HeldPackets)
	case b.Place == "":
		return fmt.Sprintf("%d back to back", b.HeldPackets)
	}
	return fmt.Sprintf("%d back to back, then lost: %s", b.HeldPackets, b.Place)
}

// describeBurst shows the longest train that arrived whole, where the first loss was, and what the
// queues on the way should hold.
func describeBurst(add describer, b traffic.BurstResult) {
	switch {
	case b.LostAtPackets == 0:
		add("arrives whole", "a train of %s of %d bytes, the longest one of this test (--bytes)",
			unit.Counted(b.HeldPackets, "datagram"), b.PacketBytes)
	case b.HeldPackets == 0:
		add("arrives whole", "no train: a single datagram of %d bytes is lost", b.PacketBytes)
	default:
		add("arrives whole", "a train of %s of %d bytes", unit.Counted(b.HeldPackets, "datagram"), b.PacketBytes)
	}
	if b.LostAtPackets > 0 {
		var parts []string
		for _, l := range b.Losses {
			text := fmt.Sprintf("%d at %s", l.Packets, l.Place)
			if l.Source != "" {
				text += " (" + l.Source + ")"
			}
			parts = append(parts, text)
		}
		add("first loss", "in a train of %d: %s", b.LostAtPackets, strings.Join(parts, ", "))
	}
	for i, bound := range b.Bounds {
		name := ""
		if i == 0 {
			name = "should hold"
		}
		text := fmt.Sprintf("%s %d", bound.Place, bound.Packets)
		if bound.Interface != "" {
			text += " on " + bound.Interface
		}
		text += " (" + bound.Source + ")"
		if bound.FullAfter > 0 {
			text += ", full after " + unit.FormatSeconds(bound.FullAfter) + " at the speed of the link"
		}
		if bound.Place == b.Place {
			text += "; this one lost the first packet"
		}
		add(name, "%s", text)
	}
	if n := len(b.Trains); n > 0 {
		lengths := make([]string, n)
		for i, t := range b.Trains {
			lengths[i] = fmt.Sprint(t.Packets)
			if t.Lost > 0 {
				lengths[i] += fmt.Sprintf(" (%d lost)", t.Lost)
			}
		}
		add("trains", "%s", strings.Join(lengths, ", "))
	}
}
