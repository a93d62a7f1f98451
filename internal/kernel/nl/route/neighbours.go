package route

import "github.com/linerate/linerate/internal/kernel/nl"

// NeighbourTable holds the kernel's figures about its neighbours for one version of IP
// (neightbl_fill_info in net/core/neighbour.c). One table serves all network namespaces, and unlike
// /proc/net/stat every namespace can read it.
type NeighbourTable struct {
	Name    string // arp_cache, ndisc_cache
	Entries uint32
	// Thresholds are gc_thresh1 to 3. Below the first the kernel removes no entry, above the second
	// it removes entries promptly, and the third is the maximum.
	Thresholds        [3]uint32
	ResolutionsFailed uint64 // neighbours that did not answer
	ForcedCollections uint64 // forced garbage collections to make room
	Fulls             uint64 // neighbours refused, since Linux 4.3
}

// NeighbourTables returns the tables of neighbours.
func (c Client) NeighbourTables() ([]NeighbourTable, error) {
	v, err := c.k.neighbourTables()
	return v, nl.Wrap("list neighbour tables", "", err)
}
