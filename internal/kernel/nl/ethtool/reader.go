package ethtool

import "github.com/linerate/linerate/internal/kernel/nl"

// StatisticsReader repeatedly reads the driver's own counters of one device. It keeps their names,
// so that each reading takes one request and allocates nothing. The zero value is ready to use. It
// is not safe for concurrent use.
type StatisticsReader struct {
	names []string
	raw   []byte // the names as the driver returned them
	room  int
	buf   []byte

	values []uint64
}

// Read returns names and values in the same order. Both slices are valid until the next call.
// changed reports whether the names differ from those of the previous call. With again, Read
// requests the names again, because a driver may have replaced counters without changing their
// number. A device without counters has empty slices and no error.
func (r *StatisticsReader) Read(c Client, name string, again bool) (names []string, values []uint64, changed bool,
	err error) {
	changed, err = c.k.readStatistics(r, name, again)
	return r.names, r.values, changed, nl.Wrap("read statistics", name, err)
}
