package evidence

import (
	"net/netip"

	"github.com/linerate/linerate/internal/host"
)

// towards returns the interface of one host that carries packets to another, and the routes to it:
// one per address of the other host, because it is unknown which of them was used unless address
// says so. The interface is that of the most specific route: a default route leads everywhere, so a
// prefix that covers an address of the other host is better evidence.
//
// On a host with one interface the choice makes no difference; it matters where a management
// network and a data network join the same two hosts.
func towards(from, to *host.Snapshot, address string) (card *host.Interface, routes []host.Route) {
	if from == nil {
		return nil, nil
	}
	best := -1.0
	for _, target := range targets(from, to, address) {
		c, route, ok := from.InterfaceTo(target.String())
		if !ok {
			continue
		}
		routes = append(routes, route)
		if share := prefixShare(route.Destination); share > best {
			card, best = &c, share
		}
	}
	return card, routes
}

// targets returns the addresses at which the other host may be reached. It leaves out addresses
// that both hosts own (a docker bridge, a loopback).
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

// addresses returns every address of a host.
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

// prefixShare returns the part of an address that a route's destination fixes, so that IPv4 and
// IPv6 compare: the default route 0, a bare address 1.
func prefixShare(destination string) float64 {
	if p, err := netip.ParsePrefix(destination); err == nil {
		return float64(p.Bits()) / float64(p.Addr().BitLen())
	}
	if _, err := netip.ParseAddr(destination); err == nil {
		return 1
	}
	return 0
}
