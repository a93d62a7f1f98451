package procfs

import "strings"

// Gauge tells the levels and limits from the counts: the difference of two levels says nothing. The
// names are those of this package and the further ones of package host. What a driver calls by a
// name of its own is taken for a count, since nobody can know; most are.
func Gauge(name string) bool {
	switch {
	case strings.HasPrefix(name, "tcpmem."), strings.HasPrefix(name, "udpmem."), strings.HasPrefix(name, "sockets."),
		strings.HasSuffix(name, ".backlog_bytes"):
		return true
	case strings.HasPrefix(name, "neigh."):
		return strings.HasSuffix(name, ".entries") || strings.Contains(name, ".gc_thresh")
	}
	switch name {
	case "Tcp.CurrEstab", "conntrack.count", "conntrack.max", "conntrack.entries", "nfqueue.waiting":
		return true
	}
	return false
}

// narrow tells the counters that the kernel keeps or prints in 32 bits (softnet_stat, tc's
// gnet_stats_queue, ip_conntrack_stat, interrupts and softirqs), so that they go through zero on a
// busy host. A sum of such counters steps back by 2³² when one of them does.
func narrow(name string) bool {
	for _, prefix := range [...]string{"softnet.", "qdisc.", "conntrack.", "nfqueue.", "softirq.", "irq."} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// Difference is how far a counter came from was to now; a gauge is as it is now. A counter that
// went backwards went through zero if it has 32 bits and came less than half way round; otherwise
// it began anew: driver reloaded, interface or queueing discipline replaced.
func Difference(name string, was, now uint64) uint64 {
	switch round := uint32(now - was); {
	case Gauge(name):
		return now
	case now >= was:
		return now - was
	case narrow(name) && round < 1<<31:
		return uint64(round)
	}
	return now
}
