package route

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/kernel/nl"
)

const sizeRtMsg = unix.SizeofRtMsg

// rawRoute is one route as the kernel reported it, so that it can be sent back with one change.
type rawRoute struct {
	header []byte // struct rtmsg
	attrs  []netlink.Attribute
}

// parseRawRoute copies the header, because a later change writes into it, and the message belongs
// to the buffer of its dump.
func parseRawRoute(data []byte) (rawRoute, error) {
	if len(data) < sizeRtMsg {
		return rawRoute{}, fmt.Errorf("route message: %w", nl.ErrShort)
	}
	attrs, err := netlink.UnmarshalAttributes(data[sizeRtMsg:])
	if err != nil {
		return rawRoute{}, fmt.Errorf("route message: %w", err)
	}
	return rawRoute{header: slices.Clone(data[:sizeRtMsg]), attrs: attrs}, nil
}

// find returns the first attribute of a type, or nil.
func (r rawRoute) find(typ uint16) []byte { return nl.Find(r.attrs, typ) }

// uint32 returns 0 for an absent attribute. For all attributes it is used with, the kernel treats 0
// as not set.
func (r rawRoute) uint32(typ uint16) uint32 {
	if b := r.find(typ); len(b) >= 4 {
		return u32(b)
	}
	return 0
}

// set replaces or appends an attribute. A nil value removes it.
func (r *rawRoute) set(typ uint16, data []byte) {
	r.attrs = setAttr(r.attrs, typ, data)
}

// setAttr never changes its argument: rawRoute is copied by value, and two copies share their
// attributes until one of them is set.
func setAttr(attrs []netlink.Attribute, typ uint16, data []byte) []netlink.Attribute {
	at := slices.IndexFunc(attrs, func(a netlink.Attribute) bool { return nl.TypeOf(a) == typ })
	switch {
	case data == nil && at >= 0:
		return slices.Delete(slices.Clone(attrs), at, at+1)
	case data == nil:
		return attrs
	case at >= 0:
		attrs = slices.Clone(attrs)
		// A new Attribute, because the old one carries the length of the old data.
		attrs[at] = netlink.Attribute{Type: attrs[at].Type, Data: data}
		return attrs
	}
	return append(slices.Clone(attrs), netlink.Attribute{Type: typ, Data: data})
}

// family returns rtm_family, the first byte of the header.
func (r rawRoute) family() byte { return r.header[0] }

// table returns the table's number, preferably from the attribute: the field in the header has 8
// bits only.
//
// RTA_TABLE exists since 2.6.19. Tables above 255 have RT_TABLE_COMPAT (252) in the header.
func (r rawRoute) table() uint32 {
	if t := r.uint32(unix.RTA_TABLE); t != 0 {
		return t
	}
	return uint32(r.header[4])
}

// destination returns the prefix. An absent RTA_DST means every address of the family.
func (r rawRoute) destination() (netip.Prefix, bool) {
	var a netip.Addr
	switch r.family() {
	case unix.AF_INET:
		a = netip.IPv4Unspecified()
	case unix.AF_INET6:
		a = netip.IPv6Unspecified()
	default:
		return netip.Prefix{}, false
	}
	if b := r.find(unix.RTA_DST); b != nil {
		d, ok := netip.AddrFromSlice(b)
		if !ok || d.Is4() != a.Is4() {
			return netip.Prefix{}, false
		}
		a = d
	}
	p := netip.PrefixFrom(a, int(r.header[1]))
	return p, p.IsValid()
}

