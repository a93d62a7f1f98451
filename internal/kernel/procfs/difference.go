package procfs

import "strings"

// Gauge reports whether a name is a level or limit instead of a count: a difference of two levels
// is meaningless. The names are those of this package and the further ones of package host. A
// driver's own counter is assumed to be a count, since its meaning is unknown and most are counts.
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

// narrow reports whether the kernel keeps or prints a counter in 32 bits (softnet_stat, tc's
// gnet_stats_queue, ip_conntrack_stat, interrupts and softirqs), so that it wraps on a busy host. A
// sum of such counters decreases by 2³² when one of them wraps.
func narrow(name string) bool {
	for _, prefix := range [...]string{"softnet.", "qdisc.", "conntrack.", "nfqueue.", "softirq.", "irq."} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// Difference returns how far a counter advanced from was to now; for a gauge it returns now. If a
// counter decreased, it wrapped if it has 32 bits and advanced by less than half its range.
// Otherwise it restarted: the driver was reloaded, or the interface or queueing discipline
// replaced.
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
