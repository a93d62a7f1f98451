package procfs

import (
	"bytes"
	"fmt"
	"strconv"
)

// CounterFile is one file of counters, or of the limits that belong to them.
type CounterFile struct {
	Name string // below /proc; files below net/ follow the reader's network namespace
	// Optional: many kernels lack this file or show it to root only, so its absence needs no
	// warning.
	Optional bool
	Parse    func([]byte, *Counts) error
}

// CounterFiles returns the files that form a reading of the counters, except /proc/net/dev and
// /proc/stat, which hold more than counters. All of them are short on any host: readings surround
// every test, so tables with a line for each interrupt or connection are excluded.
func CounterFiles() []CounterFile {
	return []CounterFile{
		// softnet_stat and the pages in sockstat belong to the machine, the others of this group to
		// the namespace.
		{"net/snmp", false, ParseSNMP},
		{"net/netstat", false, ParseSNMP},
		{"net/snmp6", true, ParseSNMP6}, // absent without IPv6
		{"net/softnet_stat", false, ParseSoftnet},
		{"net/sockstat", false, ParseSockstat},

		{"net/stat/nf_conntrack", true, columnsOf("conntrack")},
		// All namespaces share one table of neighbours, and only the initial one can read its
		// statistics.
		{"net/stat/arp_cache", true, columnsOf("neigh.ipv4")},
		{"net/stat/ndisc_cache", true, columnsOf("neigh.ipv6")},
		{"net/netfilter/nfnetlink_queue", true, ParseQueues},

		{"softirqs", true, ParseSoftIRQs},
		{"pressure/cpu", true, pressureOf("cpu")},
		{"pressure/memory", true, pressureOf("memory")},
		{"pressure/irq", true, pressureOf("irq")}, // since Linux 6.1, with CONFIG_IRQ_TIME_ACCOUNTING

		// The limits belong to the levels: a level without its limit has no meaning.
		{"sys/net/netfilter/nf_conntrack_count", true, levels("conntrack.count")},
		{"sys/net/netfilter/nf_conntrack_max", true, levels("conntrack.max")},
		{"sys/net/ipv4/neigh/default/gc_thresh1", true, levels("neigh.ipv4.gc_thresh1")},
		{"sys/net/ipv4/neigh/default/gc_thresh2", true, levels("neigh.ipv4.gc_thresh2")},
		{"sys/net/ipv4/neigh/default/gc_thresh3", true, levels("neigh.ipv4.gc_thresh3")},
		{"sys/net/ipv6/neigh/default/gc_thresh1", true, levels("neigh.ipv6.gc_thresh1")},
		{"sys/net/ipv6/neigh/default/gc_thresh2", true, levels("neigh.ipv6.gc_thresh2")},
		{"sys/net/ipv6/neigh/default/gc_thresh3", true, levels("neigh.ipv6.gc_thresh3")},
		{"sys/net/ipv4/tcp_mem", true, levels("tcpmem.low_pages", "tcpmem.pressure_pages", "tcpmem.max_pages")},
		{"sys/net/ipv4/udp_mem", true, levels("udpmem.low_pages", "udpmem.pressure_pages", "udpmem.max_pages")},
		{"sys/net/ipv4/tcp_max_orphans", true, levels("sockets.tcp_orphan_max")},
		{"sys/net/ipv4/tcp_max_tw_buckets", true, levels("sockets.tcp_tw_max")},
		{"sys/net/ipv4/ip_local_port_range", true, levels("sockets.port_first", "sockets.port_last")},
	}
}

