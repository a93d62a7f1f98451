package host

import (
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// Setting returns the value of a knob ("sysctl:net.ipv4.tcp_rmem"), fields separated by single
// blanks. ok is false if it is not known on this host.
func (s *Snapshot) Setting(knob string) (string, bool) {
	for _, set := range s.Settings {
		if set.Knob == knob {
			return set.Value, true
		}
	}
	return "", false
}

// SysctlNumber returns a setting that is one decimal number, by its name without the class
// ("net.core.netdev_budget"). ok is false if it is not known or is not a single number.
func (s *Snapshot) SysctlNumber(name string) (int64, bool) {
	v, ok := s.Setting("sysctl:" + name)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(v, 10, 64)
	return n, err == nil
}

// Interface returns the interface with that name.
func (s *Snapshot) Interface(name string) (Interface, bool) {
	for _, i := range s.Interfaces {
		if i.Name == name {
			return i, true
		}
	}
	return Interface{}, false
}

// InterfaceTo returns the interface and route by which packets to ip leave. An own address is
// reached over lo; otherwise the longest matching prefix among the routes and the networks of the
// interfaces' addresses decides, and among equal routes the first listed one. It uses the main
// table only and ignores policy rules. ok is false if ip is not an address or no route leads there.
//
// It computes on the document and does not ask the kernel, so that it works for snapshots of far
// hosts too.
func (s *Snapshot) InterfaceTo(ip string) (Interface, Route, bool) {
	// A link-local address names its interface itself (RFC 4007: fe80::1%eth0).
	if i := strings.IndexByte(ip, '%'); i >= 0 {
		if dev, ok := s.Interface(ip[i+1:]); ok {
			return dev, Route{Destination: ip[:i], Interface: dev.Name}, true
		}
		ip = ip[:i]
	}
	to, err := netip.ParseAddr(ip)
	if err != nil {
		return Interface{}, Route{}, false
	}
	to = to.Unmap() // sockets for both versions print IPv4 peers as ::ffff:192.0.2.1, which is routed as IPv4

	best := -1
	var route Route
	offer := func(bits int, r Route) {
		if bits > best {
			best, route = bits, r
		}
	}
	for _, r := range s.Routes {
		if r.Destination == "default" {
			if to.Is4() {
				offer(0, r)
			}
			continue
		}
		if p, ok := parsePrefix(r.Destination); ok && p.Contains(to) {
			offer(p.Bits(), r)
		}
	}
	// The kernel has a route for the network of each address, but archives without routes usually
	// have addresses.
	for _, dev := range s.Interfaces {
		for _, cidr := range dev.Addresses {
			p, err := netip.ParsePrefix(cidr)
			if err != nil {
				continue
			}
			if p.Addr().Unmap() == to {
				if lo, ok := s.Interface("lo"); ok {
					return lo, Route{Destination: ip, Interface: "lo"}, true
				}
			}
			if p.Contains(to) {
				offer(p.Bits(), Route{Destination: p.Masked().String(), Interface: dev.Name})
			}
		}
	}
	if best < 0 {
		return Interface{}, Route{}, false
	}
	dev, ok := s.Interface(route.Interface)
	return dev, route, ok
}

// parsePrefix parses "10.0.0.0/8" or a bare address.
func parsePrefix(text string) (netip.Prefix, bool) {
	if p, err := netip.ParsePrefix(text); err == nil {
		return p, true
	}
	a, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Prefix{}, false
	}
	return netip.PrefixFrom(a, a.BitLen()), true
}

// Uptime returns how long the system had been up at the moment of the snapshot, the period of its
// counters. ok is false if one of the two moments is not known, or if they contradict each other,
// as in an archive assembled by hand.
func (s *Snapshot) Uptime() (time.Duration, bool) {
	if s.Time.IsZero() || s.BootTime.IsZero() {
		return 0, false
	}
	up := s.Time.Sub(s.BootTime)
	return up, up > 0
}

// VirtualMachine reports whether the host runs on a hypervisor. A container alone does not count.
func (s *Snapshot) VirtualMachine() bool {
	return s.Virtualization != "" && s.Virtualization != inContainer
}

// Triple parses a "min default max" value such as tcp_rmem, in the unit of the setting (bytes;
// pages for tcp_mem). ok is false unless it has exactly three decimal numbers.
func Triple(value string) (min, def, max int64, ok bool) {
	fields := strings.Fields(value)
	if len(fields) != 3 {
		return 0, 0, 0, false
	}
	var n [3]int64
	for i, f := range fields {
		v, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, 0, 0, false
		}
		n[i] = v
	}
	return n[0], n[1], n[2], true
}
