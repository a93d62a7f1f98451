package diagnose

import (
	"net/netip"

	"github.com/linerate/linerate/internal/host"
)

// towards finds the interface of one host that carries packets to another, and the route that says so. address is where the other
// host was reached, when that is known; else its addresses are tried, and the most telling route wins: a default route leads
// everywhere, so any prefix that really covers an address of the other host is better evidence.
func towards(from, to *host.Snapshot, address string) (*host.Interface, *host.Route) {
	if from == nil {
		return nil, nil
	}
	var bestCard *host.Interface
	var bestRoute *host.Route
	best := -1
	for _, target := range targets(from, to, address) {
		card, route, ok := from.InterfaceTo(target.String())
		if bits := prefixLength(route.Destination); ok && bits > best {
			bestCard, bestRoute, best = &card, &route, bits
		}
	}
	return bestCard, bestRoute
}

// targets lists the addresses that the other host may be reached at. Addresses that both hosts own (a docker bridge, a loopback)
// lead nowhere and are left out.
func targets(from, to *host.Snapshot, address string) []netip.Addr {
	if ap, err := netip.ParseAddrPort(address); err == nil {
		return []netip.Addr{ap.Addr().Unmap()}
	}
	if a, err := netip.ParseAddr(address); err == nil {
		return []netip.Addr{a.Unmap()}
	}
	if to == nil {
		return nil
	}
	own := map[netip.Addr]bool{}
	for _, a := range addresses(from) {
		own[a] = true
	}
	var all []netip.Addr
	for _, a := range addresses(to) {
		if !own[a] && !a.IsLoopback() && !a.IsLinkLocalUnicast() {
			all = append(all, a)
		}
	}
	return all
}

func addresses(s *host.Snapshot) []netip.Addr {
	var all []netip.Addr
	for _, i := range s.Interfaces {
		for _, text := range i.Addresses {
			if p, err := netip.ParsePrefix(text); err == nil {
				all = append(all, p.Addr().Unmap())
			}
		}
	}
	return all
}

// prefixLength ranks a route's destination: the default route 0, a bare address longest.
func prefixLength(destination string) int {
	if p, err := netip.ParsePrefix(destination); err == nil {
		return p.Bits()
	}
	if a, err := netip.ParseAddr(destination); err == nil {
		return a.BitLen()
	}
	return 0
}
