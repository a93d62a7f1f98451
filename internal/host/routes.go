package host

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Flags of a route (include/uapi/linux/route.h, ipv6_route.h).
const (
	routeUp      = 0x0001
	routeGateway = 0x0002
	routeReject  = 0x0200
	routeAnycast = 0x00100000
	routeLocal   = 0x80000000
)

// readRoutes takes the routes from netlink; where nobody asked it, /proc tells less: no initial windows, no congestion control.
func readRoutes(src *source, t *told, arch string, said *notes) []Route {
	if t.routesErr == nil {
		return t.routes
	}
	said.add("routes by netlink", t.routesErr)
	var routes []Route
	b, err := src.net("route")
	if err == nil {
		routes, err = parseRoutes(string(b), bigEndian(arch))
	}
	if err != nil {
		said.add("routes", err)
	}
	// A kernel without IPv6 has no such file.
	if b, err = src.net("ipv6_route"); err == nil {
		more, err := parseRoutes6(string(b))
		if err != nil {
			said.add("IPv6 routes", err)
		}
		routes = append(routes, more...)
	}
	return routes
}

// bigEndian tells the byte order in which /proc/net/route prints its addresses: the host's own.
func bigEndian(arch string) bool {
	switch arch {
	case "s390x", "ppc64", "mips", "mips64", "s390", "parisc", "sparc64":
		return true
	}
	return false
}

// parseRoutes reads /proc/net/route: Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT, addresses as one hexadecimal
// word in host order. The MTU column is not the route's MTU but its advertised MSS and 40 (fib_route_seq_show).
func parseRoutes(text string, big bool) ([]Route, error) {
	var routes []Route
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] == "Iface" {
			continue
		}
		if len(f) < 10 {
			return routes, fmt.Errorf("line %.60q: %w", line, errFormat)
		}
		to, err1 := routeWord(f[1], big)
		via, err2 := routeWord(f[2], big)
		mask, err3 := routeWord(f[7], big)
		flags, err4 := strconv.ParseUint(f[3], 16, 32)
		mtu, err5 := strconv.Atoi(f[8])
		window, err6 := strconv.Atoi(f[9])
		if err1 != nil || err2 != nil || err3 != nil || err4 != nil || err5 != nil || err6 != nil {
			return routes, fmt.Errorf("line %.60q: %w", line, errFormat)
		}
		if flags&routeUp == 0 || flags&routeReject != 0 {
			continue
		}
		bits := 0
		for m := binary.BigEndian.Uint32(mask[:]); m&(1<<31) != 0; m <<= 1 {
			bits++
		}
		r := Route{Interface: f[0], WindowBytes: max(0, window), Destination: destination(netip.AddrFrom4(to), bits)}
		if flags&routeGateway != 0 {
			r.Gateway = netip.AddrFrom4(via).String()
		}
		if mtu > 40 {
			r.AdvMSSBytes = mtu - 40
		}
		routes = append(routes, r)
	}
	return routes, nil
}

func routeWord(text string, big bool) (a [4]byte, err error) {
	n, err := strconv.ParseUint(text, 16, 32)
	if err != nil {
		return a, err
	}
	if big {
		binary.BigEndian.PutUint32(a[:], uint32(n))
	} else {
		binary.LittleEndian.PutUint32(a[:], uint32(n))
	}
	return a, nil
}

// parseRoutes6 reads /proc/net/ipv6_route: destination, length, source, length, next hop, metric, references, use, flags, interface;
// all numbers hexadecimal. Local, anycast, rejecting and multicast entries are no ways to a peer.
func parseRoutes6(text string) ([]Route, error) {
	var routes []Route
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if len(f) < 10 {
			return routes, fmt.Errorf("line %.60q: %w", line, errFormat)
		}
		to, err1 := routeWord6(f[0])
		bits, err2 := strconv.ParseUint(f[1], 16, 8)
		via, err3 := routeWord6(f[4])
		flags, err4 := strconv.ParseUint(f[8], 16, 32)
		if err1 != nil || err2 != nil || err3 != nil || err4 != nil || bits > 128 {
			return routes, fmt.Errorf("line %.60q: %w", line, errFormat)
		}
		if flags&routeUp == 0 || flags&(routeReject|routeAnycast|routeLocal) != 0 || to.IsMulticast() {
			continue
		}
		r := Route{Interface: f[9], Destination: destination(to, int(bits))}
		if flags&routeGateway != 0 {
			r.Gateway = via.String()
		}
		routes = append(routes, r)
	}
	return routes, nil
}

func routeWord6(text string) (netip.Addr, error) {
	var a [16]byte
	if len(text) != 32 {
		return netip.Addr{}, errFormat
	}
	if _, err := hex.Decode(a[:], []byte(text)); err != nil {
		return netip.Addr{}, err
	}
	return netip.AddrFrom16(a), nil
}

func destination(to netip.Addr, bits int) string {
	if bits == 0 && to.Is4() {
		return "default"
	}
	return netip.PrefixFrom(to, bits).String()
}
