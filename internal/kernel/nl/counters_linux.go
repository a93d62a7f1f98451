package nl

import (
	"encoding/binary"
	"fmt"
	"net"
	"slices"

	"golang.org/x/sys/unix"
)

// From linux/if_link.h, which x/sys/unix lacks in part.
const (
	sizeIfStats    = 12 // struct if_stats_msg: family, pad, pad, ifindex, mask
	statsLink64    = 1  // IFLA_STATS_LINK_64
	iflaPermanent  = 54 // IFLA_PERM_ADDRESS
	iflaElsewhere  = 37 // IFLA_LINK_NETNSID
	nlaHeader      = 4
	nlaTypeMask    = 0x3fff
	leastStats64   = 8 * int(TxWindowErrors+1) // what every kernel with 64-bit counters has had
	linkStatsFault = "link counters message"
)

// attribute takes the next attribute off data. It is not that of package netlink because a reading
// each second of a host with a thousand links is to leave nothing behind for the collector.
func attribute(data []byte) (typ uint16, value, rest []byte, ok bool) {
	if len(data) < nlaHeader {
		return 0, nil, nil, false
	}
	size := int(binary.NativeEndian.Uint16(data))
	if size < nlaHeader || size > len(data) {
		return 0, nil, nil, false
	}
	typ = binary.NativeEndian.Uint16(data[2:]) & nlaTypeMask
	return typ, data[nlaHeader:size], data[min(len(data), (size+3)&^3):], true
}

// keep gives text as a string, which is the former one where it is the same.
func keep(former string, text []byte) string {
	if n := len(text); n > 0 && text[n-1] == 0 {
		text = text[:n-1]
	}
	if former == string(text) {
		return former
	}
	return string(text)
}

// linkCounters asks in two dumps. RTM_GETLINK alone has the counters too, and with them for each
// link some forty of IPv6 that are sums over all CPUs; with RTEXT_FILTER_SKIP_STATS it has neither
// in new kernels.
func (k *kernel) linkCounters(former []LinkCounters) ([]LinkCounters, error) {
	req := ifInfo(0, 0, 0)
	req = binary.NativeEndian.AppendUint16(req, 8)
	req = binary.NativeEndian.AppendUint16(req, unix.IFLA_EXT_MASK)
	req = binary.NativeEndian.AppendUint32(req, extSkipStats)
	msgs, err := k.dump(unix.RTM_GETLINK, req)
	if err != nil {
		return former[:0], err
	}
	old := former
	links := former[:0]
	for _, m := range msgs {
		if m.Header.Type != unix.RTM_NEWLINK {
			continue
		}
		var was LinkCounters
		if len(links) < len(old) {
			was = old[len(links)] // most often the same link: the kernel goes by index, or by hash
		}
		l, err := parseLinkState(m.Data, was)
		if err != nil {
			return former[:0], err
		}
		links = append(links, l)
	}
	slices.SortFunc(links, func(a, b LinkCounters) int { return a.Index - b.Index })

	ask := make([]byte, sizeIfStats)
	binary.NativeEndian.PutUint32(ask[8:], 1<<(statsLink64-1))
	if msgs, err = k.dump(unix.RTM_GETSTATS, ask); err != nil {
		return former[:0], err
	}
	counted := make([]bool, len(links))
	for _, m := range msgs {
		if m.Header.Type != unix.RTM_NEWSTATS || len(m.Data) < sizeIfStats {
			continue
		}
		index := int(int32(u32(m.Data[4:])))
		i, ok := slices.BinarySearchFunc(links, index, func(l LinkCounters, index int) int { return l.Index - index })
		if !ok {
			continue
		}
		if counted[i], err = parseStats64(m.Data[sizeIfStats:], &links[i].Counts); err != nil {
			return former[:0], err
		}
	}
	n := 0
	for i, l := range links {
		if counted[i] {
			links[n] = l
			n++
		}
	}
	return links[:n], nil
}

