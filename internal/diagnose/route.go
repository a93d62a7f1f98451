package diagnose

import (
	"net/netip"

	"github.com/linerate/linerate/internal/host"
)

// towards finds the interface of one host that carries packets to another, and the route that says so (nil for a directly
// connected network without a route of the main table). address narrows the search when it is known.
func towards(from, to *host.Snapshot, address string) (*host.Interface, *host.Route) {
	if from == nil {
		return nil, nil
	}
	var bestCard *host.Interface
	var bestRoute *host.Route
	best := -1
	for _, target := range targets(from, to, address) {
		card, route, bits := lookup(from, target)
		// A default route leads everywhere, so any more telling address wins over it.
		if card != nil && bits > best {
			bestCard, bestRoute, best = card, route, bits
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
	for _, p := range prefixes(from) {
		own[p.prefix.Addr()] = true
	}
	var all []netip.Addr
	for _, p := range prefixes(to) {
		a := p.prefix.Addr()
		if !own[a] && !a.IsLoopback() && !a.IsLinkLocalUnicast() {
			all = append(all, a)
		}
	}
	return all
}

type ownPrefix struct {
	prefix netip.Prefix
	card   *host.Interface
}

func prefixes(s *host.Snapshot) []ownPrefix {
	var all []ownPrefix
	for i := range s.Interfaces {
		for _, text := range s.Interfaces[i].Addresses {
			if p, err := netip.ParsePrefix(text); err == nil {
				all = append(all, ownPrefix{p, &s.Interfaces[i]})
			}
		}
	}
	return all
}

// lookup is the longest-prefix match of one host for one address: routes first, then connected networks. bits is the length of
// the prefix that matched, 0 for the default route, -1 for none.
func lookup(s *host.Snapshot, a netip.Addr) (card *host.Interface, route *host.Route, bits int) {
	bits = -1
	for i := range s.Routes {
		r := &s.Routes[i]
		length := 0
		if r.Destination != "default" {
			p, err := netip.ParsePrefix(r.Destination)
			if err != nil || !p.Contains(a) {
				continue
			}
			length = p.Bits()
		} else if gw, err := netip.ParseAddr(r.Gateway); err == nil && gw.Is4() != a.Is4() {
			continue
		}
		if length > bits {
			if c := interfaceNamed(s, r.Interface); c != nil {
				card, route, bits = c, r, length
			}
		}
	}
	for _, p := range prefixes(s) {
		if p.prefix.Contains(a) && p.prefix.Bits() > bits {
			card, route, bits = p.card, nil, p.prefix.Bits()
		}
	}
	return card, route, bits
}

func interfaceNamed(s *host.Snapshot, name string) *host.Interface {
	for i := range s.Interfaces {
		if s.Interfaces[i].Name == name {
			return &s.Interfaces[i]
		}
	}
	return nil
}
