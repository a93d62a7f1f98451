package measure

import (
	"net/netip"
	"slices"
	"time"

	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// Rules are what one program loads.
type Rules struct {
	Program ruleset.Program // NFT, IPTablesLegacy or IPTablesNFT
	Text    string          // of nft -f, or of iptables-restore
}

// Case is rules, and a datagram that meets them at the hook output of a loopback.
type Case struct {
	Name  string
	Rules []Rules
	To    netip.AddrPort // from 127.0.0.1, within 127.0.0.0/8; zero: 127.1.1.1, port 9
	// Needs are the modules of the kernel without which the rules would load some.
	Needs []string
}

// Options bound a measurement.
type Options struct {
	Span  time.Duration // of sending; loading the rules takes some milliseconds for each case
	Least int           // batches for each case, however long they take
	// Read asks for the rules with their counters after the last datagram.
	Read bool
}

// Result is what was measured.
type Result struct {
	Name        string
	Nanoseconds float64 // of CPU time for each datagram, with all that the host does for it
	Batches     int
	Rules       []*ruleset.Ruleset // if they were asked for; empty without rules
}

// low is the first quartile: other work on the machine only adds, and the least value is one
// batch's luck.
func low(all []float64) float64 {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Clone(all)
	slices.Sort(sorted)
	return sorted[len(sorted)/4]
}
