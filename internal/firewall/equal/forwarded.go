package equal

import (
	"net/netip"
	"strings"

	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// mostLinks bounds the interfaces at which packets enter the namespaces of [Kernel].
const mostLinks = 32

// Forwarded returns packets for [Kernel], at most the given number. A kernel forwards them over
// IPv4. They are those at the ends of the rules' ranges, with ordinary values for fields that a
// forwarded packet cannot have. They enter at up to 32 of the interfaces that rules name, and leave
// at one.
func Forwarded(r *ruleset.Ruleset, most int) []ruleset.Packet {
	const enter, leave = "lr0", "lr1"
	directed := Directed(r, "forward", most)
	out := leave
	for _, p := range directed {
		if linkName(p.Out) {
			out = p.Out
			break
		}
	}
	in := map[string]bool{enter: true}
	all := make([]ruleset.Packet, 0, len(directed))
	for _, p := range directed {
		if !forwardable(p.Source) {
			p.Source = netip.AddrFrom4([4]byte{10, 77, 7, 7})
		}
		if !forwardable(p.Destination) {
			p.Destination = netip.AddrFrom4([4]byte{10, 77, 7, 8})
		}
		if p.Protocol != 6 && p.Protocol != 17 {
			p.Protocol = 17
		}
		if !linkName(p.In) || p.In == out || !in[p.In] && len(in) == mostLinks {
			p.In = enter
		}
		in[p.In] = true
		p.Out = out
		all = append(all, p)
	}
	return all
}

// forwardable reports whether a router passes packets from or to an address on.
func forwardable(a netip.Addr) bool {
	return a.Is4() && a.As4()[0] > 0 && a.As4()[0] < 224 && !a.IsLoopback()
}

// linkName reports whether the kernel takes a name for a new interface.
func linkName(s string) bool {
	return s != "" && len(s) < 16 && s != "lo" && s != "." && s != ".." && !strings.ContainsAny(s, "/: \t\n\"*") &&
		!strings.HasPrefix(s, "lrpeer")
}
