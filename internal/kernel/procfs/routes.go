package procfs

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Route is one route of the main table, with the few properties that /proc reports; netlink also
// reports initial windows and congestion control.
type Route struct {
	Destination netip.Prefix // 0.0.0.0/0 and ::/0 are the default routes; bits after the prefix are kept as printed
	Gateway     netip.Addr   // the zero Addr: directly connected
	Interface   string
	WindowBytes int // the clamp of the advertised window; 0: none
	AdvMSSBytes int // the MSS to announce; 0: taken from the MTU
}

// Flags of a route (include/uapi/linux/route.h, ipv6_route.h).
const (
	routeUp      = 0x0001
	routeGateway = 0x0002
	routeReject  = 0x0200
	routeAnycast = 0x00100000
	routeLocal   = 0x80000000
)

// BigEndian reports whether a host of this architecture is big-endian. /proc/net/route prints its
// addresses in host byte order. arch is a GOARCH or the machine of uname(2); an unknown one is
// assumed to be little-endian, as all remaining ones are.
func BigEndian(arch string) bool {
	switch arch {
	case "s390x", "ppc64", "mips", "mips64", "s390", "parisc", "sparc64":
		return true
	}
	return false
}

// mssHeaders is the constant that fib_route_seq_show adds to the advertised MSS to print it as an
// MTU: IPv4 and TCP headers, in bytes.
const mssHeaders = 40

// ParseRoutes reads /proc/net/route (fib_route_seq_show in net/ipv4/fib_trie.c): Iface Destination
// Gateway Flags RefCnt Use Metric Mask MTU Window IRTT, with addresses as one hexadecimal word in
// host byte order, given by bigEndian. The MTU column is not the route's MTU but its advertised MSS
// plus 40. Routes that are down or reject are omitted. RefCnt, Use and IRTT are ignored, because
// they have no meaning since Linux removed its route cache (3.6).
func ParseRoutes(b []byte, bigEndian bool) ([]Route, error) {
	var routes []Route
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] == "Iface" {
			continue
		}
		// The last column, IRTT, is not needed; the kernel pads every line with blanks to 127
		// bytes.
		if len(f) < 10 {
			return routes, fmt.Errorf("line %.60q: %w", line, ErrFormat)
		}
		to, err1 := routeWord(f[1], bigEndian)
		via, err2 := routeWord(f[2], bigEndian)
		mask, err3 := routeWord(f[7], bigEndian)
		flags, err4 := strconv.ParseUint(f[3], 16, 32)
		mtu, err5 := strconv.Atoi(f[8])
		window, err6 := strconv.Atoi(f[9])
		if err1 != nil || err2 != nil || err3 != nil || err4 != nil || err5 != nil || err6 != nil {
			return routes, fmt.Errorf("line %.60q: %w", line, ErrFormat)
		}
		if flags&routeUp == 0 || flags&routeReject != 0 {
			continue
		}
		// The kernel has no routes with holes in the mask; the leading ones are the length.
		bits := 0
		for m := binary.BigEndian.Uint32(mask[:]); m&(1<<31) != 0; m <<= 1 {
			bits++
		}
		r := Route{Interface: f[0], WindowBytes: max(0, window),
			Destination: netip.PrefixFrom(netip.AddrFrom4(to), bits)}
		if flags&routeGateway != 0 {
			r.Gateway = netip.AddrFrom4(via)
		}
		if mtu > mssHeaders {
			r.AdvMSSBytes = mtu - mssHeaders
		}
		routes = append(routes, r)
	}
	return routes, nil
}

// routeWord converts "0100020A" to the four bytes of the address: the kernel prints the word as
// stored in its memory (%08X of a __be32).
func routeWord(text string, bigEndian bool) (a [4]byte, err error) {
	n, err := strconv.ParseUint(text, 16, 32)
	if err != nil {
		return a, err
	}
	if bigEndian {
		binary.BigEndian.PutUint32(a[:], uint32(n))
	} else {
		binary.LittleEndian.PutUint32(a[:], uint32(n))
	}
	return a, nil
}

// ParseRoutes6 reads /proc/net/ipv6_route (ipv6_route_native_seq_show in net/ipv6/ip6_fib.c):
// destination, length, source, length, next hop, metric, references, use, flags, interface; all
// numbers hexadecimal, addresses in network byte order. The file contains all tables, including the
// local one: local, anycast, rejecting and multicast entries do not lead to a peer and are omitted.
func ParseRoutes6(b []byte) ([]Route, error) {
	var routes []Route
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if len(f) < 10 {
			return routes, fmt.Errorf("line %.60q: %w", line, ErrFormat)
		}
		to, err1 := address6(f[0])
		bits, err2 := strconv.ParseUint(f[1], 16, 8)
		via, err3 := address6(f[4])
		flags, err4 := strconv.ParseUint(f[8], 16, 32)
		if err1 != nil || err2 != nil || err3 != nil || err4 != nil || bits > 128 {
			return routes, fmt.Errorf("line %.60q: %w", line, ErrFormat)
		}
		if flags&routeUp == 0 || flags&(routeReject|routeAnycast|routeLocal) != 0 || to.IsMulticast() {
			continue
		}
		r := Route{Interface: f[9], Destination: netip.PrefixFrom(to, int(bits))}
		if flags&routeGateway != 0 {
			r.Gateway = via
		}
		routes = append(routes, r)
	}
	return routes, nil
}

// address6 reads an address as the IPv6 files print it, 32 digits without colons (%pi6).
func address6(text string) (netip.Addr, error) {
	var a [16]byte
	if len(text) != 32 {
		return netip.Addr{}, ErrFormat
	}
	if _, err := hex.Decode(a[:], []byte(text)); err != nil {
		return netip.Addr{}, err
	}
	return netip.AddrFrom16(a), nil
}

// ParseIfInet6 reads /proc/net/if_inet6 (if6_seq_show in net/ipv6/addrconf.c): address, interface
// index, prefix length, scope, flags (all hexadecimal), interface. It returns the addresses by
// interface, in the order of the file. IPv4 has no such file.
func ParseIfInet6(b []byte) (map[string][]netip.Prefix, error) {
	found := make(map[string][]netip.Prefix)
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if len(f) != 6 {
			return found, fmt.Errorf("line %.60q: %w", line, ErrFormat)
		}
		a, err := address6(f[0])
		bits, err2 := strconv.ParseUint(f[2], 16, 8)
		if err != nil || err2 != nil || bits > 128 {
			return found, fmt.Errorf("line %.60q: %w", line, ErrFormat)
		}
		found[f[5]] = append(found[f[5]], netip.PrefixFrom(a, int(bits)))
	}
	return found, nil
}
