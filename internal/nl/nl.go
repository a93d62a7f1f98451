package nl

import "errors"

// ErrNotSupported is answered where the OS has no netlink, or the driver lacks the operation.
var ErrNotSupported = errors.New("not supported by this kernel, driver or operating system")

// ErrNotApplied is answered when the kernel accepted a change and a read-back shows the old state: another setting holds it (TSO
// without scatter-gather, GRO without receive checksums) or the driver refused in silence.
var ErrNotApplied = errors.New("accepted by the kernel but not in effect")

// Link is one network interface as rtnetlink tells it.
//
// Strings are the kernel's own. Indices are those of the namespace that was asked, ParentIndex excepted.
type Link struct {
	Index       int
	Name        string
	Kind        string // veth, vlan, bond, bridge, tun, "" for hardware
	MAC         string
	MTU         int // bytes
	MinMTU      int // bytes; 0: the kernel (before 4.18) or the driver does not tell
	MaxMTU      int // bytes; 0: as MinMTU, or no limit
	TxQueueLen  int // packets
	TxQueues    int // transmit queues allocated at creation; the used ones are Channels
	RxQueues    int
	Up          bool // IFF_UP
	Carrier     bool // IFF_LOWER_UP
	Qdisc       string
	ParentIndex int // the other end of a veth (possibly an index in another namespace), the device below a VLAN; 0: none
	MasterIndex int // bridge or bond it is a port of; 0: none
}

// Address is one address of a link in CIDR form.
type Address struct {
	Index int
	CIDR  string
}

// Route is one route of the main table. Zero metrics are not set.
//
// It is a view for rules and reports. Several next hops, encapsulation, lock bits and further metrics are not in it,
// and survive a change nevertheless, because changes are made on the kernel's own message.
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
	Congestion  string
}

// RouteMetric names one metric of a route, in the word of ip-route(8).
type RouteMetric string

// The metrics that SetRouteMetric writes. Values are bytes (window, mtu, advmss), segments (initcwnd, initrwnd), or 0 and 1 (quickack).
const (
	MetricWindow   RouteMetric = "window"
	MetricMTU      RouteMetric = "mtu"
	MetricAdvMSS   RouteMetric = "advmss"
	MetricInitCwnd RouteMetric = "initcwnd"
	MetricInitRwnd RouteMetric = "initrwnd"
	MetricQuickack RouteMetric = "quickack"
)

// Metric gives the value of one metric, 0 when it is not set.
func (r Route) Metric(m RouteMetric) int {
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
		if r.Quickack {
			return 1
		}
	}
	return 0
}

// Ring holds current and maximum descriptors of one direction.
type Ring struct{ Current, Max uint32 }

// Feature is one offload; Fixed means the driver does not let it change.
//
// Fixed ones are no finding: nobody can change them.
type Feature struct{ On, Fixed bool }

// Channels are the queue counts of a card.
type Channels struct{ Rx, MaxRx, Tx, MaxTx, Other, MaxOther, Combined, MaxCombined uint32 }

// LinkInfo tells how the medium is attached.
type LinkInfo struct {
	Port        string // twisted-pair, aui, mii, fibre, bnc, direct-attach, none, other
	Transceiver string // internal or external; empty: not known
}

// Qdisc is one queueing discipline with its totals.
//
// Overlimits count how often a shaper (tbf) had to wait, which is its work and no fault; drops are packets that were
// lost here.
type Qdisc struct {
	Interface      string
	Kind           string
	Parent         uint32 // 0xffffffff: root
	Handle         uint32
	Drops          uint64 // packets
	Requeues       uint64
	Overlimits     uint64
	BacklogBytes   uint64
	BacklogPackets uint64
	Bytes          uint64
	Packets        uint64
}

// DriverInfo names the driver behind a link.
type DriverInfo struct{ Driver, Version, Firmware, Bus string }
