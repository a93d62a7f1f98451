package wire

import (
	"net"
	"net/netip"
	"slices"
)

// Addresses returns the addresses of this host at which other hosts can reach the listener, the
// likeliest one first. A listener on one address has that one; a host that is connected to nothing
// has its loopback address.
func (l *Listener) Addresses() []netip.Addr {
	own := l.addr.AddrPort().Addr()
	if !own.IsUnspecified() {
		return []netip.Addr{own.Unmap()}
	}
	return hostAddresses(own.Is4())
}

// HostAddresses returns the addresses of this host at which other hosts can reach a listener on
// every address, the likeliest one first.
func HostAddresses() []netip.Addr { return hostAddresses(false) }

func hostAddresses(only4 bool) []netip.Addr {
	found := reachable(present(), defaultSources())
	if only4 {
		found = slices.DeleteFunc(found, netip.Addr.Is6)
	}
	if len(found) == 0 {
		found = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}
	}
	return found
}

// present returns the addresses of interfaces that have a carrier, in the kernel's order.
func present() []netip.Addr {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil
	}
	var all []netip.Addr
	for _, i := range interfaces {
		if i.Flags&net.FlagRunning == 0 || i.Flags&net.FlagLoopback != 0 {
			continue
		}
		addresses, _ := i.Addrs() // the interface may have gone
		for _, a := range addresses {
			if prefix, err := netip.ParsePrefix(a.String()); err == nil {
				all = append(all, prefix.Addr().Unmap())
			}
		}
	}
	return all
}

// defaultSources returns the source addresses of the default routes, IPv4 first. Connecting a UDP
// socket looks up the route and sends nothing; the addresses are from RFC 5737 and RFC 3849, for
// documentation.
func defaultSources() []netip.Addr {
	var all []netip.Addr
	for _, far := range []string{"192.0.2.1:9", "[2001:db8::1]:9"} {
		c, err := net.Dial("udp", far)
		if err != nil {
			continue // no route
		}
		if a, ok := c.LocalAddr().(*net.UDPAddr); ok {
			all = append(all, a.AddrPort().Addr().Unmap())
		}
		_ = c.Close() // nothing was sent
	}
	return all
}

// reachable orders addresses: those of the default routes first, then IPv4 before IPv6. It drops
// link-local ones, which need the name of the other host's interface, and doubles.
func reachable(present, outgoing []netip.Addr) []netip.Addr {
	var all []netip.Addr
	add := func(list []netip.Addr, fits func(netip.Addr) bool) {
		for _, a := range list {
			if a.IsGlobalUnicast() && fits(a) && slices.Contains(present, a) && !slices.Contains(all, a) {
				all = append(all, a)
			}
		}
	}
	add(outgoing, netip.Addr.IsValid)
	add(present, netip.Addr.Is4)
	add(present, netip.Addr.Is6)
	return all
}
