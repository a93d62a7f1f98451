package procfs

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ParseSNMP reads /proc/net/snmp and /proc/net/netstat (RFC 1213 MIB and Linux's own; snmp_seq_show
// and netstat_seq_show in net/ipv4/proc.c): pairs of lines, "Tcp: names…" over "Tcp: values…". The
// counters are those of one network namespace.
//
// Linux has always appended names, and now and then dropped one that had lost its meaning; so a
// value is known by the name above it, never by its number. A line with more names than values or
// the other way round means that one of them cannot be placed, and the pair is refused.
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
			// A signed value is skipped and not refused: Tcp.MaxConn has been -1 in every kernel.
			if n, ok := ParseUint(number); ok && isCount(prefix, name) {
				into.Put(n, prefix, ".", string(name))
			}
		}
	}
	return nil
}

// isCount leaves out what is a constant of the protocol, and groups that say nothing about speed.
// RtoAlgorithm, RtoMin and RtoMax are what RFC 1213 wants to be told; the kernel prints the
// compile-time figures 1, 200 and 120000 (milliseconds), whatever the routes say.
func isCount(group string, name []byte) bool {
	switch group {
	case "MPTcpExt", "UdpLite":
		return false
	// One column for each type that was ever seen, without the codes: "fragmentation needed" (type
	// 3, code 4) is counted with the other unreachables. Of the types only that one can bear on
	// speed.
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
// per line. The group is the part up to and with the first 6, as in "Udp6.RcvbufErrors"; most of
// ICMPv6, and UDP-Lite, are left out. TCP has no rows here: it counts both versions of IP in
// /proc/net/snmp. The file is absent in a kernel without IPv6.
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

// bearsOnSpeed keeps of ICMPv6 what tells of packets that did not get through. The rest is
// neighbours and groups, and a row by number for each type that was ever seen (Icmp6OutType135).
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
// netdev_budget_usecs) have always been there. Columns 3 to 7 have been zero since the throttling
// and fast routing that they counted went away, and 8, cpu_collision, since Linux 4.8 at the
// latest. received_rps counts interrupts sent by other CPUs (RPS, scaling.rst), flow_limit packets
// of large flows dropped before the backlog was full.
var softnetColumns = [...]struct {
	at   int
	name string
}{{0, "processed"}, {1, "dropped"}, {2, "time_squeeze"}, {9, "received_rps"}, {10, "flow_limit"}}

// ParseSoftnet reads /proc/net/softnet_stat (softnet_seq_show in net/core/net-procfs.c): one line
// of hexadecimal 32-bit columns per online CPU, so every count goes through zero at 2³². The table
// is that of the whole machine, in every network namespace.
//
// Columns: 0 processed, 1 dropped, 2 time_squeeze, 9 received_rps (2.6.36), 10 flow_limit (3.11),
// 11 backlog length (5.10), 12 CPU number (5.14; before it the line's number among the online CPUs,
// which is the same while none is offline). Lines may be shorter or longer. A line's values are put
// per CPU, and the sum over all CPUs under the name without a number.
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
	// A column that no line had is absent from the sums too: zero would claim that nothing was
	// dropped by a limit nobody counts.
	for i, c := range softnetColumns[:seen] {
		into.Put(totals[i], "softnet.", c.name)
	}
	return nil
}

// SoftnetLine is what one CPU took in, by the columns of [ParseSoftnet].
type SoftnetLine struct {
	CPU                                                     int
	Processed, Dropped, TimeSqueeze, ReceivedRPS, FlowLimit uint64
}

// SoftnetLines reads /proc/net/softnet_stat by CPU, in their order. Of a file with an error in it,
// which ParseSoftnet tells, it gives the lines before that.
func SoftnetLines(b []byte) []SoftnetLine {
	var lines []SoftnetLine
	_ = EachSoftnet(b, func(l *SoftnetLine) { lines = append(lines, *l) })
	slices.SortFunc(lines, func(a, b SoftnetLine) int { return a.CPU - b.CPU })
	return lines
}

// ParseSockstat reads /proc/net/sockstat (sockstat_seq_show in net/ipv4/proc.c): "TCP: inuse 1
// orphan 0 tw 0 alloc 1 mem 170". All of it are levels, not counts. Sockets are those of the
// namespace, but for orphan and alloc; mem is in pages, of all namespaces together, because tcp_mem
// and udp_mem bound the machine and not the namespace.
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
			// Names and numbers take turns; a name without a number is a line cut off.
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

// DevColumns is how many counters of each interface [ParseDev] puts.
const DevColumns = len(devColumns)

// devColumns are the columns of /proc/net/dev by the names that sysfs has for the same counters.
// "rx_dropped" holds rx_missed_errors as well and "frame" and "carrier" are sums
// (dev_seq_printf_stats), so those two keep a name of their own.
var devColumns = [...]string{
	"rx_bytes", "rx_packets", "rx_errors", "rx_dropped", "rx_fifo_errors", "rx_frame_all_errors", "rx_compressed",
	"multicast",
	"tx_bytes", "tx_packets", "tx_errors", "tx_dropped", "tx_fifo_errors", "collisions", "tx_carrier_all_errors",
	"tx_compressed",
}

// ParseDev reads /proc/net/dev (dev_seq_show in net/core/net-procfs.c): two title lines, then
// "eth0: sixteen numbers", bytes and packets since the interface was made. It costs one read for
// all interfaces where sysfs costs one per counter, and it follows the network namespace of the
// reader, which sysfs does not. Before 2.6.36 the numbers were of the machine's word length and
// went through zero at 4 GiB on 32 bits.
func ParseDev(b []byte, into *Counts) error {
	for len(b) > 0 {
		var line []byte
		line, b = cutLine(b)
		// A name may hold a colon (old aliases do); the numbers never do. Old kernels put no blank
		// after it.
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
