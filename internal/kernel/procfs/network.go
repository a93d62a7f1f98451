package procfs

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/base/sorting"
)

// ParseSNMP reads /proc/net/snmp and /proc/net/netstat (RFC 1213 MIB and Linux's own; snmp_seq_show
// and netstat_seq_show in net/ipv4/proc.c): pairs of lines, "Tcp: names…" over "Tcp: values…". The
// counters are those of one network namespace.
//
// Linux has always appended names, and occasionally dropped one that had lost its meaning. A value
// is therefore identified by the name above it, never by its position. If a pair of lines has more
// names than values, or fewer, some value cannot be identified, and the parser refuses the pair.
func ParseSNMP(b []byte, into *Counts) error {
	for len(b) > 0 {
		var heads, vals []byte
		heads, b = cutLine(b)
		if len(bytes.TrimSpace(heads)) == 0 {
			continue
		}
		vals, b = cutLine(b)
		group, names := word(heads)
		group2, numbers := word(vals)
		if len(group) < 2 || group[len(group)-1] != ':' || !bytes.Equal(group, group2) {
			return fmt.Errorf("line %.20q over %.20q: %w", heads, vals, ErrFormat)
		}
		prefix := string(group[:len(group)-1])
		for {
			var name, number []byte
			name, names = word(names)
			number, numbers = word(numbers)
			if len(name) == 0 && len(number) == 0 {
				break
			}
			if len(name) == 0 || len(number) == 0 {
				return fmt.Errorf("%s has more names than values or fewer: %w", prefix, ErrFormat)
			}
			// A signed value is skipped, not refused: Tcp.MaxConn has been -1 in every kernel.
			if n, ok := ParseUint(number); ok && isCount(prefix, name) {
				into.Put(n, prefix, ".", string(name))
			}
		}
	}
	return nil
}

// isCount reports whether a name is a count related to performance; it excludes constants of the
// protocol. RFC 1213 requires RtoAlgorithm, RtoMin and RtoMax; the kernel prints the compile-time
// numbers 1, 200 and 120000 (milliseconds), independent of the routes.
func isCount(group string, name []byte) bool {
	switch group {
	case "MPTcpExt", "UdpLite":
		return false
	// One column for each type ever seen, without codes: "fragmentation needed" (type 3, code 4) is
	// counted with the other unreachables. Of all types only that one can affect performance.
	case "IcmpMsg":
		return bytes.HasSuffix(name, []byte("Type3"))
	case "Ip":
		return string(name) != "Forwarding" && string(name) != "DefaultTTL"
	case "Tcp":
		return !bytes.HasPrefix(name, []byte("Rto")) && string(name) != "MaxConn"
	}
	return true
}

// ParseSNMP6 reads /proc/net/snmp6 (snmp6_seq_show in net/ipv6/proc.c): one "Udp6RcvbufErrors 0"
// per line. The group is the part up to and including the first 6, as in "Udp6.RcvbufErrors"; most
// of ICMPv6, and UDP-Lite, are omitted. TCP has no rows here: /proc/net/snmp counts it for both
// versions of IP. A kernel without IPv6 lacks the file.
func ParseSNMP6(b []byte, into *Counts) error {
	for len(b) > 0 {
		var line []byte
		line, b = cutLine(b)
		name, rest := word(line)
		if len(name) == 0 {
			continue
		}
		number, _ := word(rest)
		n, ok := ParseUint(number)
		i := bytes.IndexByte(name, '6')
		if !ok || i < 0 {
			return fmt.Errorf("line %.40q: %w", line, ErrFormat)
		}
		group, counter := string(name[:i+1]), string(name[i+1:])
		if counter == "" || group == "UdpLite6" || group == "Icmp6" && !bearsOnSpeed(counter) {
			continue
		}
		into.Put(n, group, ".", counter)
	}
	return nil
}

// bearsOnSpeed selects the ICMPv6 counters of packets that were not delivered. The rest concerns
// neighbours and groups, with one numbered row for each type ever seen (Icmp6OutType135).
func bearsOnSpeed(counter string) bool {
	for _, kind := range [...]string{"Msgs", "Errors", "DestUnreachs", "PktTooBigs", "TimeExcds", "RateLimitHost"} {
		if strings.HasSuffix(counter, kind) {
			return true
		}
	}
	return false
}

// softnetColumns are the columns of softnet_stat that are kept. processed, dropped (the backlog was
// full: netdev_max_backlog) and time_squeeze (the poll ended with work left: netdev_budget,
// netdev_budget_usecs) have always existed. Columns 3 to 7 have been zero since the throttling and
// fast routing that they counted were removed, and column 8, cpu_collision, since Linux 4.8 at the
// latest. received_rps counts interrupts sent by other CPUs (RPS, scaling.rst), flow_limit counts
// packets of large flows dropped before the backlog was full.
var softnetColumns = [...]struct {
	at   int
	name string
}{{0, "processed"}, {1, "dropped"}, {2, "time_squeeze"}, {9, "received_rps"}, {10, "flow_limit"}}

