package drops

import (
	"cmp"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/base/sorting"
)

// Drop is one place where a host dropped packets, with their number.
type Drop struct {
	// Place is the counter's name as in host.Counters. For a sum over several queues a number sign
	// replaces the queues' numbers.
	Place string `json:"place"`
	Total uint64 `json:"total"`
	Stage Stage  `json:"stage,omitempty"`
}

// Stage is a part of a packet's path through a host.
type Stage string

// The stages, from the NIC to the program.
const (
	Card      Stage = "card"      // the NIC, its bus, its driver, or the kernel's entry
	Ring      Stage = "ring"      // no descriptor was free
	Softnet   Stage = "softnet"   // net.core.netdev_max_backlog or the flow limit
	Qdisc     Stage = "qdisc"     // a queueing discipline
	Conntrack Stage = "conntrack" // the connection tracking table
	NFQueue   Stage = "nfqueue"   // a program that gives verdicts on packets
	Filter    Stage = "filter"    // rules of a packet filter, which no counter has: see Undelivered
	Neighbour Stage = "neighbour" // no link address for the next hop
	IP        Stage = "ip"
	TCP       Stage = "tcp"
	Socket    Stage = "socket" // the buffer of a UDP socket
)

// Stages lists the stages from the NIC to the program. Outgoing packets pass them in the opposite
// order.
func Stages() []Stage {
	return []Stage{Card, Ring, Softnet, Qdisc, Conntrack, NFQueue, Filter, Neighbour, IP, TCP, Socket}
}

// PerGigabyte returns the number of packets dropped per 10⁹ bytes carried, 0 if no bytes were
// carried.
func (d Drop) PerGigabyte(bytes uint64) float64 {
	if bytes == 0 {
		return 0
	}
	return float64(d.Total) / (float64(bytes) / 1e9)
}

// Find lists the places where packets were dropped, the worst first; the list is never nil.
// counters is the difference of a host's counters over a time. drivers names the driver of each
// interface, so that Find also understands the driver's own counters (nil: standard counters only).
//
// Find counts no packet twice. Where the kernel or a driver counts one packet in two counters, Find
// uses the more exact one and subtracts it from the other. Where the overlap of two counters is
// unknown, it reports only the larger one, so the sum is a lower bound.
//
// Find reports neither errors (crc, frame, length), which are losses of the cable, nor packets
// without a listener, which no program misses.
func Find(counters map[string]uint64, drivers map[string]string) []Drop {
	l := ledger{counters: counters, drivers: drivers, found: []Drop{}}
	l.cards()
	l.host()
	sorting.Func(l.found, func(a, b Drop) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(a.Place, b.Place))
	})
	return l.found
}

// Along sorts drops by stage, and within a stage the worst first.
func Along(drops []Drop) []Drop {
	order := Stages()
	sorted := slices.Clone(drops)
	sorting.StableFunc(sorted, func(a, b Drop) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Stage), slices.Index(order, b.Stage)),
			cmp.Compare(b.Total, a.Total), cmp.Compare(a.Place, b.Place))
	})
	return sorted
}

// ledger collects drops.
type ledger struct {
	counters map[string]uint64
	drivers  map[string]string
	found    []Drop
}

// put adds n packets less those that other counters have reported.
func (l *ledger) put(stage Stage, place string, n, counted uint64) {
	if n > counted {
		l.found = append(l.found, Drop{Place: place, Total: n - counted, Stage: stage})
	}
}

// place is a counter of a host that is not a NIC's. The kernel counts packets of some places in
// other counters too; also names those, which are reported separately. A star matches any
// interface.
type place struct {
	stage Stage
	name  string
	also  []string
}

var places = []place{
	// softnet.dropped includes what the flow limit refuses (enqueue_to_backlog).
	{Softnet, "softnet.flow_limit", nil},
	{Softnet, "softnet.dropped", []string{"softnet.flow_limit"}},
	{Qdisc, "qdisc.*.drops", nil},
	// An unresolved clash is a drop and a failed insertion; in some kernels a resolved one is a
	// failed insertion too (__nf_conntrack_confirm). early_drop counts evicted connections, not
	// packets.
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
	// Sending fails if a layer below fails (ip_send_skb), and then so does the socket
	// (udp_send_skb).
	{IP, "Ip.OutDiscards", []string{"qdisc.*.drops", "neigh.ipv4.table_fulls"}},
	{IP, "Ip6.OutDiscards", []string{"qdisc.*.drops", "neigh.ipv6.table_fulls"}},
	{Socket, "Udp.SndbufErrors", []string{"qdisc.*.drops", "neigh.ipv4.table_fulls"}},
	{Socket, "Udp6.SndbufErrors", []string{"qdisc.*.drops", "neigh.ipv6.table_fulls"}},
	{Socket, "Udp.RcvbufErrors", nil},
	{Socket, "Udp6.RcvbufErrors", nil},
	{Socket, "Udp.MemErrors", nil}, // net.ipv4.udp_mem; separate from RcvbufErrors (__udp_queue_rcv_skb)
	{Socket, "Udp6.MemErrors", nil},
	// ListenDrops counts every handshake that a listener refuses, for any reason
	// (tcp_conn_request).
	{TCP, "TcpExt.ListenOverflows", nil},
	{TCP, "TcpExt.TCPReqQFullDrop", nil},
	{TCP, "TcpExt.ListenDrops", []string{"TcpExt.ListenOverflows", "TcpExt.TCPReqQFullDrop"}},
	// The kernel counts a segment for which pruning made no room once more when it discards the
	// segment (tcp_try_rmem_schedule).
	{TCP, "TcpExt.TCPRcvQDrop", nil},
	{TCP, "TcpExt.TCPOFODrop", nil},
	{TCP, "TcpExt.RcvPruned", []string{"TcpExt.TCPRcvQDrop", "TcpExt.TCPOFODrop"}},
	// how often the out-of-order queue was discarded; the kernel does not count its segments
	{TCP, "TcpExt.OfoPruned", nil},
}

// otherTCP reports whether name is a further TCP counter of drops: TCPBacklogDrop,
// TCPZeroWindowDrop, PFMemallocDrop, and those that later kernels add.
func otherTCP(name string) bool {
	rest, ok := strings.CutPrefix(name, "TcpExt.")
	if !ok || slices.ContainsFunc(places, func(p place) bool { return p.name == name }) {
		return false
	}
	// An acknowledgement that the kernel sets aside on purpose until data arrive (TCP_DEFER_ACCEPT)
	// is no loss.
	return rest != "TCPDeferAcceptDrop" && (strings.HasSuffix(rest, "Drop") || strings.HasSuffix(rest, "Drops") ||
		strings.HasSuffix(rest, "Dropped"))
}

// host lists what the host dropped behind the NICs.
func (l *ledger) host() {
	for _, p := range places {
		var counted uint64
		for _, name := range p.also {
			counted += l.sum(name)
		}
		if prefix, suffix, many := strings.Cut(p.name, "*"); many {
			for name, n := range l.counters {
				if strings.HasPrefix(name, prefix) && strings.HasSuffix(name, suffix) {
					l.put(p.stage, name, n, 0)
				}
			}
			continue
		}
		// Ip.OutDiscards may count a datagram that the socket could not send, for a reason other
		// than those below.
		if name, ok := strings.CutSuffix(p.name, ".SndbufErrors"); ok {
			counted = max(counted, l.counters[strings.Replace(name, "Udp", "Ip", 1)+".OutDiscards"])
		}
		l.put(p.stage, p.name, l.counters[p.name], counted)
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
