package cli

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/peer"
	"github.com/linerate/linerate/internal/peer/reach"
)

// sourceFlags choose the addresses of a measurement, with iperf3's letters.
type sourceFlags struct {
	bind      string
	four, six bool
}

func (s *sourceFlags) add(c *cobra.Command) {
	f := c.Flags()
	f.BoolVarP(&s.four, "ipv4", "4", false, "use IPv4 only")
	f.BoolVarP(&s.six, "ipv6", "6", false, "use IPv6 only")
	f.StringVarP(&s.bind, "bind", "B", "",
		"send everything from this `ADDRESS` of this host, or from the address of this interface")
}

// resolve returns the address family ("4", "6" or empty for any) and the near address (the zero
// value: the route chooses) that the flags ask for.
func (s *sourceFlags) resolve(ctx context.Context, target string) (family string, from netip.Addr, err error) {
	switch {
	case s.four && s.six:
		return "", from, usagef("--ipv4 and --ipv6: give one of them")
	case s.four:
		family = "4"
	case s.six:
		family = "6"
	}
	if s.bind == "" {
		return family, from, nil
	}
	scheme, address, foreign := reach.Foreign(target)
	if foreign && !slices.Contains([]string{"iperf3", "iperf2", "ttcp"}, scheme) {
		return "", from, usagef("--bind: %s:// has no choice of address; linerate's own far end, iperf3, iperf2 "+
			"and ttcp have", scheme)
	}
	if from, err = nearAddress(ctx, s.bind, familyOf(family, target, address)); err != nil {
		return "", from, err
	}
	own := "4"
	if from.Is6() {
		own = "6"
	}
	if family != "" && family != own {
		return "", from, usagef("--bind %s: is an IPv%s address, and --ipv%s allows none", s.bind, own, family)
	}
	if of := familyOf("", target, address); of != "" && of != own {
		return "", from, usagef("--bind %s: is an IPv%s address, and %s an IPv%s one", s.bind, own, target, of)
	}
	return own, from, nil
}

// familyOf returns the family that was asked for, or else that of a target that is an address.
func familyOf(family string, targets ...string) string {
	for _, t := range targets {
		if h, _, err := net.SplitHostPort(t); err == nil {
			t = h
		}
		if a, err := netip.ParseAddr(strings.Trim(t, "[]")); err == nil && family == "" {
			family = "4"
			if a.Is6() && !a.Is4In6() {
				family = "6"
			}
		}
	}
	return family
}

// nearAddress reads an address of this host, or the name of one of its interfaces, and proves that
// a socket may have it. Of an interface it takes the first address of the family; empty: IPv4
// before IPv6.
func nearAddress(ctx context.Context, text, family string) (netip.Addr, error) {
	a, err := netip.ParseAddr(text)
	if i, named := net.InterfaceByName(ownName(text)); err != nil && named == nil {
		if a, err = firstAddress(i, family); err != nil {
			return a, err
		}
	}
	if err != nil {
		return a, usageError{flagError{fmt.Errorf("--bind %s: neither an address nor an interface of this host", text),
			"linerate inspect shows the interfaces; iperf3's ADDRESS%DEVICE is the ADDRESS alone here"}}
	}
	a = a.Unmap()
	var any net.ListenConfig
	probe, err := any.ListenPacket(ctx, "udp", netip.AddrPortFrom(a, 0).String())
	if err != nil {
		return a, usageError{flagError{fmt.Errorf("--bind %s: %w", text, innermost(err)),
			"name an address that this host has"}}
	}
	_ = probe.Close() // nothing was sent on it
	return a, nil
}

func firstAddress(i *net.Interface, family string) (netip.Addr, error) {
	all, err := i.Addrs()
	if err != nil {
		return netip.Addr{}, fmt.Errorf("read the addresses of %s: %w", i.Name, err)
	}
	var best netip.Addr
	for _, text := range all {
		prefix, err := netip.ParsePrefix(text.String())
		if err != nil {
			continue
		}
		a := prefix.Addr().Unmap()
		if a.IsLinkLocalUnicast() && a.Is6() {
			a = a.WithZone(i.Name)
		}
		fits := family == "" || family == "4" == a.Is4()
		// A link-local address reaches only the hosts of one link: any other one comes first.
		if fits && (!best.IsValid() || best.Is6() && a.Is4() && family == "" || best.IsLinkLocalUnicast() &&
			!a.IsLinkLocalUnicast()) {
			best = a
		}
	}
	if !best.IsValid() {
		kind := "IP"
		if family != "" {
			kind = "IPv" + family
		}
		return best, usagef("--bind %s: the interface has no %s address", i.Name, kind)
	}
	return best, nil
}

// inFamily returns the address of another program's server with its name resolved in one family.
func inFamily(ctx context.Context, family, address string) (string, error) {
	if family == "" {
		return address, nil
	}
	name, port, err := net.SplitHostPort(address)
	if err != nil {
		name, port = strings.Trim(address, "[]"), ""
	}
	a, err := peer.InFamily(ctx, family, name)
	if err != nil || port == "" {
		return a, err
	}
	return net.JoinHostPort(a, port), nil
}
