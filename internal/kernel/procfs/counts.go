package procfs

import (
	"errors"
	"strings"
)

// ErrFormat is a kernel file that does not have the form it has had so far. It is reported, never
// guessed around.
var ErrFormat = errors.New("unexpected format")

// Counts collects counters by name; package comment: which there are. Counts are read around every
// test, so the reading must not disturb what is measured: names are cut from one growing string,
// and some seven hundred of them cost a handful of allocations. Make one with [NewCounts]. It
// belongs to one goroutine.
type Counts struct {
	Values     map[string]uint64
	Interfaces []string // in the order of /proc/net/dev, which promises none

	names strings.Builder
}

// NewCounts makes an empty collection with room for size counters. A map that grows while it is
// filled costs more than all parsing does, so callers guess high.
func NewCounts(size int) *Counts { return &Counts{Values: make(map[string]uint64, size)} }

// nameBlock is how many bytes of names are allocated at once. All names of a host with a few
// interfaces are about 16 KiB.
const nameBlock = 8 << 10

// Put sets the counter whose name is all parts joined. The parts are copied.
func (c *Counts) Put(n uint64, parts ...string) { c.Values[c.name(parts...)] = n }

// name joins parts in the current block. A full block is left to the names that point into it: a
// Builder never moves the text that it has handed out as long as it need not grow.
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

// OfInterface gives what [ParseDev] read of one interface, by column ("rx_bytes"). Nil: the
// interface was not in the file.
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