// columnsOf returns a parser of the per-CPU tables of /proc/net/stat: a line of names, then for
// each possible CPU a line of hexadecimal numbers (ct_cpu_seq_show in
// net/netfilter/nf_conntrack_standalone.c, neigh_stat_seq_show in net/core/neighbour.c). It puts
// the sums over the CPUs under group. It identifies columns by their names, which have changed:
// "searched" of conntrack became "clashres" in Linux 5.10, and table_fulls of the neighbours exists
// since 4.3. The first column, entries, is not summed: it is the size of the table, repeated on
// each line.
func columnsOf(group string) func([]byte, *Counts) error {
	return func(b []byte, into *Counts) error {
		head, b := cutLine(b)
		names := bytes.Fields(head)
		if len(names) == 0 {
			return fmt.Errorf("no columns: %w", ErrFormat)
		}
		sums := make([]uint64, len(names))
		for len(b) > 0 {
			var line []byte
			line, b = cutLine(b)
			if len(bytes.TrimSpace(line)) == 0 {
				continue
			}
			for i, name := range names {
				var number []byte
				number, line = word(line)
				n, ok := parseHex(number)
				if !ok {
					return fmt.Errorf("%s %.20q: %w", name, number, ErrFormat)
				}
				if string(name) == "entries" {
					sums[i] = n
				} else {
					sums[i] += n
				}
			}
			// A number without a name means that any of them may be shifted.
			if extra, _ := word(line); len(extra) > 0 {
				return fmt.Errorf("more numbers than the %d names: %w", len(names), ErrFormat)
			}
		}
		for i, name := range names {
			into.Put(sums[i], group, ".", string(name))
		}
		return nil
	}
}

// ParseQueues reads /proc/net/netfilter/nfnetlink_queue (seq_show in
// net/netfilter/nfnetlink_queue.c): one line for each queue whose packets a program judges. It puts
// the sums: the number of waiting packets, and of those dropped because the queue or the program's
// socket was full.
func ParseQueues(b []byte, into *Counts) error {
	var waiting, full, user uint64
	for len(b) > 0 {
		var line []byte
		line, b = cutLine(b)
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		// queue, the program's port, waiting, copy mode, copy range, dropped, dropped on the way to
		// the program, last number, 1.
		var values [7]uint64
		for i := range values {
			var number []byte
			number, line = word(line)
			n, ok := ParseUint(number)
			if !ok {
				return fmt.Errorf("column %d %.20q: %w", i, number, ErrFormat)
			}
			values[i] = n
		}
		waiting, full, user = waiting+values[2], full+values[5], user+values[6]
	}
	into.Put(waiting, "nfqueue.waiting")
	into.Put(full, "nfqueue.dropped")
	into.Put(user, "nfqueue.user_dropped")
	return nil
}

// ParseSoftIRQs reads the lines NET_RX and NET_TX of /proc/softirqs (show_softirqs in
// fs/proc/softirqs.c), with a column for each possible CPU, named in the first line. It omits a CPU
// with a zero count, because many possible CPUs do not exist.
func ParseSoftIRQs(b []byte, into *Counts) error {
	_, err := EachSoftIRQ(b, nil, func(receive bool, cpu int, n uint64) {
		name := "NET_TX"
		if receive {
			name = "NET_RX"
		}
		if n > 0 {
			into.Put(n, "softirq.", name, ".", strconv.Itoa(cpu))
		}
	})
	return err
}

// pressureOf returns a parser of /proc/pressure/RESOURCE (psi_show in kernel/sched/psi.c,
// Documentation/accounting/psi.rst): "some avg10=0.00 … total=12345". It keeps the total, the
// time in microseconds during which at least one task (some) or all of them at once (full) waited
// for the resource, and omits the averages over the kernel's own spans. Since Linux 4.20; a kernel
// started with psi=0 has the file, but a read fails.
func pressureOf(resource string) func([]byte, *Counts) error {
	return func(b []byte, into *Counts) error {
		for len(b) > 0 {
			var line []byte
			line, b = cutLine(b)
			kind, rest := word(line)
			switch string(kind) {
			case "some", "full":
			default:
				continue
			}
			i := bytes.LastIndex(rest, []byte("total="))
			if i < 0 {
				return fmt.Errorf("line %.40q: %w", line, ErrFormat)
			}
			number, _ := word(rest[i+len("total="):])
			n, ok := ParseUint(number)
			if !ok {
				return fmt.Errorf("line %.40q: %w", line, ErrFormat)
			}
			into.Put(n, "pressure.", resource, ".", string(kind), "_microseconds")
		}
		return nil
	}
}

// levels returns a parser of a setting that holds one number for each of the names.
func levels(names ...string) func([]byte, *Counts) error {
	return func(b []byte, into *Counts) error {
		b = bytes.TrimSpace(b)
		for _, name := range names {
			var number []byte
			number, b = word(b)
			n, ok := ParseUint(number)
			if !ok {
				return fmt.Errorf("%s %.20q: %w", name, number, ErrFormat)
			}
			into.Put(n, name)
		}
		return nil
	}
}
