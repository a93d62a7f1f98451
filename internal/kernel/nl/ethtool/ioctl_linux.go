package ethtool

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/kernel/nl"
)

// Requests without a netlink equivalent: GDRVINFO, GSSET_INFO, GSTRINGS and GSTATS of
// linux/ethtool.h.
const (
	stringLength = 32 // ETH_GSTRING_LEN
	setStats     = 1  // ETH_SS_STATS
)

// driver uses the ioctl, because the netlink family reports neither driver nor firmware.
func (k kernel) driver(name string) (DriverInfo, error) {
	var info unix.EthtoolDrvinfo
	buf := make([]byte, unsafe.Sizeof(info))
	binary.NativeEndian.PutUint32(buf, unix.ETHTOOL_GDRVINFO)
	if err := k.Ioctl(name, buf); err != nil {
		return DriverInfo{}, err
	}
	return parseDriver(buf), nil
}

// parseDriver reads struct ethtool_drvinfo: u32 command, then four texts of 32 bytes. A missing
// text is empty or "N/A".
func parseDriver(b []byte) DriverInfo {
	text := func(i int) string {
		from := 4 + 32*i
		if len(b) < from+32 {
			return ""
		}
		if s := unix.ByteSliceToString(b[from : from+32]); s != "N/A" {
			return s
		}
		return ""
	}
	return DriverInfo{Driver: text(0), Version: text(1), Firmware: text(2), Bus: text(3)}
}

// statisticsAttempts limits how often the reading is repeated because the driver changed its set of
// counters (new queues) between the three requests.
const statisticsAttempts = 4

// statistics reads the counters that `ethtool -S` shows, with the driver's own names and meanings.
// Since 5.13 the netlink family has a few standardised groups, but no current driver fills them as
// completely.
func (k kernel) statistics(name string) (map[string]uint64, error) {
	for range statisticsAttempts {
		names, values, err := k.statisticsOnce(name)
		if errors.Is(err, errSetChanged) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out := make(map[string]uint64, len(names))
		for i, n := range names {
			out[n] = values[i]
		}
		return out, nil
	}
	return nil, errSetChanged
}

var errSetChanged = errors.New("the driver keeps changing its set of counters")

// statisticsOnce sends three requests: for the number of counters, their names and their values.
// The kernel holds its lock only during each request, so the set may change between them.
func (k kernel) statisticsOnce(name string) ([]string, []uint64, error) {
	n, err := k.countStatistics(name)
	if err != nil || n == 0 {
		return nil, nil, err
	}
	// The kernel writes as many entries as the driver has at that moment, regardless of the
	// caller's buffer (only newer kernels fix this). A concurrent reconfiguration of queues must
	// not overflow the buffer: allocate ample room, and check the count afterwards.
	room := 2*n + 4096
	buf := make([]byte, 12+room*stringLength)
	binary.NativeEndian.PutUint32(buf, unix.ETHTOOL_GSTRINGS)
	binary.NativeEndian.PutUint32(buf[4:], setStats)
	binary.NativeEndian.PutUint32(buf[8:], uint32(n))
	if err := k.Ioctl(name, buf); err != nil {
		return nil, nil, err
	}
	names, err := parseStrings(buf, room)
	if err != nil {
		return nil, nil, err
	}
	buf = make([]byte, 8+room*8)
	binary.NativeEndian.PutUint32(buf, unix.ETHTOOL_GSTATS)
	binary.NativeEndian.PutUint32(buf[4:], uint32(n))
	if err := k.Ioctl(name, buf); err != nil {
		return nil, nil, err
	}
	values, err := parseStatistics(buf, room)
	if err != nil {
		return nil, nil, err
	}
	if len(names) != len(values) {
		return nil, nil, errSetChanged
	}
	return names, values, nil
}

// countStatistics reads the size of the set. A driver without statistics clears its bit in the
// mask.
func (k kernel) countStatistics(name string) (int, error) {
	buf := make([]byte, 24) // struct ethtool_sset_info: u32 command, u32 reserved, u64 mask, u32 counts
	binary.NativeEndian.PutUint32(buf, unix.ETHTOOL_GSSET_INFO)
	binary.NativeEndian.PutUint64(buf[8:], 1<<setStats)
	if err := k.Ioctl(name, buf); err != nil {
		return 0, err
	}
	if binary.NativeEndian.Uint64(buf[8:]) == 0 {
		return 0, nil
	}
	n := int(u32(buf[16:]))
	// The largest NICs have some ten thousand counters. A million is a broken answer; refuse it
	// before allocating.
	if n < 0 || n > 1<<20 {
		return 0, fmt.Errorf("driver claims %d counters", n)
	}
	return n, nil
}

// parseStrings reads struct ethtool_gstrings: u32 command, u32 set, u32 count, then texts of 32
// bytes.
func parseStrings(b []byte, room int) ([]string, error) {
	if len(b) < 12 {
		return nil, nl.ErrShort
	}
	n := int(u32(b[8:]))
	if n < 0 || n > room || len(b) < 12+n*stringLength {
		return nil, fmt.Errorf("%d names in room for %d", n, room)
	}
	out := make([]string, n)
	for i := range out {
		out[i] = string(bytes.TrimSpace([]byte(unix.ByteSliceToString(b[12+i*stringLength:][:stringLength]))))
	}
	return out, nil
}

// parseStatistics reads struct ethtool_stats: u32 command, u32 count, then one u64 per counter.
func parseStatistics(b []byte, room int) ([]uint64, error) {
	if len(b) < 8 {
		return nil, nl.ErrShort
	}
	n := int(u32(b[4:]))
	if n < 0 || n > room || len(b) < 8+8*n {
		return nil, fmt.Errorf("%d values in room for %d", n, room)
	}
	out := make([]uint64, n)
	for i := range out {
		out[i] = binary.NativeEndian.Uint64(b[8+8*i:])
	}
	return out, nil
}
