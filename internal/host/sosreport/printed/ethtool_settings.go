package printed

import (
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/host"
)

// Settings is what ethtool without an option says of a link. Zero is not told.
type Settings struct {
	SpeedBitsPerSec float64
	Duplex          string // full or half
	Port            string // twisted-pair, fibre, …: in the words of package host
	Modes           *host.LinkModes
}

// ports are ethtool's words for how the medium is attached, and ours. What is neither ("Other",
// "None") is not worth telling.
var ports = map[string]string{
	"Twisted Pair": "twisted-pair", "AUI": "aui", "MII": "mii", "FIBRE": "fibre", "BNC": "bnc",
	"Direct Attach Copper": "direct-attach",
}

// ParseSettings reads "ethtool NIC". Lists of modes go on over further lines, which have no colon;
// without a link speed and duplex are "Unknown!".
func ParseSettings(text string) Settings {
	var s Settings
	var modes host.LinkModes
	var list *[]string // that the next line may go on with
	for line := range lines(text) {
		key, value, ok := pair(line)
		// A mode has a colon nowhere, a key always.
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
			// -1 in 32 bits, and in the 16 that the field once had, stand for unknown; old versions
			// print them as they are.
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
	// In the order of package host, which is not that of the kernel's bits.
	for _, l := range []*[]string{&modes.Supported, &modes.Advertised, &modes.Partner} {
		slices.Sort(*l)
	}
	// A device without modes is one without a medium: its "Auto-negotiation: off" is no fact about
	// a link.
	if len(modes.Supported) > 0 {
		s.Modes = &modes
	}
	return s
}

// wire takes the modes out of a line: "100baseT/Full", not "Not reported".
func wire(text string) []string {
	var modes []string
	for _, word := range strings.Fields(text) {
		if strings.Contains(word, "base") {
			modes = append(modes, word)
		}
	}
	return modes
}
