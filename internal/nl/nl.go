package nl

import "errors"

// ErrNotSupported is answered where the OS has no netlink, or the driver lacks the operation.
var ErrNotSupported = errors.New("not supported by this kernel, driver or operating system")

// Link is one network interface as rtnetlink tells it.
type Link struct {
	Index       int
	Name        string
	Kind        string // veth, vlan, bond, bridge, tun, "" for hardware
	MAC         string
	MTU         int
	TxQueueLen  int
	Up          bool // IFF_UP
	Carrier     bool // IFF_LOWER_UP
	Qdisc       string
	ParentIndex int
	MasterIndex int
}

// Address is one address of a link in CIDR form.
type Address struct {
	Index int
	CIDR  string
}

// Route is one route of the main table. Zero metrics are not set.
type Route struct {
	Destination string // CIDR or "default"
	Gateway     string
	Interface   string
	Source      string
	Window      int // bytes
	MTU         int
	InitCwnd    int
	InitRwnd    int
	AdvMSS      int
	Quickack    bool
	Congestion  string
}

// Ring holds current and maximum descriptors of one direction.
type Ring struct{ Current, Max uint32 }

// Feature is one offload; Fixed means the driver does not let it change.
type Feature struct{ On, Fixed bool }

// Channels are the queue counts of a card.
type Channels struct{ Rx, MaxRx, Tx, MaxTx, Other, MaxOther, Combined, MaxCombined uint32 }

// Qdisc is one queueing discipline with its totals.
type Qdisc struct {
	Interface    string
	Kind         string
	Parent       uint32
	Handle       uint32
	Drops        uint64
	Requeues     uint64
	Overlimits   uint64
	BacklogBytes uint64
	Bytes        uint64
	Packets      uint64
}

// DriverInfo names the driver behind a link.
type DriverInfo struct{ Driver, Version, Firmware, Bus string }
