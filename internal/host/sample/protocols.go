package sample

import (
	"bytes"

	"github.com/linerate/linerate/internal/kernel/procfs"
)

// protocols follows the files without a line for each interface or processor.
type protocols struct {
	sources []*source
	derived []derived
}

// source is one such file with the counters taken from it.
type source struct {
	file   *file
	path   string
	names  []string // as in the file
	parse  func(b []byte, into []uint64, known []bool) error
	values []uint64
	known  []bool
	read   bool // in the present reading
	tally  *tally
}

// derived is a series that is the sum of some counters, or of some levels.
type derived struct {
	series *Series
	of     []ref
	scale  float64
}

// ref is a counter of a source.
type ref struct {
	source *source
	at     int
}

// add makes a source of a file. A file that is missing or restricted is skipped silently: many
// kernels lack some.
func (p *protocols) add(path string, w width, parse func(names []string) func([]byte, []uint64, []bool) error,
	names ...string) *source {
	s := &source{path: path, names: names, values: make([]uint64, len(names)), known: make([]bool, len(names)),
		parse: parse(names)}
	s.tally = newTally(len(names), 0, w)
	f, err := openFile(path)
	if err != nil {
		return s
	}
	s.file = f
	p.sources = append(p.sources, s)
	return s
}

func pairs(names []string) func([]byte, []uint64, []bool) error {
	return procfs.NewColumns(names...).Read
}

func rows(names []string) func([]byte, []uint64, []bool) error {
	return procfs.NewColumns(names...).ReadRows
}

// parsed reads with a parser of package procfs; for short files.
func parsed(parse func([]byte, *procfs.Counts) error) func([]string) func([]byte, []uint64, []bool) error {
	return func(names []string) func([]byte, []uint64, []bool) error {
		return func(b []byte, into []uint64, known []bool) error {
			set := procfs.NewCounts(16)
			err := parse(b, set)
			for i, name := range names {
				if known[i] = false; err == nil {
					if n, ok := set.Values[name]; ok {
						into[i], known[i] = n, true
					}
				}
			}
			return err
		}
	}
}

// of returns the counters of the source by name.
//
//go:noinline // 42 callers run once, and a copy in each of them took 27 kB
func (s *source) of(names ...string) []ref {
	var refs []ref
	for _, name := range names {
		for i, n := range s.names {
			if n == name {
				refs = append(refs, ref{s, i})
			}
		}
	}
	return refs
}

//go:noinline // 33 callers run once, and a copy in each of them took 12 kB
func (p *protocols) derive(m *Metric, scale float64, refs []ref, values ...string) {
	p.derived = append(p.derived, derived{&Series{Metric: m, Values: values}, refs, scale})
}

