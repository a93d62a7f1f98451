package printed

import (
	"strings"

	"github.com/linerate/linerate/internal/host"
)

// parseLimits parses the common part of "ethtool -g" and "ethtool -l": the same keys twice, at most
// and at present. What the driver lacks is "n/a", and not in the maps; before ethtool 5.9 it was 0.
func parseLimits(text string) (most, now map[string]uint32) {
	most, now = make(map[string]uint32), make(map[string]uint32)
	var section map[string]uint32
	for line := range lines(text) {
		switch {
		case strings.HasPrefix(line, "Pre-set maximums"):
			section = most
			continue
		case strings.HasPrefix(line, "Current hardware settings"):
			section = now
			continue
		}
		// Lines such as "TX Push: off", which newer versions append, are no numbers.
		key, value, ok := pair(line)
		if n, isNumber := small(value); ok && isNumber && section != nil {
			section[key] = n
		}
	}
	return most, now
}

// ParseRings parses "ethtool -g NIC". Mini and jumbo rings, which few cards ever had, are left out.
// Nil: the driver has no rings.
func ParseRings(text string) *host.Rings {
	most, now := parseLimits(text)
	// ethtool 4 prints the title before its error, so the title alone means nothing.
	if _, known := now["RX"]; !known && now["TX"] == 0 {
		return nil
	}
	return &host.Rings{Rx: host.Ring{Current: now["RX"], Max: most["RX"]},
		Tx: host.Ring{Current: now["TX"], Max: most["TX"]}}
}

// ParseChannels parses "ethtool -l NIC". Nil: the driver does not support it.
func ParseChannels(text string) *host.Channels {
	most, now := parseLimits(text)
	if len(now) == 0 {
		return nil
	}
	return &host.Channels{
		Combined: now["Combined"], MaxCombined: most["Combined"], Rx: now["RX"], MaxRx: most["RX"], Tx: now["TX"],
		MaxTx: most["TX"],
	}
}
