package ethtool

import (
	"bytes"
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// readStatistics requests only the values as long as their number equals that of the names.
func (k kernel) readStatistics(r *StatisticsReader, name string, again bool) (changed bool, err error) {
	for range statisticsAttempts {
		if again || r.room == 0 {
			renamed, err := k.readNames(r, name)
			changed = changed || renamed
			if err != nil {
				return changed, err
			}
		}
		if len(r.names) == 0 {
			r.values = r.values[:0]
			return changed, nil
		}
		clear(r.buf[:8])
		binary.NativeEndian.PutUint32(r.buf, unix.ETHTOOL_GSTATS)
		binary.NativeEndian.PutUint32(r.buf[4:], uint32(len(r.names)))
		if err := k.Ioctl(name, r.buf); err != nil {
			return changed, err
		}
		if n := int(u32(r.buf[4:])); n == len(r.names) {
			r.values = r.values[:0]
			for i := range n {
				r.values = append(r.values, binary.NativeEndian.Uint64(r.buf[8+8*i:]))
			}
			return changed, nil
		}
		again = true
	}
	return changed, errSetChanged
}

// readNames reads the names of the counters and makes room for many more; statisticsOnce explains
// why.
func (k kernel) readNames(r *StatisticsReader, name string) (changed bool, err error) {
	n, err := k.countStatistics(name)
	if err != nil {
		return false, err
	}
	r.room = 2*n + 4096
	if n == 0 {
		changed, r.names, r.raw = len(r.names) > 0, nil, nil
		return changed, nil
	}
	buf := make([]byte, 12+r.room*stringLength)
	binary.NativeEndian.PutUint32(buf, unix.ETHTOOL_GSTRINGS)
	binary.NativeEndian.PutUint32(buf[4:], setStats)
	binary.NativeEndian.PutUint32(buf[8:], uint32(n))
	if err := k.Ioctl(name, buf); err != nil {
		return false, err
	}
	names, err := parseStrings(buf, r.room)
	if err != nil {
		return false, err
	}
	if len(r.buf) < 8+8*r.room {
		r.buf = make([]byte, 8+8*r.room)
	}
	raw := buf[12:][:len(names)*stringLength]
	if bytes.Equal(raw, r.raw) {
		return false, nil
	}
	r.names, r.raw = names, bytes.Clone(raw)
	return true, nil
}