func (p *protocols) open() {
	snmp := p.add("/proc/thread-self/net/snmp", bits64, pairs,
		"Tcp.ActiveOpens", "Tcp.PassiveOpens", "Tcp.CurrEstab", "Tcp.InSegs", "Tcp.OutSegs", "Tcp.RetransSegs",
		"Tcp.OutRsts", "Tcp.InCsumErrors",
		"Udp.InDatagrams", "Udp.OutDatagrams", "Udp.RcvbufErrors", "Udp.SndbufErrors", "Udp.MemErrors", "Ip.InDiscards",
		"Ip.OutDiscards")
	netstat := p.add("/proc/thread-self/net/netstat", bits64, pairs,
		"TcpExt.TCPTimeouts", "TcpExt.ListenOverflows", "TcpExt.ListenDrops", "TcpExt.TCPSynRetrans",
		"TcpExt.TCPOFOQueue",
		"TcpExt.TCPRcvQDrop", "TcpExt.TCPOFODrop", "TcpExt.TCPBacklogDrop")
	snmp6 := p.add("/proc/thread-self/net/snmp6", bits64, rows,
		"Udp6InDatagrams", "Udp6OutDatagrams", "Udp6RcvbufErrors", "Udp6SndbufErrors", "Udp6MemErrors", "Ip6InDiscards",
		"Ip6OutDiscards")
	sockstat := p.add("/proc/thread-self/net/sockstat", bits64, parsed(procfs.ParseSockstat),
		"sockets.tcp_inuse", "sockets.tcp_tw", "sockets.tcp_orphan", "sockets.udp_inuse", "tcpmem.pages")
	sockstat6 := p.add("/proc/thread-self/net/sockstat6", bits64, parsed(parseSockstat6), "sockets.tcp6_inuse",
		"sockets.udp6_inuse")

	one := func(m *Metric, s *source, name string) { p.derive(m, 1, s.of(name)) }
	both := func(m *Metric, name string) { p.derive(m, 1, append(snmp.of("Udp."+name), snmp6.of("Udp6"+name)...)) }
	one(tcpSent, snmp, "Tcp.OutSegs")
	one(tcpReceived, snmp, "Tcp.InSegs")
	one(tcpRetransmits, snmp, "Tcp.RetransSegs")
	one(tcpTimeouts, netstat, "TcpExt.TCPTimeouts")
	one(tcpListenOverflows, netstat, "TcpExt.ListenOverflows")
	one(tcpListenDrops, netstat, "TcpExt.ListenDrops")
	one(tcpSynRetransmits, netstat, "TcpExt.TCPSynRetrans")
	one(tcpOutOfOrder, netstat, "TcpExt.TCPOFOQueue")
	one(tcpChecksumErrors, snmp, "Tcp.InCsumErrors")
	one(tcpResets, snmp, "Tcp.OutRsts")
	one(tcpActiveOpens, snmp, "Tcp.ActiveOpens")
	one(tcpPassiveOpens, snmp, "Tcp.PassiveOpens")
	one(tcpConnections, snmp, "Tcp.CurrEstab")
	one(tcpMemory, sockstat, "tcpmem.pages")
	both(udpReceived, "InDatagrams")
	both(udpSent, "OutDatagrams")
	both(udpReceiveBufferErrors, "RcvbufErrors")
	both(udpSendBufferErrors, "SndbufErrors")
	p.derive(sockets, 1, append(sockstat.of("sockets.tcp_inuse"), sockstat6.of("sockets.tcp6_inuse")...), "tcp")
	p.derive(sockets, 1, sockstat.of("sockets.tcp_tw"), "tcp_time_wait")
	p.derive(sockets, 1, sockstat.of("sockets.tcp_orphan"), "tcp_orphan")
	p.derive(sockets, 1, append(sockstat.of("sockets.udp_inuse"), sockstat6.of("sockets.udp6_inuse")...), "udp")

	conntrack := p.add("/proc/thread-self/net/stat/nf_conntrack", bits32, parsed(counterFile("net/stat/nf_conntrack")),
		"conntrack.drop", "conntrack.insert_failed")
	nfqueue := p.add("/proc/thread-self/net/netfilter/nfnetlink_queue", bits32, parsed(procfs.ParseQueues),
		"nfqueue.dropped", "nfqueue.user_dropped")
	arp := p.add("/proc/thread-self/net/stat/arp_cache", bitsUnknown, parsed(counterFile("net/stat/arp_cache")),
		"neigh.ipv4.table_fulls", "neigh.ipv4.unresolved_discards")
	ndisc := p.add("/proc/thread-self/net/stat/ndisc_cache", bitsUnknown, parsed(counterFile("net/stat/ndisc_cache")),
		"neigh.ipv6.table_fulls", "neigh.ipv6.unresolved_discards")
	p.derive(hostDrops, 1, conntrack.of(conntrack.names...), "conntrack")
	p.derive(hostDrops, 1, nfqueue.of(nfqueue.names...), "nfqueue")
	p.derive(hostDrops, 1, append(arp.of(arp.names...), ndisc.of(ndisc.names...)...), "neighbour")
	p.derive(hostDrops, 1,
		append(snmp.of("Ip.InDiscards", "Ip.OutDiscards"), snmp6.of("Ip6InDiscards", "Ip6OutDiscards")...), "ip")
	p.derive(hostDrops, 1, netstat.of("TcpExt.ListenDrops", "TcpExt.TCPRcvQDrop", "TcpExt.TCPOFODrop",
		"TcpExt.TCPBacklogDrop"), "tcp")
	p.derive(hostDrops, 1, append(snmp.of("Udp.RcvbufErrors", "Udp.MemErrors"),
		snmp6.of("Udp6RcvbufErrors", "Udp6MemErrors")...), "socket")

	for _, resource := range []string{"cpu", "memory", "irq"} {
		some, full := "pressure."+resource+".some_microseconds", "pressure."+resource+".full_microseconds"
		s := p.add("/proc/pressure/"+resource, bits64, parsed(counterFile("pressure/"+resource)), some, full)
		p.derive(pressure, 1e-6, s.of(some), resource, "some")
		p.derive(pressure, 1e-6, s.of(full), resource, "full")
	}
	meminfo := p.add("/proc/meminfo", bits64, rows, "MemTotal", "MemAvailable")
	p.derive(memoryTotal, 1024, meminfo.of("MemTotal"))
	p.derive(memoryAvailable, 1024, meminfo.of("MemAvailable"))
	for _, level := range []struct {
		m          *Metric
		path, name string
	}{{conntrackEntries, "sys/net/netfilter/nf_conntrack_count", "conntrack.count"},
		{conntrackLimit, "sys/net/netfilter/nf_conntrack_max", "conntrack.max"}} {
		s := p.add("/proc/"+level.path, bits64, parsed(counterFile(level.path)), level.name)
		p.derive(level.m, 1, s.of(level.name))
	}
}

