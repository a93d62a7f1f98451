package ruleset

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// ParsePacket reads the shape of a packet: in eth0 tcp 10.1.2.3:80 -> 10.2.3.4:5000 established.
// The interfaces (in NAME, out NAME), the protocol, the ports and the state may lack; IPv6
// addresses with a port are in brackets. Without a state the packet is the first of its connection.
func ParsePacket(text string) (Packet, error) {
	p := Packet{State: StateNew}
	bad := func(format string, a ...any) (Packet, error) {
		return Packet{}, fmt.Errorf("packet %q: %s", text, fmt.Sprintf(format, a...))
	}
	words := strings.Fields(strings.ReplaceAll(strings.ReplaceAll(text, "→", " -> "), "->", " -> "))
	var addresses []netip.AddrPort
	ported := [2]bool{}
	arrow, named := false, false
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch {
		case (w == "in" || w == "out") && i+1 < len(words):
			i++
			if w == "in" {
				p.In = words[i]
			} else {
				p.Out = words[i]
			}
		case w == "->":
			if arrow || len(addresses) != 1 {
				return bad("one address before the arrow, and one behind it")
			}
			arrow = true
		default:
			if n, ok := StateNumber(w); ok {
				p.State = uint8(n)
				continue
			}
			if n, ok := ProtocolNumber(w); ok && !named {
				p.Protocol, named = uint8(n), true
				continue
			}
			a, has, err := addressPort(w)
			if err != nil {
				return bad("%q is no address, protocol or state", w)
			}
			if len(addresses) == 2 || len(addresses) == 1 && !arrow {
				return bad("one address before the arrow, and one behind it")
			}
			ported[len(addresses)] = has
			addresses = append(addresses, a)
		}
	}
	if len(addresses) != 2 {
		return bad("one address before the arrow, and one behind it")
	}
	if addresses[0].Addr().Is4() != addresses[1].Addr().Is4() {
		return bad("addresses of two protocols")
	}
	p.Source, p.SourcePort = addresses[0].Addr(), addresses[0].Port()
	p.Destination, p.DestinationPort = addresses[1].Addr(), addresses[1].Port()
	switch {
	case (ported[0] || ported[1]) && !named:
		p.Protocol = 6
	case (ported[0] || ported[1]) && !hasPorts(p.Protocol):
		return bad("protocol %s has no ports", Protocol.Format(Number(uint64(p.Protocol))))
	}
	return p, nil
}

func addressPort(w string) (a netip.AddrPort, has bool, err error) {
	if one, err := netip.ParseAddr(strings.Trim(w, "[]")); err == nil && one.Zone() == "" {
		return netip.AddrPortFrom(one, 0), false, nil
	}
	at := strings.LastIndexByte(w, ':')
	if at < 0 {
		return a, false, strconv.ErrSyntax
	}
	one, err := netip.ParseAddr(strings.Trim(w[:at], "[]"))
	if err != nil || one.Zone() != "" {
		return a, false, strconv.ErrSyntax
	}
	port, err := strconv.ParseUint(w[at+1:], 10, 16)
	return netip.AddrPortFrom(one, uint16(port)), true, err
}

// Text returns the packet as [ParsePacket] reads it.
func (p Packet) Text() string {
	var words []string
	if p.In != "" {
		words = append(words, "in "+p.In)
	}
	if p.Out != "" {
		words = append(words, "out "+p.Out)
	}
	side := func(a netip.Addr, port uint16) string {
		if hasPorts(p.Protocol) {
			return netip.AddrPortFrom(a, port).String()
		}
		return a.String()
	}
	words = append(words, Protocol.Format(Number(uint64(p.Protocol))), side(p.Source, p.SourcePort), "->",
		side(p.Destination, p.DestinationPort), State.Format(Number(uint64(p.State))))
	return strings.Join(words, " ")
}

// Hooks returns the hooks that the packet passes, by its interfaces: it is forwarded with both,
// received with In alone, and sent with Out alone.
func (p Packet) Hooks() []string {
	switch {
	case p.In != "" && p.Out != "":
		return []string{"ingress", "prerouting", "forward", "postrouting", "egress"}
	case p.Out != "":
		return []string{"output", "postrouting", "egress"}
	}
	return []string{"ingress", "prerouting", "input"}
}
