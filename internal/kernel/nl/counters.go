package nl

// LinkCount is the place of one counter in [LinkCounters]: those of struct rtnl_link_stats64
// (linux/if_link.h), in its order. Their meaning is in Documentation/networking/statistics.rst.
type LinkCount int

// The counters of a link.
const (
	RxPackets LinkCount = iota
	TxPackets
	RxBytes
	TxBytes
	RxErrors
	TxErrors
	RxDropped
	TxDropped
	RxMulticast
	Collisions
	RxLengthErrors
	RxOverErrors
	RxCRCErrors
	RxFrameErrors
	RxFIFOErrors
	RxMissedErrors
	TxAbortedErrors
	TxCarrierErrors
	TxFIFOErrors
	TxHeartbeatErrors
	TxWindowErrors
	RxCompressed
	TxCompressed
	RxNoHandler // since Linux 4.6
	LinkCounts  // how many there are
)

// LinkCounters is one interface at one moment: as much of it as changes while it works, and what it
// has counted.
type LinkCounters struct {
	Index       int
	Name        string
	Kind        string // as in Link
	Hardware    uint16 // ARPHRD_ETHER and so on, linux/if_arp.h
	Loopback    bool
	Up          bool
	Carrier     bool
	MTU         int // bytes
	ParentIndex int // as in Link; 0 too where it is of another namespace
	MasterIndex int // as in Link
	// of the hardware, whatever address the link was given; empty: it has none, or the kernel is
	// older than 5.6
	PermanentMAC   string
	CarrierChanges uint32 // since the link was made; kernels before 3.15 say 0
	// Counts are of the namespace's whole life of the link. The kernel keeps 64 bits for each, a
	// driver may have fewer and start over at zero.
	Counts [LinkCounts]uint64
}

// QdiscCounters is what one queueing discipline has counted; drops, requeues and overlimits have 32
// bits.
type QdiscCounters struct {
	Index          int // of the link
	Kind           string
	Parent, Handle uint32 // as in Qdisc
	Drops          uint32
	Requeues       uint32
	Overlimits     uint32
	BacklogBytes   uint32
	BacklogPackets uint32
}

// LinkCounters reads all interfaces with their counters in two dumps, into the memory of a former
// answer if there is one. A link that came or went between the two is left out. It needs Linux 4.7.
func (c *Client) LinkCounters(former []LinkCounters) ([]LinkCounters, error) {
	v, err := c.k.linkCounters(former)
	return v, Wrap("read counters of links", "", err)
}

// QdiscCounters reads what all queueing disciplines have counted in one dump, into the memory of a
// former answer if there is one.
func (c *Client) QdiscCounters(former []QdiscCounters) ([]QdiscCounters, error) {
	v, err := c.k.qdiscCounters(former)
	return v, Wrap("read counters of qdiscs", "", err)
}