// counterFile returns the parser of package procfs for a file.
func counterFile(name string) func([]byte, *procfs.Counts) error {
	for _, f := range procfs.CounterFiles() {
		if f.Name == name {
			return f.Parse
		}
	}
	panic("no counter file " + name) // the names are constants of this file, and a test opens them
}

func (p *protocols) close() {
	for _, s := range p.sources {
		s.file.close()
	}
}

func (p *protocols) read(s *Sampler, r *Reading) {
	for _, src := range p.sources {
		var err error
		if s.buf, err = src.file.read(s.buf); err == nil {
			err = src.parse(s.buf, src.values, src.known)
		}
		src.read = err == nil
		if err == nil {
			src.tally.add(src.values, nil)
		} else {
			r.warn("counters in "+src.path, err)
		}
	}
	for i := range p.derived {
		if v, ok := p.derived[i].value(); ok {
			r.put(p.derived[i].series, v)
		}
	}
}

// value returns the sum of the known parts. ok is false if no part is known, or if a part could not
// be read this time but was before, which would look like a decrease.
func (d *derived) value() (float64, bool) {
	total, found := 0.0, false
	for _, f := range d.of {
		switch {
		case f.source.file == nil || f.source.read && !f.source.known[f.at]:
		case !f.source.read:
			return 0, false
		case d.series.Metric.Kind == Gauge:
			total += float64(f.source.values[f.at])
			found = true
		default:
			total += float64(f.source.tally.sum[f.at])
			found = true
		}
	}
	return total * d.scale, found
}

// parseSockstat6 reads the lines TCP6 and UDP6 of /proc/net/sockstat6 (sockstat6_seq_show in
// net/ipv6/proc.c): "TCP6: inuse 3".
func parseSockstat6(b []byte, into *procfs.Counts) error {
	for line := range bytes.Lines(b) {
		words := bytes.Fields(line)
		if len(words) < 3 || string(words[1]) != "inuse" {
			continue
		}
		n, ok := procfs.ParseUint(words[2])
		switch {
		case !ok:
			return procfs.ErrFormat
		case string(words[0]) == "TCP6:":
			into.Put(n, "sockets.tcp6_inuse")
		case string(words[0]) == "UDP6:":
			into.Put(n, "sockets.udp6_inuse")
		}
	}
	return nil
}
