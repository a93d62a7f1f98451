package printed

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/host"
)

// protocols maps iproute2's names for the origin of a route to the numbers of rt_protos, where
// package host has the number.
var protocols = map[string]string{
	"gated": "8", "mrt": "10", "dnrouted": "13", "xorp": "14", "ntk": "15", "keepalived": "18", "babel": "42",
	"openr": "99",
	"isis":  "187", "rip": "189", "eigrp": "192",
}

// otherTypes begin routes that forward no packets.
var otherTypes = map[string]bool{
	"local": true, "broadcast": true, "multicast": true, "anycast": true, "blackhole": true, "unreachable": true,
	"prohibit": true, "throw": true, "nat": true,
	"xresolve": true, "cache": true,
}

// ParseRoutes parses "ip route show table all", with -6 or without: the unicast routes of the main
// table, whose lines name no table. six reports that all routes are IPv6, so that a default route
// without a gateway can be classified. IPv6 follows IPv4 if both are present.
func ParseRoutes(text string, six bool) []host.Route {
	var routes []host.Route
	last := false // the line before this one is the last of routes
	for line := range lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		// Further next hops are on lines of their own. Package host has no gateway and no interface
		// for such a route.
		if words[0] == "nexthop" || line[0] == '\t' || line[0] == ' ' {
			// Before Linux 4.2 the IPv6 table also held a clone of its route for each destination in
			// use, which ip shows with "cache" in the next line.
			if words[0] == "cache" && last {
				routes = routes[:len(routes)-1]
			}
			last = false
			continue
		}
		last = false
		if words[0] == "unicast" {
			words = words[1:]
		}
		if len(words) == 0 || otherTypes[words[0]] {
			continue
		}
		// ip names the table of every route except those of main.
		if _, other := after(words, "table"); other {
			continue
		}
		r, isSix, ok := parseRoute(words, six)
		if !ok {
			continue
		}
		six = six || isSix // After the first route of IPv6 all are IPv6.
		routes = append(routes, r)
		last = true
	}
	return routes
}

// parseRoute parses one line. The second result reports IPv6.
func parseRoute(words []string, six bool) (host.Route, bool, bool) {
	var r host.Route
	r.Gateway, _ = after(words, "via")
	family := r.Gateway
	if family == "inet6" || family == "inet" {
		// An IPv4 route through an IPv6 router (Linux 5.2) names the family of the router first.
		r.Gateway, _ = after(words, family)
		family = ""
	}
	_, preference := after(words, "pref") // RFC 4191, of IPv6 alone
	if words[0] == "default" {
		six = six || preference || strings.Contains(family, ":")
		r.Destination = "default"
		if six {
			r.Destination = "::/0"
		}
	} else {
		p, ok := prefix(words[0])
		if !ok {
			return r, false, false
		}
		six = p.Addr().Is6()
		r.Destination = p.String()
	}
	// Metrics that are not set are not printed; "lock" precedes the value of a locked one.
	number := func(key string) int {
		text, _ := after(words, key)
		if text == "lock" { // "mtu lock 1400"
			text, _ = after(words[slices.Index(words, key)+1:], "lock")
		}
		n, _ := strconv.Atoi(text)
		return n
	}
	r.Interface, _ = after(words, "dev")
	r.Source, _ = after(words, "src")
	r.Protocol, _ = after(words, "proto")
	// /etc/iproute2/rt_protos of the host may define further names, which stay as they are because
	// their numbers are not known here.
	if n, known := protocols[r.Protocol]; known {
		r.Protocol = n
	}
	if r.Protocol == "" {
		r.Protocol = "boot" // The one that ip(8) does not print.
	}
	r.Priority = number("metric")
	r.WindowBytes, r.MTUBytes, r.AdvMSSBytes = number("window"), number("mtu"), number("advmss")
	r.InitCwnd, r.InitRwnd = number("initcwnd"), number("initrwnd")
	r.Quickack = number("quickack") != 0
	if features, ok := after(words, "features"); ok {
		r.ECN = strings.Contains(features, "ecn")
	}
	r.RTOMinSec = seconds(words, "rto_min")
	r.Congestion, _ = after(words, "congctl")
	// In the order of package host, which sorts by name.
	if r.Congestion == "lock" {
		r.Congestion, _ = after(words[slices.Index(words, "congctl")+1:], "lock")
		r.Locked = append(r.Locked, "congctl_lock")
	}
	if word, _ := after(words, "mtu"); word == "lock" {
		r.Locked = append(r.Locked, "mtu_lock")
	}
	return r, six, true
}

// seconds parses "200ms", "lock 200ms" and "1s" after a key.
func seconds(words []string, key string) float64 {
	text, _ := after(words, key)
	if text == "lock" {
		text, _ = after(words[slices.Index(words, key)+1:], "lock")
	}
	for _, unit := range []struct {
		suffix string
		times  float64
	}{{"ms", 1e-3}, {"us", 1e-6}, {"s", 1}} {
		if number, ok := strings.CutSuffix(text, unit.suffix); ok {
			if n, err := strconv.ParseFloat(number, 64); err == nil && n >= 0 && n < 1e6 {
				return n * unit.times
			}
		}
	}
	return 0
}

// prefix parses a destination as ip(8) prints it: an address alone is one host, and IPv4 networks
// are printed in full ("10.0.0.0/8").
func prefix(text string) (netip.Prefix, bool) {
	if a, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(a, a.BitLen()), true
	}
	p, err := netip.ParsePrefix(text)
	return p, err == nil
}
