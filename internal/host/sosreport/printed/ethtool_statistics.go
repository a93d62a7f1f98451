package printed

import "strings"

// ParseStatistics reads "ethtool -S NIC": one counter a line behind the title "NIC statistics:".
// Drivers put nearly anything into the names, blanks and colons too ("[0]: rx_ucast_packets", "Tx
// Queue#:"), so the last colon is the one that counts. Nil: there are none.
func ParseStatistics(text string) map[string]uint64 {
	_, body, titled := strings.Cut(text, "NIC statistics:")
	if !titled {
		return nil // "no stats available", or a complaint
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