// route returns the view of a route. ok is false for address families other than IP.
func (r rawRoute) route(names map[int]string) (out Route, ok bool) {
	p, ok := r.destination()
	if !ok {
		return Route{}, false
	}
	out.Destination = formatDestination(p)
	out.Protocol = protocolName(r.header[5])
	out.Priority = int(r.uint32(unix.RTA_PRIORITY))
	out.Interface = names[int(r.uint32(unix.RTA_OIF))]
	out.Gateway = addrText(r.find(unix.RTA_GATEWAY))
	if via := r.find(unix.RTA_VIA); len(via) > 2 {
		// struct rtvia: u16 family, address; for an IPv4 route through an IPv6 router
		out.Gateway = addrText(via[2:])
	}
	out.Source = addrText(r.find(unix.RTA_PREFSRC))
	// A malformed nest leaves the metrics unset instead of hiding the route.
	//
	// RTA_METRICS is a nest whose attribute types are the RTAX_ numbers of linux/rtnetlink.h. All
	// are u32 except RTAX_CC_ALGO, which is a text. RTAX_LOCK is a bit mask of the metrics that
	// path MTU discovery and similar mechanisms must not override. Two of its bits have names here;
	// all bits survive a change, because changes edit the raw nest.
	metrics, _ := netlink.UnmarshalAttributes(r.find(unix.RTA_METRICS))
	for _, m := range metrics {
		if nl.TypeOf(m) == unix.RTAX_CC_ALGO {
			out.Congestion = unix.ByteSliceToString(m.Data)
			continue
		}
		if len(m.Data) < 4 {
			continue
		}
		v := int(u32(m.Data))
		switch nl.TypeOf(m) {
		case unix.RTAX_WINDOW:
			out.Window = v
		case unix.RTAX_MTU:
			out.MTU = v
		case unix.RTAX_INITCWND:
			out.InitCwnd = v
		case unix.RTAX_INITRWND:
			out.InitRwnd = v
		case unix.RTAX_ADVMSS:
			out.AdvMSS = v
		case unix.RTAX_QUICKACK:
			out.Quickack = v != 0
		case unix.RTAX_RTO_MIN:
			out.RTOMin = v
		case unix.RTAX_FEATURES:
			out.ECN = v&unix.RTAX_FEATURE_ECN != 0
		case unix.RTAX_LOCK:
			for m, b := range metricBits {
				if b.typ == unix.RTAX_LOCK && v&int(b.bit) != 0 {
					out.Locked = append(out.Locked, m)
				}
			}
			slices.Sort(out.Locked)
		}
	}
	return out, true
}

// formatDestination writes the IPv4 default route as ip-route(8) and knob names do. For IPv6
// "default" would be ambiguous, so it remains "::/0".
func formatDestination(p netip.Prefix) string {
	if p.Addr().Is4() && p.Bits() == 0 {
		return "default"
	}
	return p.String()
}

// parseDestination reads "default", a CIDR or a single address.
func parseDestination(s string) (netip.Prefix, error) {
	if s == "default" {
		return netip.PrefixFrom(netip.IPv4Unspecified(), 0), nil
	}
	if a, err := netip.ParseAddr(s); err == nil {
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(s)
	return p.Masked(), err
}

// addrText returns an empty text for an absent attribute and for a length that no IP address has.
func addrText(b []byte) string {
	if a, ok := netip.AddrFromSlice(b); ok {
		return a.String()
	}
	return ""
}

// protocolName returns the name of a route's origin as in /etc/iproute2/rt_protos. It matters to
// the reader of a change: a routing daemon restores its own routes.
func protocolName(p byte) string {
	switch p {
	case unix.RTPROT_REDIRECT:
		return "redirect"
	case unix.RTPROT_KERNEL:
		return "kernel"
	case unix.RTPROT_BOOT:
		return "boot"
	case unix.RTPROT_STATIC:
		return "static"
	case unix.RTPROT_RA:
		return "ra"
	case unix.RTPROT_DHCP:
		return "dhcp"
	case unix.RTPROT_ZEBRA:
		return "zebra"
	case unix.RTPROT_BIRD:
		return "bird"
	case unix.RTPROT_BGP:
		return "bgp"
	case unix.RTPROT_OSPF:
		return "ospf"
	}
	return strconv.Itoa(int(p))
}

// wanted reports whether a route is a unicast route of the main table.
//
// Cloned entries are the exceptions of IPv6 (a learnt path MTU, a redirect), which the kernel drops
// automatically. Local, broadcast and unreachable routes have types other than RTN_UNICAST and
// never carry a measured flow.
func (r rawRoute) wanted() bool {
	return r.table() == unix.RT_TABLE_MAIN && r.header[7] == unix.RTN_UNICAST &&
		u32(r.header[8:])&unix.RTM_F_CLONED == 0
}

// rawRoutes dumps the wanted routes of some families.
func (k kernel) rawRoutes(families ...byte) ([]rawRoute, error) {
	var out []rawRoute
	for _, fam := range families {
		header := make([]byte, sizeRtMsg)
		header[0] = fam
		msgs, err := k.Dump(unix.RTM_GETROUTE, header)
		if errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EOPNOTSUPP) {
			continue // the kernel lacks IPv6
		}
		if err != nil {
			return nil, err
		}
		for _, m := range msgs {
			if m.Header.Type != unix.RTM_NEWROUTE {
				continue
			}
			r, err := parseRawRoute(m.Data)
			if err != nil {
				return nil, err
			}
			// Without IPv6 the kernel may answer with the dump of every family, hence the test.
			if r.family() == fam && r.wanted() {
				out = append(out, r)
			}
		}
	}
	return out, nil
}

