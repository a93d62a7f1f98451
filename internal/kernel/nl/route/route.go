package route

import "slices"

// Route is one route of the main table. A zero metric is not set.
//
// It is a view for rules and reports. It omits several next hops, encapsulation and further
// metrics, which survive a change nevertheless, because changes edit the kernel's own message.
type Route struct {
	Destination string // CIDR or "default" (IPv4); the IPv6 default is "::/0"
	Gateway     string // empty: on link, or several next hops (then Interface is empty as well)
	Interface   string
	Source      string // preferred source address
	Priority    int    // the metric column of ip-route(8): the kernel uses the lowest of a destination
	Protocol    string // its origin: kernel, boot, static, ra, dhcp, … or a number
	Window      int    // bytes: upper bound of the window that this host advertises
	MTU         int    // bytes
	InitCwnd    int    // segments
	InitRwnd    int    // segments
	AdvMSS      int    // bytes
	Quickack    bool
	Congestion  string // algorithm of new connections; empty: that of the namespace
	RTOMin      int    // milliseconds: lower bound of the retransmission timeout
	ECN         bool   // new connections request explicit congestion notification (RFC 3168)
	Locked      []Metric
}

// Metric names one metric of a route as ip-route(8) does.
type Metric string

// The metrics that SetMetric writes. Values are bytes (window, mtu, advmss), segments (initcwnd,
// initrwnd), milliseconds (rto_min), or 0 and 1 (all others). A lock prevents the kernel's own
// measurements, above all path MTU discovery, and requests of programs from overriding the metric.
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

// Metric returns the value of one metric, or 0 if it is not set.
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
