package printed

import (
	"strings"

	"github.com/linerate/linerate/internal/host"
)

// oldNames are the features under the names that ethtool gave them before the kernel had names of
// its own (off_flag_def in ethtool). A name of a group ("tx-checksumming") is followed by its
// members, which have the kernel's names; its own line is a sum of theirs and left out.
var oldNames = map[string]string{
	"rx-checksumming":              "rx-checksum",
	"generic-segmentation-offload": "tx-generic-segmentation",
	"generic-receive-offload":      "rx-gro",
	"large-receive-offload":        "rx-lro",
	"udp-fragmentation-offload":    "tx-udp-fragmentation", // removed from the kernel in 4.14
	"rx-vlan-offload":              "rx-vlan-hw-parse",
	"tx-vlan-offload":              "tx-vlan-hw-insert",
	"ntuple-filters":               "rx-ntuple-filter",
	"receive-hashing":              "rx-hashing",
}

// groups are the names of several features. Before ethtool 3.6 they stood alone; the member named
// here is the one that every card with any of the group has. The former meaning of tx-checksumming,
// IPv4 or everything, cannot be known.
var groups = map[string]string{
	"tx-checksumming": "", "scatter-gather": "tx-scatter-gather", "tcp-segmentation-offload": "tx-tcp-segmentation",
}

// ParseFeatures parses "ethtool -k NIC": "NAME: on|off [fixed]", with the members of a group
// indented after it. "[requested on]" is a wish; the present state counts. Nil: no features.
func ParseFeatures(text string) map[string]host.Feature {
	found := make(map[string]host.Feature)
	alone := make(map[string]host.Feature) // groups, until one of their members appears
	group := ""                            // the group of the indented lines
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
	// Groups without members come from an ethtool that knew none, because the kernel had no names
	// for them.
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
