package printed

import (
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/host"
)

// Settings is the output of ethtool without an option about a link. Zero means not known.
type Settings struct {
	SpeedBitsPerSec float64
	Duplex          string // full or half
	Port            string // twisted-pair, fibre, …: the words of package host
	Modes           *host.LinkModes
}

// ports maps ethtool's words for how the medium is attached to ours. "Other" and "None" are
// ignored.
var ports = map[string]string{
	"Twisted Pair": "twisted-pair", "AUI": "aui", "MII": "mii", "FIBRE": "fibre", "BNC": "bnc",
	"Direct Attach Copper": "direct-attach",
}

// ParseSettings parses "ethtool NIC". Lists of modes continue on further lines, which have no
// colon; without a link speed and duplex are "Unknown!".
func ParseSettings(text string) Settings {
	var s Settings
	var modes host.LinkModes
	var list *[]string // that the next line may continue
	for line := range lines(text) {
		key, value, ok := pair(line)
		// A mode never contains a colon, a key always ends with one.
		if !ok {
			if list != nil {
				*list = append(*list, wire(line)...)
			}
			continue
		}
		list = nil
		switch key {
		case "Supported link modes":
			list = &modes.Supported
		case "Advertised link modes":
			list = &modes.Advertised
		case "Link partner advertised link modes":
			list = &modes.Partner
		case "Auto-negotiation":
			modes.Autoneg = value == "on"
		case "Lanes":
			modes.Lanes, _ = strconv.Atoi(value)
		case "Speed":
			// -1 in 32 bits, and in the 16 of the former field, mean unknown; old versions print
			// them unchanged.
			if mbps, err := strconv.ParseFloat(strings.TrimSuffix(value, "Mb/s"), 64); err == nil && mbps > 0 &&
				mbps < 1<<32-1 && mbps != 65535 {
				s.SpeedBitsPerSec = mbps * 1e6
			}
		case "Duplex":
			if d := strings.ToLower(value); d == "full" || d == "half" {
				s.Duplex = d
			}
		case "Port":
			s.Port = ports[value]
		}
		if list != nil {
			*list = wire(value)
		}
	}
	// In the order of package host, which differs from that of the kernel's bits.
	for _, l := range []*[]string{&modes.Supported, &modes.Advertised, &modes.Partner} {
		slices.Sort(*l)
	}
	// A device without modes has no medium: its "Auto-negotiation: off" is no fact about a link.
	if len(modes.Supported) > 0 {
		s.Modes = &modes
	}
	return s
}

// wire extracts the modes from a line: "100baseT/Full", not "Not reported".
func wire(text string) []string {
	var modes []string
	for _, word := range strings.Fields(text) {
		if strings.Contains(word, "base") {
			modes = append(modes, word)
		}
	}
	return modes
}
