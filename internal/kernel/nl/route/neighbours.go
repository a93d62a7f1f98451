package route

import "github.com/linerate/linerate/internal/kernel/nl"

// NeighbourTable is what the kernel tells of its neighbours by one version of IP
// (neightbl_fill_info in net/core/neighbour.c). There is one table for all network namespaces, and
// unlike /proc/net/stat this is told in each of them.
type NeighbourTable struct {
	Name    string // arp_cache, ndisc_cache
	Entries uint32
	// Thresholds are gc_thresh1 to 3: with fewer entries than the first none is removed, beyond the
	// second they are removed promptly, and more than the third there cannot be.
	Thresholds        [3]uint32
	ResolutionsFailed uint64 // neighbours that did not answer
	ForcedCollections uint64 // times that room had to be made
	Fulls             uint64 // neighbours that were refused, since Linux 4.3
}

// NeighbourTables lists the tables of neighbours.
func (c Client) NeighbourTables() ([]NeighbourTable, error) {
	v, err := c.k.neighbourTables()
	return v, nl.Wrap("list neighbour tables", "", err)
}
