package host

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// errFormat is a kernel file that does not have the form it has had so far. It is reported, never guessed around.
var errFormat = errors.New("unexpected format")

// valueSet collects counters. Names are cut from one growing string, so that some seven hundred of them cost a handful of allocations.
type valueSet struct {
	values     map[string]uint64
	interfaces []string // as /proc/net/dev lists them
	names      strings.Builder
}

// nameBlock is how many bytes of names are allocated at once.
const nameBlock = 8 << 10

func (v *valueSet) put(n uint64, parts ...string) { v.values[v.name(parts...)] = n }

// name joins parts in the current block. A full block is left to the names that point into it.
func (v *valueSet) name(parts ...string) string {
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	if v.names.Cap()-v.names.Len() < size {
		v.names = strings.Builder{}
		v.names.Grow(max(nameBlock, size))
	}
	start := v.names.Len()
	for _, p := range parts {
		v.names.WriteString(p)
	}
	return v.names.String()[start:]
}

// parseUint reads a decimal number of the kernel. A few counters are printed signed (snmp's Tcp.MaxConn is -1); those are no counts.
func parseUint(b []byte) (uint64, bool) {
	if len(b) == 0 || len(b) > 20 {
		return 0, false
	}
	var n uint64
	for _, c := range b {
		d := uint64(c - '0')
		if d > 9 || n > (1<<64-1-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	return n, true
}

// parseHex32 reads one column of softnet_stat.
func parseHex32(b []byte) (uint64, bool) {
	if len(b) == 0 || len(b) > 16 {
		return 0, false
	}
	var n uint64
	for _, c := range b {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		default:
			return 0, false
		}
		n = n<<4 | uint64(c)
	}
	return n, true
}

// word cuts the next blank-separated word from line.
func word(line []byte) (first, rest []byte) {
	start := 0
	for start < len(line) && (line[start] == ' ' || line[start] == '\t') {
		start++
	}
	end := start
	for end < len(line) && line[end] != ' ' && line[end] != '\t' {
		end++
	}
	return line[start:end], line[end:]
}

// cutLine takes the next line off b.
func cutLine(b []byte) (line, rest []byte) {
	line, rest, _ = bytes.Cut(b, []byte{'\n'})
	return line, rest
}

// parseSNMP reads /proc/net/snmp and /proc/net/netstat (RFC 1213 MIB and Linux's own): pairs of lines, "Tcp: names…" over "Tcp: values…".
// Linux has always appended names; a line with more names than values or the other way round means that one of them cannot be
// placed, so the pair is refused.
func parseSNMP(b []byte, set *valueSet) error {
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
			return fmt.Errorf("line %.20q over %.20q: %w", heads, vals, errFormat)
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
				return fmt.Errorf("%s has more names than values or fewer: %w", prefix, errFormat)
			}
			if n, ok := parseUint(number); ok && isCount(prefix, name) {
				set.put(n, prefix, ".", string(name))
			}
		}
	}
	return nil
}

// isCount leaves out what is a constant of the protocol, and groups that say nothing about speed.
func isCount(group string, name []byte) bool {
	switch group {
	case "MPTcpExt", "UdpLite", "IcmpMsg":
		return false
	case "Ip":
		return string(name) != "Forwarding" && string(name) != "DefaultTTL"
	case "Tcp":
		return !bytes.HasPrefix(name, []byte("Rto")) && string(name) != "MaxConn"
	}
	return true
}

// parseSNMP6 reads /proc/net/snmp6: one "Udp6RcvbufErrors 0" per line. The group is the part up to and with the first 6, as in
// "Udp6.RcvbufErrors"; the per-type ICMP rows are left out.
func parseSNMP6(b []byte, set *valueSet) error {
	for len(b) > 0 {
		var line []byte
		line, b = cutLine(b)
		name, rest := word(line)
		if len(name) == 0 {
			continue
		}
		number, _ := word(rest)
		n, ok := parseUint(number)
		i := bytes.IndexByte(name, '6')
		if !ok || i < 0 {
			return fmt.Errorf("line %.40q: %w", line, errFormat)
		}
		group, counter := string(name[:i+1]), string(name[i+1:])
		if counter == "" || group == "Icmp6" || group == "UdpLite6" {
			continue
		}
		set.put(n, group, ".", counter)
	}
	return nil
}

// parseSoftnet reads /proc/net/softnet_stat: one line of hexadecimal 32-bit columns per online CPU. Columns: 0 processed, 1 dropped, 2
// time_squeeze, 9 received_rps (2.6.36), 10 flow_limit (3.11), 11 backlog length (5.10), 12 CPU number (5.14; before it the line's number
// among the online CPUs, which is the same while none is offline). Lines may be shorter or longer.
func parseSoftnet(b []byte, set *valueSet) error {
	columns := [...]struct {
		at   int
		name string
	}{{0, "processed"}, {1, "dropped"}, {2, "time_squeeze"}, {9, "received_rps"}, {10, "flow_limit"}}
	var totals [len(columns)]uint64
	seen := 0
	for lineNumber := uint64(0); len(b) > 0; {
		var line []byte
		line, b = cutLine(b)
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var values [13]uint64
		n := 0
		for n < len(values) {
			var column []byte
			column, line = word(line)
			if len(column) == 0 {
				break
			}
			v, ok := parseHex32(column)
			if !ok {
				return fmt.Errorf("column %d %.20q: %w", n, column, errFormat)
			}
			values[n] = v
			n++
		}
		if n < 3 {
			return fmt.Errorf("%d columns: %w", n, errFormat)
		}
		cpu := lineNumber
		if n > 12 {
			cpu = values[12]
		}
		lineNumber++
		id := strconv.FormatUint(cpu, 10)
		for i, c := range columns {
			if c.at < n {
				totals[i] += values[c.at]
				set.put(values[c.at], "softnet.", id, ".", c.name)
				seen = max(seen, i+1)
			}
		}
	}
	for i, c := range columns[:seen] {
		set.put(totals[i], "softnet.", c.name)
	}
	return nil
}

