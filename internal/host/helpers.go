package host

import (
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// Setting gives the value of a knob ("sysctl:net.ipv4.tcp_rmem"), fields separated by single
// blanks. False: not known on this host.
func (s *Snapshot) Setting(knob string) (string, bool) {
	for _, set := range s.Settings {
		if set.Knob == knob {
			return set.Value, true
		}
	}
	return "", false
}

// SysctlNumber gives a setting that is one decimal number, by its name without the class
// ("net.core.netdev_budget"). False: it is not known, or has several numbers or a word in it.
func (s *Snapshot) SysctlNumber(name string) (int64, bool) {
	v, ok := s.Setting("sysctl:" + name)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(v, 10, 64)
	return n, err == nil
}

// Interface gives the interface of that name.
func (s *Snapshot) Interface(name string) (Interface, bool) {
	for _, i := range s.Interfaces {
		if i.Name == name {
			return i, true
		}
	}
	return Interface{}, false
}

// InterfaceTo tells by which interface and route packets to ip leave: an own address is reached
// over lo, else the longest matching prefix among the routes and the networks of the interfaces'
// addresses decides; of equal routes the first one listed wins. It knows the main table only:
// policy rules are the kernel's to judge. False: ip is not an address, or nothing leads there.
//
// A snapshot of a far host is asked just like the near one, which is why this is arithmetic on a
// document and not a question to the kernel.
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
	to = to.Unmap() // ::ffff:192.0.2.1, as sockets for both versions print IPv4 peers, is routed as IPv4.

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
	// The kernel has a route for the network of each address, but archives without routes have
	// addresses more often than not.
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

// parsePrefix reads "10.0.0.0/8" or a bare address.
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

// Uptime is how long the system had been up at the moment of the snapshot: what its counters were
// counted in. False: one of the two moments is not known, or they contradict each other, as in an
// archive that was put together by hand.
func (s *Snapshot) Uptime() (time.Duration, bool) {
	if s.Time.IsZero() || s.BootTime.IsZero() {
		return 0, false
	}
	up := s.Time.Sub(s.BootTime)
	return up, up > 0
}

// VirtualMachine tells that a hypervisor is below this host, a container alone is not one.
func (s *Snapshot) VirtualMachine() bool {
	return s.Virtualization != "" && s.Virtualization != inContainer
}

// Triple reads a "min default max" value such as that of tcp_rmem, in whatever unit the setting has
// (bytes; pages for tcp_mem). False: not exactly three decimal numbers.
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
