package printed

import (
	"slices"
	"strings"
)

// bondModes maps what /proc/net/bonding calls the modes (bond_mode_name in bond_main.c) to the
// words of ip(8). Some have a remark behind them: "(fail_over_mac active)".
var bondModes = []struct{ text, mode string }{
	{"load balancing (round-robin)", "balance-rr"}, {"fault-tolerance (active-backup)", "active-backup"},
	{"load balancing (xor)", "balance-xor"}, {"fault-tolerance (broadcast)", "broadcast"},
	{"IEEE 802.3ad", "802.3ad"}, {"transmit load balancing", "balance-tlb"}, {"adaptive load balancing", "balance-alb"},
}

// mostMembers is more than any bond has.
const mostMembers = 64

// ParseBond parses a file of /proc/net/bonding: the mode in the words of ip(8), and the members. An
// empty mode: none that is known. It is the only place where kernels before 2.6.39 have the mode.
func ParseBond(text string) (mode string, members []string) {
	pairs(text, func(key, value string) {
		switch key {
		case "Bonding Mode":
			for _, m := range bondModes {
				if strings.HasPrefix(value, m.text) {
					mode = m.mode
				}
			}
		case "Slave Interface":
			if len(members) < mostMembers && !slices.Contains(members, value) {
				members = append(members, value)
			}
		}
	})
	return mode, members
}
