package nl

import (
	"errors"
	"slices"
)

// ErrNotSupported is answered where the OS has no netlink, or the driver lacks the operation.
var ErrNotSupported = errors.New("not supported by this kernel, driver or operating system")

// ErrNotApplied is answered when the kernel accepted a change and a read-back shows the old state: another
// setting holds it (TSO without scatter-gather, GRO without receive checksums) or the driver refused in
// silence.
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

	VLANID       int    // 1 to 4094 of a VLAN device; 0: none, or a priority tag only
	VLANProtocol string // of a VLAN device: 802.1Q or 802.1ad, as ip-link(8) writes them
	BondMode     string // of a bond: balance-rr, active-backup, balance-xor, broadcast, 802.3ad, balance-tlb, balance-alb

	// The largest packet that the stack merges (GRO) or hands down in one piece (GSO), in bytes, headers
	// included; 0: the kernel does not tell. The plain ones hold for IPv6, and for IPv4 too until Linux 6.3
	// gave it values of its own.
	GROMaxBytes     int
	GSOMaxBytes     int
	GROIPv4MaxBytes int
	GSOIPv4MaxBytes int
}

// SizeLimit names one of the four limits of a link on packets that the stack merges or splits, in the word
// of ip-link(8).
type SizeLimit string

// The limits that SetSizeLimit writes, in bytes with headers. Setting a plain one to 65536 or less sets
// that of IPv4 too (netif_set_gso_max_size, netif_set_gro_max_size).
const (
	LimitGRO     SizeLimit = "gro_max_size"
	LimitGSO     SizeLimit = "gso_max_size"
	LimitGROIPv4 SizeLimit = "gro_ipv4_max_size"
	LimitGSOIPv4 SizeLimit = "gso_ipv4_max_size"
)

// SizeLimit gives one of the limits, 0 when the kernel does not tell it.
func (l Link) SizeLimit(which SizeLimit) int {
	switch which {
	case LimitGRO:
		return l.GROMaxBytes
	case LimitGSO:
		return l.GSOMaxBytes
	case LimitGROIPv4:
		return l.GROIPv4MaxBytes
	case LimitGSOIPv4:
		return l.GSOIPv4MaxBytes
	}
	return 0
}

// Address is one address of a link in CIDR form.
type Address struct {
	Index int
	CIDR  string
}

// Route is one route of the main table. Zero metrics are not set.
//
// It is a view for rules and reports. Several next hops, encapsulation and further metrics are not in it,
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
	Congestion  string // algorithm of new connections; empty: that of the namespace
	RTOMin      int    // milliseconds: lower bound of the retransmission timeout
	ECN         bool   // new connections ask for explicit congestion notification (RFC 3168)
	Locked      []RouteMetric
}

// RouteMetric names one metric of a route, in the word of ip-route(8).
type RouteMetric string

// The metrics that SetRouteMetric writes. Values are bytes (window, mtu, advmss), segments (initcwnd,
// initrwnd), milliseconds (rto_min), or 0 and 1 (all others). A lock keeps what the kernel learns by
// itself, path MTU discovery above all, or what a program asks for, from overruling the metric.
const (
	MetricWindow   RouteMetric = "window"
	MetricMTU      RouteMetric = "mtu"
	MetricAdvMSS   RouteMetric = "advmss"
	MetricInitCwnd RouteMetric = "initcwnd"
	MetricInitRwnd RouteMetric = "initrwnd"
	MetricQuickack RouteMetric = "quickack"
	MetricRTOMin   RouteMetric = "rto_min"
	MetricECN      RouteMetric = "ecn"

	MetricMTULock     RouteMetric = "mtu_lock"
	MetricCongctlLock RouteMetric = "congctl_lock"
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

// Ring holds current and maximum descriptors of one direction.
type Ring struct{ Current, Max uint32 }

// Feature is one offload; Fixed means the driver does not let it change.
//
// Fixed ones are no finding: nobody can change them.
type Feature struct{ On, Fixed bool }

// Channels are the queue counts of a card.
type Channels struct{ Rx, MaxRx, Tx, MaxTx, Other, MaxOther, Combined, MaxCombined uint32 }

// Pause is the flow control of a link (IEEE 802.3 annex 31B).
//
// With Autoneg, Rx and Tx say what is offered; what holds follows from the offers of both ends (802.3 table 28B-3), and
// most drivers then report that instead.
type Pause struct {
	Autoneg bool // negotiated with the other end rather than forced
	Rx      bool // stops sending when told to
	Tx      bool // tells the other end to stop
}

// EEE is Energy-Efficient Ethernet (IEEE 802.3az): the transmitter sleeps between packets and takes
// microseconds to wake.
type EEE struct {
	Enabled                bool   // wanted on this end
	Active                 bool   // both ends agreed: the link does sleep
	TxLPI                  bool   // the transmitter of this end enters low-power idle
	TxLPITimerMicroseconds uint32 // idle time before it does; 0: at once, or the driver does not tell
}

// FEC is the forward error correction of a link, in the words of ethtool(8): off, rs (clause 91 and 108),
// baser (clause 74), llrs.
type FEC struct {
	Auto   bool     // the driver chooses, by what module and cable want
	Modes  []string // configured, sorted; empty: none
	Active string   // in use; empty: no link, or not told
}

// RSS is how a card spreads flows over its receive queues: the hash of a packet's addresses picks an entry
// of the table, and that names the queue.
//
// The key itself is not kept: who knows it can aim all of his flows at one queue.
type RSS struct {
	HashFunction string   // toeplitz, xor or crc32; empty: the driver does not tell
	KeyBytes     int      // length of the hash key
	Indirection  []uint32 // queue of each entry; empty: no table
}

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
	Options        []byte // as the kernel told them; package tc has their words
}

// RootParent is the parent of the discipline at the root of a link (TC_H_ROOT).
const RootParent uint32 = 0xffffffff

// QdiscNode is one queueing discipline of a link as it is made: where it stands and what it was told.
// Package tc reads the options.
//
// Handles have a number in their upper half; a discipline that the kernel gave a link by itself has the
// handle 0 until somebody replaces it. The parent of a child of mq is the handle of mq with the number of
// the transmit queue, counted from 1, in the lower half.
type QdiscNode struct {
	Kind    string
	Handle  uint32
	Parent  uint32 // RootParent, or a class of another discipline
	Options []byte // the attribute TCA_OPTIONS; nil: none
}

// DriverInfo names the driver behind a link.
type DriverInfo struct{ Driver, Version, Firmware, Bus string }
