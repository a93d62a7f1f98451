package nl

// LinkCount is the index of one counter in [LinkCounters]. The counters are those of struct
// rtnl_link_stats64 (linux/if_link.h), in its order; Documentation/networking/statistics.rst
// explains them.
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
	LinkCounts  // the number of counters
)

// LinkCounters holds the counters of one interface at one moment, and those of its properties that
// change while it runs.
type LinkCounters struct {
	Index       int
	Name        string
	Kind        string // as in Link
	Hardware    uint16 // ARPHRD_ETHER etc., linux/if_arp.h
	Loopback    bool
	Up          bool
	Carrier     bool
	MTU         int // bytes
	ParentIndex int // as in Link; also 0 if it is in another namespace
	MasterIndex int // as in Link
	// PermanentMAC is the address of the hardware, independent of any address set later. It is
	// empty if the link has none, or if the kernel is older than 5.6.
	PermanentMAC   string
	CarrierChanges uint32 // since the link was created; 0 on kernels before 3.15
	// Counts are totals since the link was created. The kernel keeps 64 bits for each; a driver may
	// keep fewer bits and wrap to zero.
	Counts [LinkCounts]uint64
}

// QdiscCounters holds the counters of one queueing discipline. Drops, requeues and overlimits have
// 32 bits.
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

// LinkCounters reads the counters of all interfaces in two dumps. It reuses the memory of former,
// an earlier answer, which may be nil. It omits a link that appeared or disappeared between the two
// dumps. It needs Linux 4.7.
func (c *Client) LinkCounters(former []LinkCounters) ([]LinkCounters, error) {
	v, err := c.k.linkCounters(former)
	return v, Wrap("read counters of links", "", err)
}

// QdiscCounters reads the counters of all queueing disciplines in one dump. It reuses the memory of
// former, an earlier answer, which may be nil.
func (c *Client) QdiscCounters(former []QdiscCounters) ([]QdiscCounters, error) {
	v, err := c.k.qdiscCounters(former)
	return v, Wrap("read counters of qdiscs", "", err)
}
