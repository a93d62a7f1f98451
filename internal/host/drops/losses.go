package drops

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/base/sorting"
)

// Loss is one place that lost packets of the test.
type Loss struct {
	Place   string `json:"place"`
	Packets uint64 `json:"packets_total"`
	Source  string `json:"source,omitempty"` // the counter; empty for what no counter explains
}

// The places of a [Loss], in the order of a packet's path.
const (
	SenderSocket      = "sender-socket"      // the sending socket had no room
	SenderFirewall    = "sender-firewall"    // IP was given the packet and did not send it
	SenderConntrack   = "sender-conntrack"   // the connection tracking table was full
	SenderNeighbour   = "sender-neighbour"   // the next hop had no link address yet, or the neighbour table was full
	SenderQdisc       = "sender-qdisc"       // the queue before the NIC overflowed
	SenderCard        = "sender-card"        // the NIC or its driver dropped the packet
	OnPath            = "path"               // no counter of either host explains the loss
	PathFragment      = "path-fragment"      // a part of the datagram arrived, and not all of it
	ReceiverRing      = "receiver-ring"      // the NIC found no descriptor
	ReceiverCard      = "receiver-card"      // the NIC's driver or the kernel's entry dropped the packet
	ReceiverSoftnet   = "receiver-softnet"   // net.core.netdev_max_backlog or the flow limit
	ReceiverConntrack = "receiver-conntrack" // the connection tracking table was full
	ReceiverNFQueue   = "receiver-nfqueue"   // a program that gives verdicts on packets did not keep up
	ReceiverFirewall  = "receiver-firewall"  // IP received the packet and did not deliver it
	ReceiverFragments = "receiver-fragments" // no memory to put the datagram together
	ReceiverSocket    = "receiver-socket"    // the receiving socket's buffer was full
)

// mostInBundle is UDP_MAX_SEGMENTS of the kernels before Linux 6.9, and the most that we send.
const mostInBundle = 64

// fewUndelivered packets of a test may be for groups that this host has not joined.
const fewUndelivered = 5

// SocketDrops holds the counts of the test's own sockets, the only certain ones among all counters
// of a loss.
type SocketDrops struct {
	Sent     uint64 // datagrams that the sending sockets refused and the test counts as sent
	Received uint64 // datagrams that did not fit into the receiving sockets' buffers (SO_RXQ_OVFL)
}

// The suspects are the counters of a host that can explain a loss, in order of trust: counters of
// exactly one packet each come before those that mix several reasons.
var (
	senderSuspects = []struct{ place, prefix, suffix string }{
		{SenderQdisc, "qdisc.", ".drops"},
		{SenderCard, "nic.", ".tx_fifo_errors"},
		{SenderCard, "nic.", ".tx_dropped"},
		{SenderConntrack, "conntrack.drop", ""},
		{SenderNeighbour, "neigh.ipv4.table_fulls", ""},
		{SenderNeighbour, "neigh.ipv4.unresolved_discards", ""},
		{SenderNeighbour, "neigh.ipv6.table_fulls", ""},
		{SenderNeighbour, "neigh.ipv6.unresolved_discards", ""},
		{SenderSocket, "Udp.SndbufErrors", ""},
		{SenderSocket, "Udp6.SndbufErrors", ""},
	}
	receiverSuspects = []struct{ place, prefix, suffix string }{
		{ReceiverSocket, "Udp.RcvbufErrors", ""},
		{ReceiverSocket, "Udp6.RcvbufErrors", ""},
		{ReceiverSocket, "Udp.MemErrors", ""},
		{ReceiverSocket, "Udp6.MemErrors", ""},
		{ReceiverConntrack, "conntrack.drop", ""},
		{ReceiverNFQueue, "nfqueue.dropped", ""},
		{ReceiverNFQueue, "nfqueue.user_dropped", ""},
		{ReceiverSoftnet, "softnet.dropped", ""}, // includes what the flow limit refused
		{ReceiverRing, "nic.", ".rx_missed_errors"},
		{ReceiverRing, "nic.", ".rx_fifo_errors"},
		{ReceiverRing, "nic.", ".rx_over_errors"},
		{ReceiverCard, "nic.", ".rx_dropped"},
	}
)

