package drops

import (
	"cmp"
	"slices"
	"strings"
)

// Drop is one place where packets of a host died, and how many.
type Drop struct {
	// Place is the counter's name as in host.Counters; with a number sign for the queues' numbers
	// when it is the sum of those of several queues.
	Place string `json:"place"`
	Total uint64 `json:"total"`
	Stage Stage  `json:"stage,omitempty"`
}

// Stage is a part of a packet's way through a host.
type Stage string

// The stages, from the card to the program.
const (
	Card      Stage = "card"      // the card, its bus, its driver, or the kernel's entry
	Ring      Stage = "ring"      // no descriptor was free
	Softnet   Stage = "softnet"   // net.core.netdev_max_backlog or the flow limit
	Qdisc     Stage = "qdisc"     // a queueing discipline
	Conntrack Stage = "conntrack" // the table of connections
	NFQueue   Stage = "nfqueue"   // a program that should have judged the packet
	Neighbour Stage = "neighbour" // no link address for the next hop
	IP        Stage = "ip"
	TCP       Stage = "tcp"
	Socket    Stage = "socket" // the buffer of a UDP socket
)

// Stages lists them along the way, from the card to the program; what is sent goes the other way
// round.
func Stages() []Stage {
	return []Stage{Card, Ring, Softnet, Qdisc, Conntrack, NFQueue, Neighbour, IP, TCP, Socket}
}

// PerGigabyte is how many packets died for each 10⁹ bytes that were carried. 0 where nothing was
// carried: there is then no rate to speak of.
func (d Drop) PerGigabyte(bytes uint64) float64 {
	if bytes == 0 {
		return 0
	}
	return float64(d.Total) / (float64(bytes) / 1e9)
}

// Find lists the places where packets died, the worst first; the list is never nil. counters is the
// difference of a host's counters over a time; drivers names the driver of each interface, so that
// the driver's own counters are understood too (nil: standard counters only).
//
// No packet is counted twice. Where the kernel or a driver counts one packet in two counters, the
// more exact one is believed and subtracted from the other. Where the overlap of two counters is
// unknown, only the larger one is reported, so the sum is a lower bound.
//
// Errors (crc, frame, length) are losses too, but of the cable; packets without a listener are
// missed by no program. Neither is reported.
func Find(counters map[string]uint64, drivers map[string]string) []Drop {
	l := ledger{counters: counters, drivers: drivers, found: []Drop{}}
	l.cards()
	l.host()
	slices.SortFunc(l.found, func(a, b Drop) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(a.Place, b.Place))
	})
	return l.found
}

// Along sorts by stage, and within a stage the worst first.
func Along(drops []Drop) []Drop {
	order := Stages()
	sorted := slices.Clone(drops)
	slices.SortStableFunc(sorted, func(a, b Drop) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Stage), slices.Index(order, b.Stage)),
			cmp.Compare(b.Total, a.Total), cmp.Compare(a.Place, b.Place))
	})
	return sorted
}

// ledger is a list of drops in the making.
type ledger struct {
	counters map[string]uint64
	drivers  map[string]string
	found    []Drop
}

// put tells n packets less those that other counters have told.
func (l *ledger) put(stage Stage, place string, n, told uint64) {
	if n > told {
		l.found = append(l.found, Drop{Place: place, Total: n - told, Stage: stage})
	}
}

// place is a counter of a host that is not a card's. The kernel counts packets of some in others
// too; also names those, which are told by themselves. A star stands for any interface.
type place struct {
	stage Stage
	name  string
	also  []string
}

