package account

import (
	"cmp"
	"slices"
	"strings"
)

// Drop is one place where packets of a host died, and how many.
type Drop struct {
	Place string `json:"place"` // counter name as in host.Counters
	Total uint64 `json:"total"`
}

// dropCounters are the names of counters that mean lost packets, by how a name of host.Counters ends (after the interface or CPU) or
// starts. Errors (crc, frame) are losses as well, but of the cable, so they are not here unless the driver dropped for want of room.
var dropCounters = []struct{ prefix, suffix string }{
	{"nic.", ".rx_dropped"},       // no room or no protocol
	{"nic.", ".tx_dropped"},       // the driver refused
	{"nic.", ".rx_missed_errors"}, // the card had no descriptor
	{"nic.", ".rx_fifo_errors"},   // the card overran
	{"nic.", ".rx_over_errors"},
	{"nic.", ".rx_nohandler"},
	{"softnet.dropped", ""}, // net.core.netdev_max_backlog
	{"softnet.flow_limit", ""},
	{"qdisc.", ".drops"},
	{"TcpExt.", "Drop"}, // TCPBacklogDrop, TCPZeroWindowDrop, TCPOFODrop, TCPReqQFullDrop, PFMemallocDrop, …
	{"TcpExt.", "Drops"},
	{"TcpExt.", "Dropped"},
	{"TcpExt.TCPRcvQDrop", ""},
	{"TcpExt.PruneCalled", ""},
	{"TcpExt.RcvPruned", ""},
	{"TcpExt.OfoPruned", ""},
	{"TcpExt.ListenOverflows", ""},
	{"Udp.RcvbufErrors", ""},
	{"Udp.SndbufErrors", ""},
	{"Udp6.RcvbufErrors", ""},
	{"Udp6.SndbufErrors", ""},
	{"Ip.InDiscards", ""},
	{"Ip.OutDiscards", ""},
	{"Ip6.InDiscards", ""},
	{"Ip6.OutDiscards", ""},
}

// isDrop tells whether a counter of host.Counters counts packets that died.
func isDrop(name string) bool {
	if name == "TcpExt.TCPDeferAcceptDrop" {
		return false // an acknowledgement that the kernel sets aside on purpose, until data come (TCP_DEFER_ACCEPT)
	}
	for _, d := range dropCounters {
		if d.suffix == "" && name == d.prefix || d.suffix != "" && strings.HasPrefix(name, d.prefix) && strings.HasSuffix(name, d.suffix) {
			return true
		}
	}
	return false
}

// Drops lists the counters that say that packets died, the worst first; it is never nil.
func Drops(counters map[string]uint64) []Drop {
	drops := []Drop{}
	for name, n := range counters {
		if n > 0 && isDrop(name) {
			drops = append(drops, Drop{Place: name, Total: n})
		}
	}
	slices.SortFunc(drops, func(a, b Drop) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(a.Place, b.Place))
	})
	return drops
}