// Losses explains the loss of lost packets from the counts of the test's own sockets and from the
// counters of the sending and the receiving host (differences over the test; nil: not known). The
// packets of all places add up to lost exactly: first the sockets' own counts, then the hosts'
// counters as far as packets are missing; the path lost the rest. The places are in the order of a
// packet's path.
func Losses(lost uint64, own SocketDrops, sender, receiver map[string]uint64) []Loss {
	if lost == 0 {
		return nil
	}
	var found []Loss
	left := lost
	put := func(place string, n uint64, source string) {
		if n = min(n, left); n > 0 {
			found = Merge(found, []Loss{{Place: place, Packets: n, Source: source}})
			left -= n
		}
	}
	// A send over a full qdisc fails with ENOBUFS (net_xmit_errno), so the packets that the qdisc
	// counted are among those that the sockets could not send.
	failed := own.Sent - min(own.Sent, total(sender, "qdisc.", ".drops"))
	// So does one that the packet filter or a full connection tracking table refuses (EPERM).
	untracked := min(failed, sender["conntrack.drop"])
	refused := max(Unsent(sender), untracked)
	if refused >= fewUndelivered && refused*mostInBundle >= failed {
		refused = failed // which IP counts by the bundle (UDP_SEGMENT)
	}
	refused = min(failed, refused) - untracked
	put(SenderConntrack, untracked, "conntrack.drop")
	put(SenderFirewall, refused, "OutRequests, OutTransmits")
	put(SenderSocket, failed-untracked-refused, "send errors")
	put(ReceiverSocket, own.Received, "SO_RXQ_OVFL")
	// Some counters count again a packet that another one has counted, and are reduced by that
	// much: Udp.RcvbufErrors by what the test's own sockets dropped; a NIC's rx_dropped by what the
	// backlog behind it dropped (enqueue_to_backlog); Udp.SndbufErrors by what the qdisc refused
	// (udp_send_skb).
	counted := map[string]uint64{
		ReceiverSocket: own.Received, ReceiverCard: receiver["softnet.dropped"],
		SenderSocket: own.Sent + total(sender, "qdisc.", ".drops"), SenderConntrack: untracked,
	}
	blame := func(suspects []struct{ place, prefix, suffix string }, counters map[string]uint64) {
		for _, s := range suspects {
			for _, name := range slices.Sorted(maps.Keys(counters)) {
				if name != s.prefix && (s.suffix == "" || !strings.HasPrefix(name, s.prefix) ||
					!strings.HasSuffix(name, s.suffix)) {
					continue
				}
				n := counters[name]
				known := min(n, counted[s.place])
				counted[s.place] -= known
				put(s.place, n-known, name)
			}
		}
	}
	// The receiver comes before the sender: its counters hold packets that certainly arrived,
	// whereas the sender's qdisc may have dropped other traffic.
	blame(receiverSuspects, receiver)
	fragments := Reassemblies(sender, receiver)
	put(ReceiverFragments, fragments.RefusedDatagrams(), "ReasmFails")
	// Before the sender's, whose counters may have lost other packets. A fragment that rules drop
	// before it could be put together leaves an incomplete datagram.
	if n := Undelivered(receiver); n >= fewUndelivered+fragments.Incomplete {
		n -= fragments.Incomplete
		put(ReceiverFirewall, uint64(float64(n)*inOnePacket(receiver)), "InReceives, InDelivers")
	}
	blame(senderSuspects, sender)
	put(PathFragment, fragments.Incomplete, "ReasmReqds, ReasmOKs")
	put(OnPath, left, "")
	sorting.StableFunc(found, func(a, b Loss) int { return cmp.Compare(station(a.Place), station(b.Place)) })
	return found
}

// total sums the counters with the prefix and the suffix.
func total(counters map[string]uint64, prefix, suffix string) uint64 {
	var sum uint64
	for name, n := range counters {
		if strings.HasPrefix(name, prefix) && strings.HasSuffix(name, suffix) {
			sum += n
		}
	}
	return sum
}

// station returns the position of a place on the path.
func station(place string) int {
	return slices.Index([]string{
		SenderSocket, SenderFirewall, SenderConntrack, SenderNeighbour, SenderQdisc, SenderCard, OnPath, PathFragment,
		ReceiverRing, ReceiverCard, ReceiverSoftnet, ReceiverConntrack, ReceiverNFQueue, ReceiverFirewall,
		ReceiverFragments, ReceiverSocket,
	}, place)
}

// Merge joins losses, such as those of both directions: it sums those with the same place and
// source.
func Merge(up, down []Loss) []Loss {
	for _, d := range down {
		i := slices.IndexFunc(up, func(u Loss) bool { return u.Place == d.Place && u.Source == d.Source })
		if i < 0 {
			up = append(up, d)
			continue
		}
		up[i].Packets += d.Packets
	}
	return up
}
