package host

import (
	"net/netip"

	"github.com/linerate/linerate/internal/kernel/procfs"
)

// readRoutes takes the routes from netlink, or from /proc if netlink was not asked. /proc lacks
// initial windows and congestion control.
func readRoutes(src *source, t *facts, arch string, said *notes) []Route {
	if t.routesErr == nil {
		return t.routes
	}
	said.add("routes by netlink", t.routesErr)
	var routes []Route
	b, err := src.Net("route")
	if err == nil {
		var four []procfs.Route
		four, err = procfs.ParseRoutes(b, procfs.BigEndian(arch))
		routes = appendRoutes(routes, four)
	}
	if err != nil {
		said.add("routes", err)
	}
	// A kernel without IPv6 has no such file.
	if b, err = src.Net("ipv6_route"); err == nil {
		six, err := procfs.ParseRoutes6(b)
		if err != nil {
			said.add("IPv6 routes", err)
		}
		routes = appendRoutes(routes, six)
	}
	return routes
}

// appendRoutes converts routes of /proc to the model. A route's own MTU is not among them: the
// column of that name in /proc is a different value.
func appendRoutes(routes []Route, more []procfs.Route) []Route {
	for _, r := range more {
		route := Route{Destination: destination(r.Destination), Interface: r.Interface, WindowBytes: r.WindowBytes,
			AdvMSSBytes: r.AdvMSSBytes}
		if r.Gateway.IsValid() {
			route.Gateway = r.Gateway.String()
		}
		routes = append(routes, route)
	}
	return routes
}

// destination formats a prefix as ip(8) does: IPv4's default route as "default", IPv6's as ::/0.
func destination(to netip.Prefix) string {
	if to.Bits() == 0 && to.Addr().Is4() {
		return "default"
	}
	return to.String()
}