// parseLinkState reads an RTM_NEWLINK message; was lends its strings.
func parseLinkState(data []byte, was LinkCounters) (LinkCounters, error) {
	if len(data) < sizeIfInfo {
		return LinkCounters{}, fmt.Errorf("%s: %w", linkStatsFault, ErrShort)
	}
	flags := u32(data[8:])
	l := LinkCounters{
		Hardware: binary.NativeEndian.Uint16(data[2:]),
		Index:    int(int32(u32(data[4:]))),
		Loopback: flags&unix.IFF_LOOPBACK != 0,
		Up:       flags&unix.IFF_UP != 0,
		Carrier:  flags&unix.IFF_LOWER_UP != 0,
	}
	elsewhere := false
	for rest := data[sizeIfInfo:]; len(rest) > 0; {
		typ, value, next, ok := attribute(rest)
		if !ok {
			return LinkCounters{}, fmt.Errorf("%s: %w", linkStatsFault, ErrShort)
		}
		rest = next
		number := func() uint32 {
			if len(value) < 4 {
				return 0
			}
			return u32(value)
		}
		switch typ {
		case unix.IFLA_IFNAME:
			l.Name = keep(was.Name, value)
		case unix.IFLA_MTU:
			l.MTU = int(number())
		case unix.IFLA_LINK:
			l.ParentIndex = int(int32(number()))
		case iflaElsewhere:
			elsewhere = true
		case unix.IFLA_MASTER:
			l.MasterIndex = int(number())
		case unix.IFLA_CARRIER_CHANGES:
			l.CarrierChanges = number()
		case iflaPermanent:
			if was.Index == l.Index && was.PermanentMAC != "" && sameMAC(was.PermanentMAC, value) {
				l.PermanentMAC = was.PermanentMAC
			} else {
				l.PermanentMAC = net.HardwareAddr(value).String()
			}
		case unix.IFLA_LINKINFO:
			for info := value; len(info) > 0; {
				typ, value, next, ok := attribute(info)
				if !ok {
					break
				}
				info = next
				if typ == unix.IFLA_INFO_KIND {
					l.Kind = keep(was.Kind, value)
				}
			}
		}
	}
	if elsewhere {
		l.ParentIndex = 0
	}
	return l, nil
}

// sameMAC tells whether text is the address.
func sameMAC(text string, address []byte) bool {
	const digits = "0123456789abcdef"
	if len(text) != 3*len(address)-1 {
		return false
	}
	for i, b := range address {
		if text[3*i] != digits[b>>4] || text[3*i+1] != digits[b&15] {
			return false
		}
	}
	return true
}

// parseStats64 reads the attributes behind struct if_stats_msg. Kernels before 4.6 had no
// rx_nohandler, and each may add counters at the end.
func parseStats64(data []byte, into *[LinkCounts]uint64) (found bool, err error) {
	for len(data) > 0 {
		typ, value, next, ok := attribute(data)
		if !ok || typ == statsLink64 && len(value) < leastStats64 {
			return false, fmt.Errorf("%s: %w", linkStatsFault, ErrShort)
		}
		data = next
		if typ != statsLink64 {
			continue
		}
		*into = [LinkCounts]uint64{}
		for i := range into {
			if len(value) >= 8*(i+1) {
				into[i] = binary.NativeEndian.Uint64(value[8*i:])
			}
		}
		found = true
	}
	return found, nil
}

func (k *kernel) qdiscCounters(former []QdiscCounters) ([]QdiscCounters, error) {
	msgs, err := k.dump(unix.RTM_GETQDISC, make([]byte, sizeTcMsg))
	if err != nil {
		return former[:0], err
	}
	old, out := former, former[:0]
	for _, m := range msgs {
		if m.Header.Type != unix.RTM_NEWQDISC {
			continue
		}
		kind := ""
		if len(out) < len(old) {
			kind = old[len(out)].Kind
		}
		q, err := parseQdiscCounters(m.Data, kind)
		if err != nil {
			return former[:0], err
		}
		out = append(out, q)
	}
	return out, nil
}

// parseQdiscCounters reads an RTM_NEWQDISC message; kind lends its memory.
func parseQdiscCounters(data []byte, kind string) (QdiscCounters, error) {
	const fault = "qdisc counters message"
	if len(data) < sizeTcMsg {
		return QdiscCounters{}, fmt.Errorf("%s: %w", fault, ErrShort)
	}
	q := QdiscCounters{Index: int(int32(u32(data[4:]))), Handle: u32(data[8:]), Parent: u32(data[12:])}
	for rest := data[sizeTcMsg:]; len(rest) > 0; {
		typ, value, next, ok := attribute(rest)
		if !ok {
			return QdiscCounters{}, fmt.Errorf("%s: %w", fault, ErrShort)
		}
		rest = next
		switch typ {
		case unix.TCA_KIND:
			q.Kind = keep(kind, value)
		case unix.TCA_STATS2:
			for stats := value; len(stats) > 0; {
				typ, b, next, ok := attribute(stats)
				if !ok {
					break
				}
				stats = next
				if typ == statsQueue && len(b) >= 20 {
					q.BacklogPackets, q.BacklogBytes = u32(b), u32(b[4:])
					q.Drops, q.Requeues, q.Overlimits = u32(b[8:]), u32(b[12:]), u32(b[16:])
				}
			}
		}
	}
	return q, nil
}
