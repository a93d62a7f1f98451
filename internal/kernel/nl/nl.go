package nl

import "errors"

// ErrNotSupported reports that the OS has no netlink, or that the kernel or driver lacks the
// operation.
var ErrNotSupported = errors.New("not supported by this kernel, driver or operating system")

// ErrNotApplied reports that the kernel accepted a change but a read-back shows the old state.
// Either another setting prevents it (TSO without scatter-gather, GRO without receive checksums) or
// the driver refused silently.
var ErrNotApplied = errors.New("accepted by the kernel but not in effect")

// Link is one network interface as rtnetlink reports it.
//
// Strings are the kernel's own. Indices belong to the queried namespace, except ParentIndex.
type Link struct {
	Index      int
	Name       string
	Kind       string // veth, vlan, bond, bridge, tun, "" for hardware
	MAC        string
	MTU        int // bytes
	MinMTU     int // bytes; 0: the kernel (before 4.18) or the driver does not report it
	MaxMTU     int // bytes; 0: as MinMTU, or no limit
	TxQueueLen int // packets
	TxQueues   int // transmit queues allocated at creation; the used ones are Channels
	RxQueues   int
	Up         bool // IFF_UP
	Carrier    bool // IFF_LOWER_UP
	Qdisc      string
	// the other end of a pair (IsPair; possibly an index in another namespace), or the device below
	// a VLAN; 0: none
	ParentIndex int
	MasterIndex int // bridge or bond it is a port of; 0: none

	VLANID       int    // 1 to 4094 of a VLAN device; 0: none, or a priority tag only
	VLANProtocol string // of a VLAN device: 802.1Q or 802.1ad, as ip-link(8) writes them
	// of a bond: balance-rr, active-backup, balance-xor, broadcast, 802.3ad, balance-tlb,
	// balance-alb
	BondMode string

	// The largest packet that the stack merges (GRO) or passes down in one piece (GSO), in bytes
	// with headers; 0: the kernel does not report it. The values without "IPv4" hold for IPv6, and
	// before Linux 6.3 for IPv4 too.
	GROMaxBytes     int
	GSOMaxBytes     int
	GROIPv4MaxBytes int
	GSOIPv4MaxBytes int
}

// SizeLimit names one of the four limits of a link on packets that the stack merges or splits. The
// names are those of ip-link(8).
type SizeLimit string

// The limits that SetSizeLimit writes, in bytes with headers. Setting one of the general limits to
// 65536 or less sets its IPv4 counterpart too (netif_set_gso_max_size, netif_set_gro_max_size).
const (
	LimitGRO     SizeLimit = "gro_max_size"
	LimitGSO     SizeLimit = "gso_max_size"
	LimitGROIPv4 SizeLimit = "gro_ipv4_max_size"
	LimitGSOIPv4 SizeLimit = "gso_ipv4_max_size"
)

// SizeLimit returns one of the limits in bytes, or 0 if the kernel does not report it.
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

// Qdisc is one queueing discipline with its totals.
//
// Overlimits counts how often a shaper (tbf) had to wait, which is its normal work. Drops counts
// the packets lost here.
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
	Options        []byte // as the kernel reports them; package tc interprets them
}

// RootParent is the parent of the discipline at the root of a link (TC_H_ROOT).
const RootParent uint32 = 0xffffffff

// QdiscNode is the configuration of one queueing discipline of a link: its place and its options.
// Package tc reads the options.
//
// The upper half of a handle holds its number. A discipline that the kernel installed as the
// default has handle 0 until it is replaced. The parent of a child of mq is the handle of mq with
// the number of the transmit queue, counted from 1, in the lower half.
type QdiscNode struct {
	Kind    string
	Handle  uint32
	Parent  uint32 // RootParent, or a class of another discipline
	Options []byte // the attribute TCA_OPTIONS; nil: none
}

// IsPair reports whether interfaces of a kind come in pairs, of which each is the parent of the
// other and neither carries it: veth, vxcan, and netkit (Linux 6.7).
func IsPair(kind string) bool { return kind == "veth" || kind == "netkit" || kind == "vxcan" }