// linkNames is read before the routes: a link that appears between the two reads leaves a route
// without a name, not with a wrong one.
func (k kernel) linkNames() (map[int]string, error) {
	links, err := k.Links()
	if err != nil {
		return nil, err
	}
	names := make(map[int]string, len(links))
	for _, l := range links {
		names[l.Index] = l.Name
	}
	return names, nil
}

// list serves reports. For a single route, Get reads no whole table.
func (k kernel) list() ([]Route, error) {
	names, err := k.linkNames()
	if err != nil {
		return nil, err
	}
	raws, err := k.rawRoutes(unix.AF_INET, unix.AF_INET6)
	if err != nil {
		return nil, err
	}
	out := make([]Route, 0, len(raws))
	for _, r := range raws {
		if route, ok := r.route(names); ok {
			out = append(out, route)
		}
	}
	return out, nil
}

// to queries twice: for the table entry (prefix and metrics), and for the resolved route (source,
// and the next hop among several).
//
// Only the answer with RTM_F_FIB_MATCH (4.13) shows the prefix that matched. Only the answer
// without it shows the kernel's decision: the source address and, among several next hops, the one
// for this destination. Neither is certain for a flow, because the hash over several next hops may
// include its ports (fib_multipath_hash_policy).
func (k kernel) to(ip string) (Route, error) {
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		return Route{}, err
	}
	addr = addr.Unmap()
	names, err := k.linkNames()
	if err != nil {
		return Route{}, err
	}
	ask := func(flags uint32) (Route, error) {
		m, err := k.askRoute(addr, zoneIndex(addr.Zone(), names), flags)
		if err != nil {
			return Route{}, err
		}
		raw, err := parseRawRoute(m.Data)
		if err != nil {
			return Route{}, err
		}
		r, ok := raw.route(names)
		if !ok {
			return Route{}, errors.New("answer of another address family")
		}
		return r, nil
	}
	resolved, err := ask(0)
	if err != nil {
		return Route{}, err
	}
	entry, err := ask(unix.RTM_F_FIB_MATCH)
	if err != nil {
		return resolved, nil // kernels before 4.13, and routes that are not table entries
	}
	entry.Interface, entry.Gateway, entry.Source = resolved.Interface, resolved.Gateway, resolved.Source
	return entry, nil
}

// askRoute queries the route of one address; an oif other than 0 restricts it to that link.
func (k kernel) askRoute(addr netip.Addr, oif int, flags uint32) (netlink.Message, error) {
	header := make([]byte, sizeRtMsg)
	header[0], header[1] = family(addr), byte(addr.BitLen())
	binary.NativeEndian.PutUint32(header[8:], flags)
	req, err := nl.Encode(header, func(ae *netlink.AttributeEncoder) {
		ae.Bytes(unix.RTA_DST, addr.AsSlice())
		if oif != 0 {
			ae.Uint32(unix.RTA_OIF, uint32(oif))
		}
	})
	if err != nil {
		return netlink.Message{}, err
	}
	return k.Get(unix.RTM_GETROUTE, req)
}

// zoneIndex returns the index of the link that the zone of a link-local address identifies, by name
// or number.
func zoneIndex(zone string, names map[int]string) int {
	for i, n := range names {
		if zone != "" && n == zone {
			return i
		}
	}
	i, _ := strconv.Atoi(zone)
	return i
}

// createNew makes an "add" fail with EEXIST if the route exists. Without NLM_F_EXCL the kernel
// would change the existing one.
const createNew = netlink.Create | netlink.Excl

func family(a netip.Addr) byte {
	if a.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

// u32 reads in the byte order of the host, which netlink uses.
func u32(b []byte) uint32 { return binary.NativeEndian.Uint32(b) }
