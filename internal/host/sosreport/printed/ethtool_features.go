package printed

import (
	"strings"

	"github.com/linerate/linerate/internal/host"
)

// oldNames are features under the names that ethtool gave them before the kernel had names of its
// own (off_flag_def in ethtool). One name that stands for a group ("tx-checksumming") is followed
// by its members, which are the kernel's; its own line is a sum of theirs and left out.
var oldNames = map[string]string{
	"rx-checksumming":              "rx-checksum",
	"generic-segmentation-offload": "tx-generic-segmentation",
	"generic-receive-offload":      "rx-gro",
	"large-receive-offload":        "rx-lro",
	"udp-fragmentation-offload":    "tx-udp-fragmentation", // gone from the kernel with 4.14
	"rx-vlan-offload":              "rx-vlan-hw-parse",
	"tx-vlan-offload":              "tx-vlan-hw-insert",
	"ntuple-filters":               "rx-ntuple-filter",
	"receive-hashing":              "rx-hashing",
}

// groups are those names that stand for several features. Before ethtool 3.6 they stood alone; the
// member that is named here is the one that every card with any of the group has. What
// tx-checksumming meant then, IPv4 or everything, nobody can tell.
var groups = map[string]string{
	"tx-checksumming": "", "scatter-gather": "tx-scatter-gather", "tcp-segmentation-offload": "tx-tcp-segmentation",
}

// ParseFeatures reads "ethtool -k NIC": "NAME: on|off [fixed]", members of a group indented behind
// it. "[requested on]" tells a wish; what counts is what is. Nil: there are none.
func ParseFeatures(text string) map[string]host.Feature {
	found := make(map[string]host.Feature)
	alone := make(map[string]host.Feature) // groups, until one of their members is seen
	group := ""                            // that the indented lines belong to
	for line := range lines(text) {
		key, value, ok := pair(line)
		state, note, _ := strings.Cut(value, " ")
		if !ok || state != "on" && state != "off" {
			continue // the title
		}
		f := host.Feature{On: state == "on", Fixed: strings.Contains(note, "[fixed]")}
		member := strings.HasPrefix(line, "\t") || strings.HasPrefix(line, " ")
		_, isGroup := groups[key]
		switch {
		case isGroup:
			group = key
			alone[key] = f
		case member:
			delete(alone, group)
			found[key] = f
		default:
			if name, old := oldNames[key]; old {
				key = name
			}
			found[key] = f
		}
	}
	// Groups without members are those of an ethtool that knew none: the kernel had no names to
	// tell it.
	for key, f := range alone {
		if name := groups[key]; name != "" {
			found[name] = f
		}
	}
	if len(found) == 0 {
		return nil
	}
	return found
}