// parseSockstat reads /proc/net/sockstat: "TCP: inuse 1 orphan 0 tw 0 alloc 1 mem 170", mem in pages of all namespaces together.
func parseSockstat(b []byte, set *valueSet) error {
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
			n, ok := parseUint(number)
			if !ok {
				return fmt.Errorf("line %.40q: %w", line, errFormat)
			}
			if string(name) == "mem" {
				set.put(n, pages)
			} else {
				set.put(n, prefix, string(name))
			}
		}
	}
	return nil
}

// devColumns are the columns of /proc/net/dev by the names that sysfs has for the same counters. "rx_dropped" holds rx_missed_errors as well
// and "frame" and "carrier" are sums (dev_seq_printf_stats), so those two keep a name of their own.
var devColumns = [...]string{
	"rx_bytes", "rx_packets", "rx_errors", "rx_dropped", "rx_fifo_errors", "rx_frame_all_errors", "rx_compressed", "multicast",
	"tx_bytes", "tx_packets", "tx_errors", "tx_dropped", "tx_fifo_errors", "collisions", "tx_carrier_all_errors", "tx_compressed",
}

// parseDev reads /proc/net/dev: two title lines, then "eth0: sixteen numbers". Old kernels put no blank after the colon.
func parseDev(b []byte, set *valueSet) error {
	for len(b) > 0 {
		var line []byte
		line, b = cutLine(b)
		// A name may hold a colon (old aliases do); the numbers never do.
		colon := bytes.LastIndexByte(line, ':')
		if colon < 0 {
			continue // the titles
		}
		name := string(bytes.TrimSpace(line[:colon]))
		if name == "" {
			return fmt.Errorf("line %.40q: %w", line, errFormat)
		}
		rest := line[colon+1:]
		for _, column := range devColumns {
			var number []byte
			number, rest = word(rest)
			n, ok := parseUint(number)
			if !ok {
				return fmt.Errorf("%s of %s: %w", column, name, errFormat)
			}
			set.put(n, "nic.", name, ".", column)
		}
		set.interfaces = append(set.interfaces, name)
	}
	return nil
}

// userTick is the unit of /proc/stat in seconds: USER_HZ is 100 on every architecture that Go runs on.
const userTick = 0.01

// softirqNames are the columns of the softirq line after its total, in the order of the kernel's enum since 2.6.31.
var softirqNames = [...]string{"HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"}

// parseStat reads /proc/stat: time per CPU (-1 is all together) and the sums over all CPUs of every numbered interrupt and softirq, which
// are the same as those of /proc/interrupts and /proc/softirqs at a hundredth of the text.
func parseStat(b []byte, set *valueSet) ([]CPUTimes, error) {
	var cpus []CPUTimes
	for len(b) > 0 {
		var line []byte
		line, b = cutLine(b)
		key, rest := word(line)
		switch {
		case bytes.HasPrefix(key, []byte("cpu")):
			t, err := parseCPUTimes(string(key[3:]), rest)
			if err != nil {
				return cpus, err
			}
			cpus = append(cpus, t)
		case string(key) == "intr":
			if err := parseInterrupts(rest, set); err != nil {
				return cpus, err
			}
		case string(key) == "softirq":
			_, rest = word(rest) // the total
			for _, name := range softirqNames {
				var number []byte
				number, rest = word(rest)
				n, ok := parseUint(number)
				if !ok {
					break // fewer columns before 3.10
				}
				set.put(n, "softirq.", name)
			}
		case string(key) == "ctxt":
			number, _ := word(rest)
			if n, ok := parseUint(number); ok {
				set.put(n, "ctxt")
			}
		}
	}
	return cpus, nil
}

// parseCPUTimes reads "user nice system idle iowait irq softirq steal guest guest_nice"; guest time is in user already. Kernels before
// 2.6.11 end at softirq.
func parseCPUTimes(id string, rest []byte) (CPUTimes, error) {
	t := CPUTimes{CPU: -1}
	if id != "" {
		n, ok := parseUint([]byte(id))
		if !ok || n > 1<<20 {
			return t, fmt.Errorf("cpu%.20q: %w", id, errFormat)
		}
		t.CPU = int(n)
	}
	var ticks [8]float64
	for i := range ticks {
		var number []byte
		number, rest = word(rest)
		if len(number) == 0 && i >= 4 {
			break
		}
		n, ok := parseUint(number)
		if !ok {
			return t, fmt.Errorf("cpu%s column %d: %w", id, i, errFormat)
		}
		ticks[i] = float64(n) * userTick
	}
	t.User, t.System, t.Idle = ticks[0]+ticks[1], ticks[2], ticks[3]+ticks[4]
	t.IRQ, t.SoftIRQ, t.Steal = ticks[5], ticks[6], ticks[7]
	return t, nil
}

// parseInterrupts reads "total irq0 irq1 …". Numbers that never fired are left out: there are hundreds.
func parseInterrupts(rest []byte, set *valueSet) error {
	_, rest = word(rest)
	for irq := 0; ; irq++ {
		var number []byte
		number, rest = word(rest)
		if len(number) == 0 {
			return nil
		}
		n, ok := parseUint(number)
		if !ok {
			return fmt.Errorf("interrupt %d %.20q: %w", irq, number, errFormat)
		}
		if n > 0 {
			set.put(n, "irq.", strconv.Itoa(irq))
		}
	}
}
