package procfs

import (
	"errors"
	"strings"
)

// ErrFormat reports a kernel file whose form differs from all known ones. A parser never guesses.
var ErrFormat = errors.New("unexpected format")

// Counts collects counters by name; the package comment lists the names. Counts are read around
// every test, so the reading must not disturb the measurement: names are slices of one growing
// string, and some seven hundred of them cost a handful of allocations. Create it with [NewCounts].
// It is not safe for concurrent use.
type Counts struct {
	Values     map[string]uint64
	Interfaces []string // in the order of /proc/net/dev, which promises no order

	names strings.Builder
}

// NewCounts returns an empty collection with room for size counters. A map that grows while it is
// filled costs more than all parsing, so callers estimate high.
func NewCounts(size int) *Counts { return &Counts{Values: make(map[string]uint64, size)} }

// nameBlock is the number of bytes of names allocated at once. All names of a host with a few
// interfaces take about 16 KiB.
const nameBlock = 8 << 10

// Put sets the counter whose name is all parts joined. It copies the parts.
func (c *Counts) Put(n uint64, parts ...string) { c.Values[c.name(parts...)] = n }

// name joins parts in the current block. A full block remains for the names that point into it: a
// Builder never moves text that it has returned unless it must grow.
func (c *Counts) name(parts ...string) string {
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	if c.names.Cap()-c.names.Len() < size {
		c.names = strings.Builder{}
		c.names.Grow(max(nameBlock, size))
	}
	start := c.names.Len()
	for _, p := range parts {
		c.names.WriteString(p)
	}
	return c.names.String()[start:]
}

// OfInterface returns the counters of one interface as read by [ParseDev], by column ("rx_bytes").
// It returns nil if the file lacks the interface.
func (c *Counts) OfInterface(name string) map[string]uint64 {
	found := make(map[string]uint64, len(devColumns))
	for _, column := range devColumns {
		if n, ok := c.Values["nic."+name+"."+column]; ok {
			found[column] = n
		}
	}
	if len(found) == 0 {
		return nil
	}
	return found
}