var places = []place{
	// What the flow limit refuses is in dropped as well (enqueue_to_backlog).
	{Softnet, "softnet.flow_limit", nil},
	{Softnet, "softnet.dropped", []string{"softnet.flow_limit"}},
	{Qdisc, "qdisc.*.drops", nil},
	// A clash that is not resolved is a drop and a failed insertion, and in some kernels one that
	// is resolved is the latter too (__nf_conntrack_confirm). early_drop counts connections that
	// were forgotten, and no packets.
	{Conntrack, "conntrack.drop", nil},
	{Conntrack, "conntrack.insert_failed", []string{"conntrack.drop", "conntrack.clashres"}},
	{NFQueue, "nfqueue.dropped", nil},
	{NFQueue, "nfqueue.user_dropped", nil},
	{Neighbour, "neigh.ipv4.table_fulls", nil},
	{Neighbour, "neigh.ipv4.unresolved_discards", nil},
	{Neighbour, "neigh.ipv6.table_fulls", nil},
	{Neighbour, "neigh.ipv6.unresolved_discards", nil},
	{IP, "Ip.InDiscards", nil},
	{IP, "Ip6.InDiscards", nil},
	// Sending fails with what fails below it (ip_send_skb), and so does the socket (udp_send_skb).
	{IP, "Ip.OutDiscards", []string{"qdisc.*.drops", "neigh.ipv4.table_fulls"}},
	{IP, "Ip6.OutDiscards", []string{"qdisc.*.drops", "neigh.ipv6.table_fulls"}},
	{Socket, "Udp.SndbufErrors", []string{"qdisc.*.drops", "neigh.ipv4.table_fulls"}},
	{Socket, "Udp6.SndbufErrors", []string{"qdisc.*.drops", "neigh.ipv6.table_fulls"}},
	{Socket, "Udp.RcvbufErrors", nil},
	{Socket, "Udp6.RcvbufErrors", nil},
	{Socket, "Udp.MemErrors", nil}, // net.ipv4.udp_mem; apart from RcvbufErrors (__udp_queue_rcv_skb)
	{Socket, "Udp6.MemErrors", nil},
	// Every handshake that a listener refuses is in ListenDrops, whatever the reason
	// (tcp_conn_request).
	{TCP, "TcpExt.ListenOverflows", nil},
	{TCP, "TcpExt.TCPReqQFullDrop", nil},
	{TCP, "TcpExt.ListenDrops", []string{"TcpExt.ListenOverflows", "TcpExt.TCPReqQFullDrop"}},
	// A segment for which pruning made no room is counted once more where it is thrown away
	// (tcp_try_rmem_schedule).
	{TCP, "TcpExt.TCPRcvQDrop", nil},
	{TCP, "TcpExt.TCPOFODrop", nil},
	{TCP, "TcpExt.RcvPruned", []string{"TcpExt.TCPRcvQDrop", "TcpExt.TCPOFODrop"}},
	// how often the out-of-order queue was thrown away; how many segments were in it is not counted
	{TCP, "TcpExt.OfoPruned", nil},
}

// otherTCP tells the further counters of TCP that are called drops: TCPBacklogDrop,
// TCPZeroWindowDrop, PFMemallocDrop, and what later kernels add.
func otherTCP(name string) bool {
	rest, ok := strings.CutPrefix(name, "TcpExt.")
	if !ok || slices.ContainsFunc(places, func(p place) bool { return p.name == name }) {
		return false
	}
	// An acknowledgement that the kernel sets aside on purpose, until data come (TCP_DEFER_ACCEPT),
	// is no loss.
	return rest != "TCPDeferAcceptDrop" && (strings.HasSuffix(rest, "Drop") || strings.HasSuffix(rest, "Drops") ||
		strings.HasSuffix(rest, "Dropped"))
}

// host tells what died behind the cards.
func (l *ledger) host() {
	for _, p := range places {
		var told uint64
		for _, name := range p.also {
			told += l.sum(name)
		}
		if prefix, suffix, many := strings.Cut(p.name, "*"); many {
			for name, n := range l.counters {
				if strings.HasPrefix(name, prefix) && strings.HasSuffix(name, suffix) {
					l.put(p.stage, name, n, 0)
				}
			}
			continue
		}
		// A datagram that the socket could not send may be in Ip.OutDiscards as well, for another
		// reason than those below.
		if name, ok := strings.CutSuffix(p.name, ".SndbufErrors"); ok {
			told = max(told, l.counters[strings.Replace(name, "Udp", "Ip", 1)+".OutDiscards"])
		}
		l.put(p.stage, p.name, l.counters[p.name], told)
	}
	for name, n := range l.counters {
		if otherTCP(name) {
			l.put(TCP, name, n, 0)
		}
	}
}

func (l *ledger) sum(name string) uint64 {
	if prefix, suffix, many := strings.Cut(name, "*"); many {
		return total(l.counters, prefix, suffix)
	}
	return l.counters[name]
}