// ParseSoftnet reads /proc/net/softnet_stat (softnet_seq_show in net/core/net-procfs.c): one line
// of hexadecimal 32-bit columns per online CPU, so every count wraps at 2³². The table is that of
// the whole machine, in every network namespace.
//
// Columns: 0 processed, 1 dropped, 2 time_squeeze, 9 received_rps (2.6.36), 10 flow_limit (3.11),
// 11 backlog length (5.10), 12 CPU number (5.14; on older kernels the line's number among the
// online CPUs, which is the same while none is offline). Lines may be shorter or longer. It puts
// each line's values per CPU, and the sum over all CPUs under the name without a number.
func ParseSoftnet(b []byte, into *Counts) error {
	var totals [len(softnetColumns)]uint64
	seen := 0
	err := eachSoftnetRow(b, func(cpu int, values []uint64) {
		id := strconv.Itoa(cpu)
		for i, c := range softnetColumns {
			if c.at < len(values) {
				totals[i] += values[c.at]
				into.Put(values[c.at], "softnet.", id, ".", c.name)
				seen = max(seen, i+1)
			}
		}
	})
	if err != nil {
		return err
	}
	// A column that no line had is absent from the sums too: zero would claim that no packet was
	// dropped by a limit that the kernel does not count.
	for i, c := range softnetColumns[:seen] {
		into.Put(totals[i], "softnet.", c.name)
	}
	return nil
}

// SoftnetLine holds the counts of one CPU, by the columns of [ParseSoftnet].
type SoftnetLine struct {
	CPU                                                     int
	Processed, Dropped, TimeSqueeze, ReceivedRPS, FlowLimit uint64
}

// SoftnetLines reads /proc/net/softnet_stat by CPU, in their order. If the file has an error, which
// ParseSoftnet reports, it returns the lines before that.
func SoftnetLines(b []byte) []SoftnetLine {
	var lines []SoftnetLine
	_ = EachSoftnet(b, func(l *SoftnetLine) { lines = append(lines, *l) })
	sorting.Func(lines, func(a, b SoftnetLine) int { return a.CPU - b.CPU })
	return lines
}

// ParseSockstat reads /proc/net/sockstat (sockstat_seq_show in net/ipv4/proc.c): "TCP: inuse 1
// orphan 0 tw 0 alloc 1 mem 170". All of them are levels, not counts. Sockets are those of the
// namespace, except orphan and alloc. mem is in pages, of all namespaces together, because tcp_mem
// and udp_mem limit the machine and not the namespace.
func ParseSockstat(b []byte, into *Counts) error {
	for len(b) > 0 {
		var line []byte
		line, b = cutLine(b)
		group, rest := word(line)
		prefix, pages := "", ""
		switch string(group) {
		case "TCP:":
			prefix, pages = "sockets.tcp_", "tcpmem.pages"
		case "UDP:":
			prefix, pages = "sockets.udp_", "udpmem.pages"
		default:
			continue
		}
		for {
			var name, number []byte
			name, rest = word(rest)
			number, rest = word(rest)
			if len(name) == 0 {
				break
			}
			// Names and numbers alternate; a name without a number means a truncated line.
			n, ok := ParseUint(number)
			if !ok {
				return fmt.Errorf("line %.40q: %w", line, ErrFormat)
			}
			if string(name) == "mem" {
				into.Put(n, pages)
			} else {
				into.Put(n, prefix, string(name))
			}
		}
	}
	return nil
}

// DevColumns is the number of counters that [ParseDev] puts for each interface.
const DevColumns = len(devColumns)

// devColumns are the columns of /proc/net/dev by the names that sysfs has for the same counters.
// "rx_dropped" includes rx_missed_errors, and "frame" and "carrier" are sums
// (dev_seq_printf_stats), so those two keep separate names.
var devColumns = [...]string{
	"rx_bytes", "rx_packets", "rx_errors", "rx_dropped", "rx_fifo_errors", "rx_frame_all_errors", "rx_compressed",
	"multicast",
	"tx_bytes", "tx_packets", "tx_errors", "tx_dropped", "tx_fifo_errors", "collisions", "tx_carrier_all_errors",
	"tx_compressed",
}

// ParseDev reads /proc/net/dev (dev_seq_show in net/core/net-procfs.c): two title lines, then
// "eth0: sixteen numbers", bytes and packets since the interface was created. It costs one read for
// all interfaces where sysfs costs one per counter, and unlike sysfs it follows the network
// namespace of the reader. Before 2.6.36 the numbers had the machine's word length and wrapped at 4
// GiB on 32 bits.
func ParseDev(b []byte, into *Counts) error {
	for len(b) > 0 {
		var line []byte
		line, b = cutLine(b)
		// A name may contain a colon (old aliases do); the numbers never do. Old kernels put no
		// blank after it.
		colon := bytes.LastIndexByte(line, ':')
		if colon < 0 {
			continue // the titles
		}
		name := string(bytes.TrimSpace(line[:colon]))
		if name == "" {
			return fmt.Errorf("line %.40q: %w", line, ErrFormat)
		}
		rest := line[colon+1:]
		for _, column := range devColumns {
			var number []byte
			number, rest = word(rest)
			n, ok := ParseUint(number)
			if !ok {
				return fmt.Errorf("%s of %s: %w", column, name, ErrFormat)
			}
			into.Put(n, "nic.", name, ".", column)
		}
		into.Interfaces = append(into.Interfaces, name)
	}
	return nil
}
