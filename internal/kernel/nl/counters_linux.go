package nl

import (
	"encoding/binary"
	"fmt"
	"net"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/base/sorting"
)

// These are from linux/if_link.h; x/sys/unix lacks some of them.
const (
	sizeIfStats    = 12 // struct if_stats_msg: family, pad, pad, ifindex, mask
	statsLink64    = 1  // IFLA_STATS_LINK_64
	iflaPermanent  = 54 // IFLA_PERM_ADDRESS
	iflaElsewhere  = 37 // IFLA_LINK_NETNSID
	nlaHeader      = 4
	nlaTypeMask    = 0x3fff
	leastStats64   = 8 * int(TxWindowErrors+1) // the minimum of every kernel with 64-bit counters
	linkStatsFault = "link counters message"
)

// attribute splits the next attribute off data. It replaces the decoder of package netlink, because
// a reader that runs every second on a host with a thousand links must not allocate.
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

// keep returns text as a string. It returns former if the two are equal, so that no string is
// allocated.
func keep(former string, text []byte) string {
	if n := len(text); n > 0 && text[n-1] == 0 {
		text = text[:n-1]
	}
	if former == string(text) {
		return former
	}
	return string(text)
}

// linkCounters uses two dumps. RTM_GETLINK alone returns the counters too, but with some forty IPv6
// counters per link that are sums over all CPUs. With RTEXT_FILTER_SKIP_STATS, new kernels omit
// both.
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
			was = old[len(links)] // usually the same link: the kernel orders links by index or hash
		}
		l, err := parseLinkState(m.Data, was)
		if err != nil {
			return former[:0], err
		}
		links = append(links, l)
	}
	sorting.Func(links, func(a, b LinkCounters) int { return a.Index - b.Index })

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

// parseLinkState reads an RTM_NEWLINK message. It reuses the strings of was.
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

// sameMAC reports whether text is the written form of address.
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

// parseStats64 reads the attributes after struct if_stats_msg. Kernels before 4.6 had no
// rx_nohandler, and any later kernel may append counters.
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

// parseQdiscCounters reads an RTM_NEWQDISC message. It reuses the memory of kind.
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
