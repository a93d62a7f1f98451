package route

import "slices"

// Route is one route of the main table. Zero metrics are not set.
//
// It is a view for rules and reports. Several next hops, encapsulation and further metrics are not
// in it, and survive a change nevertheless, because changes are made on the kernel's own message.
type Route struct {
	Destination string // CIDR or "default" (IPv4); the IPv6 default is "::/0"
	Gateway     string // empty: on link, or several next hops (then Interface is empty as well)
	Interface   string
	Source      string // preferred source address
	Priority    int    // the metric column of ip-route(8): of routes to one destination the lowest is used
	Protocol    string // who made it: kernel, boot, static, ra, dhcp, … or a number
	Window      int    // bytes: upper bound of the window that we advertise
	MTU         int    // bytes
	InitCwnd    int    // segments
	InitRwnd    int    // segments
	AdvMSS      int    // bytes
	Quickack    bool
	Congestion  string // algorithm of new connections; empty: that of the namespace
	RTOMin      int    // milliseconds: lower bound of the retransmission timeout
	ECN         bool   // new connections ask for explicit congestion notification (RFC 3168)
	Locked      []Metric
}

// Metric names one metric of a route, in the word of ip-route(8).
type Metric string

// The metrics that SetMetric writes. Values are bytes (window, mtu, advmss), segments (initcwnd,
// initrwnd), milliseconds (rto_min), or 0 and 1 (all others). A lock keeps what the kernel learns
// by itself, path MTU discovery above all, or what a program asks for, from overruling the metric.
const (
	MetricWindow   Metric = "window"
	MetricMTU      Metric = "mtu"
	MetricAdvMSS   Metric = "advmss"
	MetricInitCwnd Metric = "initcwnd"
	MetricInitRwnd Metric = "initrwnd"
	MetricQuickack Metric = "quickack"
	MetricRTOMin   Metric = "rto_min"
	MetricECN      Metric = "ecn"

	MetricMTULock     Metric = "mtu_lock"
	MetricCongctlLock Metric = "congctl_lock"
)

// Metric gives the value of one metric, 0 when it is not set.
func (r Route) Metric(m Metric) int {
	switch m {
	case MetricWindow:
		return r.Window
	case MetricMTU:
		return r.MTU
	case MetricAdvMSS:
		return r.AdvMSS
	case MetricInitCwnd:
		return r.InitCwnd
	case MetricInitRwnd:
		return r.InitRwnd
	case MetricQuickack:
		return zeroOrOne(r.Quickack)
	case MetricRTOMin:
		return r.RTOMin
	case MetricECN:
		return zeroOrOne(r.ECN)
	case MetricMTULock, MetricCongctlLock:
		return zeroOrOne(slices.Contains(r.Locked, m))
	}
	return 0
}

func zeroOrOne(on bool) int {
	if on {
		return 1
	}
	return 0
}
