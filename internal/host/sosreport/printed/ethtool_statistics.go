package printed

import "strings"

// ParseStatistics parses "ethtool -S NIC": one counter a line after the title "NIC statistics:".
// Drivers use nearly any character in the names, even blanks and colons ("[0]: rx_ucast_packets",
// "Tx Queue#:"), so the last colon counts. Nil: no counters.
func ParseStatistics(text string) map[string]uint64 {
	_, body, titled := strings.Cut(text, "NIC statistics:")
	if !titled {
		return nil // "no stats available", or an error
	}
	found := make(map[string]uint64)
	for line := range lines(body) {
		colon := strings.LastIndexByte(line, ':')
		if colon < 0 {
			continue
		}
		name := strings.TrimSpace(line[:colon])
		if n, ok := count(strings.TrimSpace(line[colon+1:])); ok && name != "" {
			found[name] = n
		}
	}
	if len(found) == 0 {
		return nil
	}
	return found
}
