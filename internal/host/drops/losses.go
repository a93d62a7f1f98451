package drops

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Loss is one place where packets of the test died.
type Loss struct {
	Place   string `json:"place"`
	Packets uint64 `json:"packets_total"`
	Source  string `json:"source,omitempty"` // the counter that says so; empty: what no counter explains
}

// The places of a [Loss], along the way of a packet.
const (
	SenderSocket      = "sender-socket"      // the sending socket had no room
	SenderConntrack   = "sender-conntrack"   // the table of connections had no room
	SenderNeighbour   = "sender-neighbour"   // the next hop had no link address yet, or the table of neighbours no room
	SenderQdisc       = "sender-qdisc"       // the queue before the card overflowed
	SenderCard        = "sender-card"        // the card or its driver refused
	OnPath            = "path"               // what no counter of either host explains
	ReceiverRing      = "receiver-ring"      // the card found no descriptor
	ReceiverCard      = "receiver-card"      // the card's driver or the kernel's entry dropped
	ReceiverSoftnet   = "receiver-softnet"   // net.core.netdev_max_backlog or the flow limit
	ReceiverConntrack = "receiver-conntrack" // the table of connections had no room
	ReceiverNFQueue   = "receiver-nfqueue"   // a program that judges packets did not keep up
	ReceiverSocket    = "receiver-socket"    // the receiving socket's buffer was full
)

// SocketDrops are what the test's own sockets counted; of all that is known of a loss they alone
// are certain.
type SocketDrops struct {
	Sent     uint64 // datagrams that the sending sockets refused and the test counts as sent
	Received uint64 // datagrams that did not fit into the receiving sockets' buffers (SO_RXQ_OVFL)
}

// suspects are the counters of a host that can explain a loss, in the order in which they are
// believed: those that count one packet for one come before those that mix several reasons.
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
		{ReceiverSoftnet, "softnet.dropped", ""}, // what the flow limit refused is in it
		{ReceiverRing, "nic.", ".rx_missed_errors"},
		{ReceiverRing, "nic.", ".rx_fifo_errors"},
		{ReceiverRing, "nic.", ".rx_over_errors"},
		{ReceiverCard, "nic.", ".rx_dropped"},
	}
)

// Losses explains a loss of lost packets by what the test's own sockets counted and by the counters
// of the sending and the receiving host (differences over the test; nil: not known). The packets of
// all places together are lost, exactly: the sockets' own counts first, then the hosts' counters as
// far as anything is missing, and the rest died on the path. The order is that of a packet's way.
func Losses(lost uint64, own SocketDrops, sender, receiver map[string]uint64) []Loss {
	if lost == 0 {
		return nil
	}
	var found []Loss
	left := lost
	put := func(place string, n uint64, source string) {
		if n = min(n, left); n > 0 {
			found = append(found, Loss{Place: place, Packets: n, Source: source})
			left -= n
		}
	}
	put(SenderSocket, own.Sent, "send errors")
	put(ReceiverSocket, own.Received, "SO_RXQ_OVFL")
	// Some counters count a packet once more that another has already, and that much is taken off
	// them: Udp.RcvbufErrors what the own sockets dropped; a card's rx_dropped what the backlog
	// behind it dropped (enqueue_to_backlog); Udp.SndbufErrors what the qdisc refused
	// (udp_send_skb); a send that failed may have failed in the table of connections (EPERM).
	counted := map[string]uint64{
		ReceiverSocket: own.Received, ReceiverCard: receiver["softnet.dropped"],
		SenderSocket: own.Sent + total(sender, "qdisc.", ".drops"), SenderConntrack: own.Sent,
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
	// The receiver before the sender: what its counters hold arrived at it for certain, and the
	// sender's qdisc may have dropped other traffic.
	blame(receiverSuspects, receiver)
	blame(senderSuspects, sender)
	put(OnPath, left, "")
	slices.SortStableFunc(found, func(a, b Loss) int { return cmp.Compare(station(a.Place), station(b.Place)) })
	return found
}

// total sums the counters whose names start and end so.
func total(counters map[string]uint64, prefix, suffix string) uint64 {
	var sum uint64
	for name, n := range counters {
		if strings.HasPrefix(name, prefix) && strings.HasSuffix(name, suffix) {
			sum += n
		}
	}
	return sum
}

// station numbers the places along the way.
func station(place string) int {
	return slices.Index([]string{
		SenderSocket, SenderConntrack, SenderNeighbour, SenderQdisc, SenderCard, OnPath,
		ReceiverRing, ReceiverCard, ReceiverSoftnet, ReceiverConntrack, ReceiverNFQueue, ReceiverSocket,
	}, place)
}

// Merge joins the losses of both directions, those of the same place and source into one.
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
