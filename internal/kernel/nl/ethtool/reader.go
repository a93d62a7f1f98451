package ethtool

import "github.com/linerate/linerate/internal/kernel/nl"

// StatisticsReader reads the driver's own counters of one device again and again. It keeps their
// names, so that a reading is one question and leaves nothing behind for the collector. The zero
// value is ready; it belongs to one goroutine.
type StatisticsReader struct {
	names []string
	raw   []byte // the names as the driver gave them
	room  int
	buf   []byte

	values []uint64
}

// Read gives names and values in the same order, both the reader's until the next call. The names
// are others than before if changed says so. With again they are asked for anew: a driver may have
// other counters than before and as many. A device without counters has none and is no error.
func (r *StatisticsReader) Read(c Client, name string, again bool) (names []string, values []uint64, changed bool,
	err error) {
	changed, err = c.k.readStatistics(r, name, again)
	return r.names, r.values, changed, nl.Wrap("read statistics", name, err)
}
