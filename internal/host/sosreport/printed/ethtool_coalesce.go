package printed

import "strings"

// coalesceNames are the parameters whose lines differ in some versions from the options that set
// them: the netlink half of ethtool (5.7) lost a letter of what the ioctl half prints.
var coalesceNames = map[string]string{
	"rx-frame-low": "rx-frames-low", "tx-frame-low": "tx-frames-low", "rx-frame-high": "rx-frames-high",
	"tx-frame-high": "tx-frames-high",
}

// ParseCoalesce parses "ethtool -c NIC": "NAME: NUMBER", and two lines with both directions in one:
// "Adaptive RX: off TX: on" and since ethtool 5.15 "CQE mode RX: n/a TX: n/a". What the driver
// lacks is "n/a"; before ethtool 5.9 it was 0 like any other zero, and is returned as that. Nil: no
// parameters.
func ParseCoalesce(text string) map[string]uint32 {
	found := make(map[string]uint32)
	for line := range lines(text) {
		key, value, ok := pair(line)
		if !ok {
			continue
		}
		switch key {
		case "Adaptive RX":
			both(found, "adaptive-rx", "adaptive-tx", value)
		case "CQE mode RX":
			both(found, "cqe-mode-rx", "cqe-mode-tx", value)
		default:
			if name, other := coalesceNames[key]; other {
				key = name
			}
			// The title ends in a colon too, with nothing after it.
			if n, ok := small(value); ok && key != "" && !strings.ContainsAny(key, " \t") {
				found[key] = n
			}
		}
	}
	if len(found) == 0 {
		return nil
	}
	return found
}

// both adds "off  TX: on" under the names of the two directions.
func both(into map[string]uint32, rx, tx, value string) {
	first, second, _ := strings.Cut(value, "TX:")
	for name, word := range map[string]string{rx: strings.TrimSpace(first), tx: strings.TrimSpace(second)} {
		switch word {
		case "on":
			into[name] = 1
		case "off":
			into[name] = 0
		}
	}
}
