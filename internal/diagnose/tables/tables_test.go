package tables

import (
	"encoding/json"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/tcpinfo"
	"github.com/linerate/linerate/internal/host/watch"
	"github.com/linerate/linerate/internal/traffic"
)

// counters are the counters of a span.
type counters = map[string]uint64

var (
	peer  = netip.MustParseAddrPort("192.0.2.7:8000")
	local = netip.MustParseAddrPort("192.0.2.1:443")
)

// watched is a host that was watched for three seconds.
func watched(c counters, change ...func(*evidence.Span)) *evidence.Span {
	s := &evidence.Span{Side: "near", Seconds: 3, Counters: c, Sockets: &watch.Sockets{Seconds: 3},
		Host: &host.Snapshot{Settings: []host.Setting{
			{Knob: coreSomaxconn, Value: "4096"}, {Knob: synBacklog, Value: "1024"},
			{Knob: coreRmemDefault, Value: "212992"}, {Knob: string(evidence.CoreRmemMax),
				Value: "212992"},
			{Knob: tcpMem, Value: "1000 2000 3000"}, {Knob: portRange, Value: "32768 60999"},
			{Knob: twReuse, Value: "2"}, {Knob: synCookies, Value: "1"}, {Knob: reserved, Value: ""},
			{Knob: fragmentMemory, Value: "4194304"},
		}}}
	for i := range 4 {
		s.CPUs = append(s.CPUs, host.CPUTimes{CPU: i, User: 0.3, Idle: 2.7})
	}
	for _, f := range change {
		f(s)
	}
	return s
}

// history makes it a host that is known only by its counters of a month.
func history(s *evidence.Span) { s.SinceBoot, s.Seconds, s.Sockets, s.CPUs = true, 30*86400, nil, nil }

// hogged gives all CPUs other work.
func hogged(s *evidence.Span) {
	for i := range s.CPUs {
		s.CPUs[i].User, s.CPUs[i].Idle = 3, 0
	}
}

// rangeOf returns the counters of a host with the given number of local ports.
func rangeOf(ports uint64) counters {
	return counters{"sockets.port_first": 32768, "sockets.port_last": 32767 + ports, "sockets.tcp_tw": ports}
}

func set(knob, value string) func(*evidence.Span) {
	return func(s *evidence.Span) {
		for i := range s.Host.Settings {
			if s.Host.Settings[i].Knob == knob {
				s.Host.Settings[i].Value = value
			}
		}
	}
}

func ofRun(t traffic.Test) func(*evidence.Span) {
	return func(s *evidence.Span) { s.Run, s.Sockets = &evidence.Run{Test: t}, nil }
}

// sentBy gives the far end of the span's run counters.
func sentBy(c counters) func(*evidence.Span) {
	return func(s *evidence.Span) { s.Run.Ends.Remote.Counters = c }
}

func sockets(f func(*watch.Sockets)) func(*evidence.Span) {
	return func(s *evidence.Span) { f(s.Sockets) }
}

func listener(l watch.Listener) func(*evidence.Span) {
	l.Local = local
	return sockets(func(s *watch.Sockets) { s.Listeners = append(s.Listeners, l) })
}

func datagram(drops uint64, waiting, limit int64) func(*evidence.Span) {
	d := watch.Datagram{Local: local, Memory: watch.Memory{ReceiveBytes: waiting, ReceiveLimitBytes: limit,
		Drops: drops}}
	return sockets(func(s *watch.Sockets) { s.Datagrams = append(s.Datagrams, d) })
}

func destination(ports, waiting int) func(*evidence.Span) {
	return sockets(func(s *watch.Sockets) {
		s.Destinations = append(s.Destinations, watch.Destination{Local: local.Addr(), Remote: peer, Ports: ports,
			Waiting: waiting})
	})
}

// reader is a connection with unread data in its buffer, and the amount read in the span.
func reader(unread, limit int64, read uint64) func(*evidence.Span) {
	c := watch.Connection{Local: local, Remote: peer, UnreadBytes: unread, TCP: tcpinfo.TCPInfo{BytesReceived: read},
		Memory: watch.Memory{ReceiveBytes: unread + unread/20, ReceiveLimitBytes: limit}}
	return sockets(func(s *watch.Sockets) { s.Connections = append(s.Connections, c) })
}

// writer is a connection with data in flight for the given time.
func writer(acked uint64, busySeconds float64, appLimited bool, unsent int64) func(*evidence.Span) {
	c := watch.Connection{Local: local, Remote: peer, UnsentBytes: unsent,
		TCP: tcpinfo.TCPInfo{Sender: true, BytesAcked: acked, BusySeconds: busySeconds, AppLimited: appLimited,
			SegsOut: acked / 1448}}
	return sockets(func(s *watch.Sockets) { s.Connections = append(s.Connections, c) })
}

// firewalled gives the host an input chain with the given number of rules, and CPU 0 the given
// softirq time.
func firewalled(rules int, softirq float64) func(*evidence.Span) {
	return func(s *evidence.Span) {
		s.Host.Firewall = append(s.Host.Firewall, host.FirewallChain{Family: "inet", Table: "filter", Name: "input",
			Type: "filter", Hook: "input", Rules: rules,
			Compared: rules})
		s.CPUs[0].SoftIRQ, s.CPUs[0].Idle = 3*softirq, 3*(1-softirq)
	}
}

// chain changes the last chain of the host.
func chain(f func(*host.FirewallChain)) func(*evidence.Span) {
	return func(s *evidence.Span) { f(&s.Host.Firewall[len(s.Host.Firewall)-1]) }
}

// TestRules checks that each rule reports its fault at every level, and is silent on look-alikes.
func TestRules(t *testing.T) {
	const none = evidence.Severity("")
	tests := []struct {
		name string
		rule func(*evidence.Span) *evidence.Finding
		span *evidence.Span
		want evidence.Severity
		says string // part of the title
	}{
		{"conntrack gross", conntrackFull,
			watched(counters{"conntrack.count": 65536, "conntrack.max": 65536, "conntrack.drop": 900}),
			evidence.Critical, "900"},
		{"conntrack plain, a few seconds in", conntrackFull,
			watched(counters{"conntrack.count": 65400, "conntrack.max": 65536, "conntrack.drop": 2}),
			evidence.Warning, "fail"},
		{"conntrack mild", conntrackFull, watched(counters{"conntrack.count": 60500, "conntrack.max": 65536}),
			evidence.Notice, "close"},
		{"conntrack evicts", conntrackFull,
			watched(counters{"conntrack.count": 60500, "conntrack.max": 65536, "conntrack.early_drop": 50}),
			evidence.Notice, "evicted"},
		{"conntrack was full in a burst", conntrackFull,
			watched(counters{"conntrack.count": 20000, "conntrack.max": 65536, "conntrack.drop": 90,
				"conntrack.early_drop": 7}), evidence.Critical, "90"},
		{"clashes of DNS queries", conntrackFull,
			watched(counters{"conntrack.count": 20000, "conntrack.max": 65536, "conntrack.drop": 90,
				"conntrack.insert_failed": 90}),
			none, ""},
		{"conntrack without its files", conntrackFull, watched(counters{"conntrack.drop": 90}), none, ""},
		{"conntrack half full", conntrackFull, watched(counters{"conntrack.count": 32000, "conntrack.max": 65536}),
			none, ""},
		{"conntrack, full since long", conntrackFull,
			watched(counters{"conntrack.count": 65536, "conntrack.max": 65536, "conntrack.drop": 9000}, history),
			evidence.Warning,
			"since boot"},
		{"conntrack, full once", conntrackFull,
			watched(counters{"conntrack.count": 2000, "conntrack.max": 65536, "conntrack.drop": 9000,
				"conntrack.early_drop": 3},
				history), evidence.Notice, "since boot"},
		{"conntrack, clashes since boot", conntrackFull,
			watched(counters{"conntrack.count": 2000, "conntrack.max": 65536, "conntrack.drop": 12}, history), none,
			""},

		{"neighbours gross", neighbourTableFull,
			watched(counters{"neigh.ipv4.table_fulls": 400, "neigh.ipv4.entries": 1024, "neigh.ipv4.gc_thresh3": 1024}),
			evidence.Critical, "ipv4"},
		{"neighbours of IPv6 and a little of IPv4", neighbourTableFull,
			watched(counters{"neigh.ipv4.table_fulls": 1, "neigh.ipv6.table_fulls": 400,
				"neigh.ipv6.entries": 1024, "neigh.ipv6.gc_thresh3": 1024}), evidence.Critical, "ipv6"},
		{"neighbours mild", neighbourTableFull,
			watched(counters{"neigh.ipv4.entries": 1000, "neigh.ipv4.gc_thresh3": 1024}), evidence.Notice, "1000"},
		{"permanent neighbours", neighbourTableFull,
			watched(counters{"neigh.ipv4.entries": 5000, "neigh.ipv4.gc_thresh3": 1024}), evidence.Notice, "5000"},
		{"neighbours that do not answer", neighbourTableFull,
			watched(counters{"neigh.ipv4.res_failed": 400, "neigh.ipv4.entries": 500, "neigh.ipv4.gc_thresh3": 1024}),
			none, ""},
		{"neighbours in a container", neighbourTableFull, watched(counters{}), none, ""},
		{"neighbours, full once", neighbourTableFull,
			watched(counters{"neigh.ipv4.table_fulls": 400, "neigh.ipv4.entries": 50, "neigh.ipv4.gc_thresh3": 1024},
				history),
			evidence.Notice, "since boot"},

		{"ports gross", portExhaustion,
			watched(counters{"sockets.port_first": 32768, "sockets.port_last": 32967, "sockets.tcp_tw": 200},
				destination(200, 200)),
			evidence.Warning, "fail"},
		{"ports mild", portExhaustion, watched(counters{"sockets.port_first": 32768, "sockets.port_last": 40767},
			destination(6500, 6400)), evidence.Notice, "6500"},
		{"ports of many destinations", portExhaustion,
			watched(counters{"sockets.port_first": 32768, "sockets.port_last": 33767, "sockets.tcp_tw": 9000,
				"Tcp.ActiveOpens": 500}, destination(300, 290), destination(290, 290)), none, ""},
		{"ports that are used again", portExhaustion, watched(rangeOf(1000), destination(1000, 990), set(twReuse, "1")),
			none, ""},
		{"ports that are used again and still taken", portExhaustion,
			watched(rangeOf(1000), destination(1000, 10), set(twReuse, "1")), evidence.Warning, "1000"},
		{"ports of loopback", portExhaustion,
			watched(rangeOf(1000), destination(1000, 990), sockets(func(s *watch.Sockets) {
				s.Destinations[0].Remote = netip.MustParseAddrPort("127.0.0.1:8000")
			})), none, ""},
		{"ports of a host behind those of loopback", portExhaustion,
			watched(rangeOf(1000), destination(1000, 990), destination(990, 990), sockets(func(s *watch.Sockets) {
				s.Destinations[0].Remote = netip.MustParseAddrPort("127.0.0.1:8000")
			})), evidence.Warning, "990"},
		{"a server that closes first", portExhaustion,
			watched(counters{"sockets.tcp_tw": 90000, "Tcp.PassiveOpens": 5000}), none, ""},
		{"ports without sockets", portExhaustion, watched(counters{"sockets.tcp_tw": 28100, "Tcp.ActiveOpens": 50},
			func(s *evidence.Span) { s.Sockets = nil }),
			evidence.Notice, "TIME_WAIT"},
		{"all ports but reserved ones", portExhaustion,
			watched(rangeOf(200), set(reserved, "1000,32768-32867,70000-70001"), destination(100, 100)),
			evidence.Warning, "100 of 100"},
		{"ports beside reserved ones", portExhaustion,
			watched(rangeOf(200), set(reserved, "1-32767"), destination(100, 100)), none, ""},
		{"a server without sockets", portExhaustion,
			watched(counters{"sockets.tcp_tw": 28100, "Tcp.ActiveOpens": 50, "Tcp.PassiveOpens": 5000},
				func(s *evidence.Span) { s.Sockets = nil }), none, ""},
		{"ports without a range", portExhaustion,
			watched(counters{"sockets.tcp_tw": 28100}, func(s *evidence.Span) { s.Host = nil }), none, ""},

		{"listener gross", listenOverflow,
			watched(counters{"TcpExt.ListenOverflows": 600, "TcpExt.ListenDrops": 600, "Tcp.PassiveOpens": 6},
				listener(watch.Listener{Queued: 5, Limit: 4, Drops: 600})), evidence.Warning, local.String()},
		{"listener plain, kernel without sockets", listenOverflow,
			watched(counters{"TcpExt.ListenOverflows": 100, "Tcp.PassiveOpens": 60},
				func(s *evidence.Span) { s.Sockets = nil }), evidence.Warning, "100"},
		{"half-open ones dropped", listenOverflow,
			watched(counters{"TcpExt.TCPReqQFullDrop": 100, "TcpExt.ListenDrops": 100, "Tcp.PassiveOpens": 60}),
			evidence.Warning,
			"100"},
		// Linux 6.18 with tcp_syncookies 0 and tcp_max_syn_backlog 16, 300 SYNs a second from absent
		// hosts: every drop counted as ListenDrops alone.
		{"half-open ones dropped without cookies", listenOverflow,
			watched(counters{"TcpExt.ListenDrops": 880, "Tcp.PassiveOpens": 120}, set(synCookies, "0")),
			evidence.Warning, "880 of 1000"},
		{"listener mild", listenOverflow, watched(counters{"TcpExt.ListenOverflows": 2, "Tcp.PassiveOpens": 150}),
			evidence.Notice, "2 of 152"},
		{"one in ten thousand", listenOverflow,
			watched(counters{"TcpExt.ListenOverflows": 3, "Tcp.PassiveOpens": 30000}), evidence.Notice, ""},
		{"backlog full, no new connection", listenOverflow,
			watched(counters{}, listener(watch.Listener{Queued: 5, Limit: 4})), evidence.Notice, "full"},
		{"backlog in use", listenOverflow,
			watched(counters{"Tcp.PassiveOpens": 6000}, listener(watch.Listener{Queued: 100, Limit: 128})), none, ""},
		{"a flood that gets cookies", listenOverflow,
			watched(counters{"TcpExt.TCPReqQFullDoCookies": 50000, "TcpExt.SyncookiesSent": 50000}), none, ""},
		{"drops of a listener for other reasons", listenOverflow,
			watched(counters{"TcpExt.ListenDrops": 50, "Tcp.PassiveOpens": 60}), none, ""},
		{"a listener that dropped what makes no sense", listenOverflow,
			watched(counters{"TcpExt.ListenDrops": 50, "Tcp.PassiveOpens": 60},
				listener(watch.Listener{Queued: 1, Limit: 128, Drops: 50})), none, ""},
		{"a restart last month", listenOverflow,
			watched(counters{"TcpExt.ListenOverflows": 300, "Tcp.PassiveOpens": 9_000_000}, history), none, ""},
		{"overflows since boot", listenOverflow,
			watched(counters{"TcpExt.ListenOverflows": 300_000, "Tcp.PassiveOpens": 900_000}, history), evidence.Notice,
			"since boot"},

		{"datagrams gross", udpSocketOverflow, watched(counters{"Udp.RcvbufErrors": 22500, "Udp.InDatagrams": 1500},
			datagram(22500, 16000, 16384)), evidence.Warning,
			local.String()},
		{"datagrams of IPv6", udpSocketOverflow, watched(counters{"Udp6.RcvbufErrors": 1500, "Udp6.InDatagrams": 1500}),
			evidence.Warning, "1500"},
		{"datagrams mild", udpSocketOverflow, watched(counters{"Udp.RcvbufErrors": 25, "Udp.InDatagrams": 1500}),
			evidence.Notice, "25"},
		{"one in a hundred thousand", udpSocketOverflow,
			watched(counters{"Udp.RcvbufErrors": 20, "Udp.InDatagrams": 3_000_000}), none, ""},
		{"a stuck multicast listener", udpSocketOverflow,
			watched(counters{"Udp.RcvbufErrors": 2, "Udp.InDatagrams": 10}), none, ""},
		{"no listener", udpSocketOverflow, watched(counters{"Udp.NoPorts": 90000}), none, ""},
		{"no memory for datagrams", udpSocketOverflow,
			watched(counters{"Udp.MemErrors": 9000, "Udp.InDatagrams": 1500}), none, ""},
		{"a datagram test", udpSocketOverflow,
			watched(counters{"Udp.RcvbufErrors": 22500, "Udp.InDatagrams": 150000}, ofRun(traffic.UDP)),
			evidence.Notice, ""},
		{"another program during a stream", udpSocketOverflow,
			watched(counters{"Udp.RcvbufErrors": 22500, "Udp.InDatagrams": 150000}, ofRun(traffic.Stream)),
			evidence.Warning, "during the test"},
		{"datagrams since boot", udpSocketOverflow,
			watched(counters{"Udp.RcvbufErrors": 225000, "Udp.InDatagrams": 150000}, history), evidence.Notice,
			"since boot"},
		{"a burst last month", udpSocketOverflow,
			watched(counters{"Udp.RcvbufErrors": 900, "Udp.InDatagrams": 15_000_000}, history), none, ""},

		{"fragments without memory", fragmentLoss, // Linux 6.18, 5 % of later fragments dropped, in 4 MB
			watched(counters{"Ip.ReasmReqds": 13800, "Ip.ReasmFails": 13800}), evidence.Warning, "memory"},
		{"fragments that never came", fragmentLoss,
			watched(counters{"Ip.ReasmReqds": 24074, "Ip.ReasmOKs": 7723, "Ip.ReasmFails": 458,
				"Ip.ReasmTimeout": 458}), evidence.Warning, "458 datagrams"},
		{"fragments of IPv6", fragmentLoss,
			watched(counters{"Ip6.ReasmReqds": 3000, "Ip6.ReasmOKs": 950, "Ip6.ReasmFails": 50, "Ip6.ReasmTimeout": 50}),
			evidence.Warning, "50 datagrams"},
		{"fragments that miss others in a test", fragmentLoss,
			watched(counters{"Ip.ReasmReqds": 24074, "Ip.ReasmOKs": 7723}, ofRun(traffic.UDP), sentBy(counters{
				"Ip.FragOKs": 8181, "Ip.FragCreates": 24543})), evidence.Warning, "453 datagrams"},
		{"fragments, all put together", fragmentLoss, watched(counters{"Ip.ReasmReqds": 24000, "Ip.ReasmOKs": 8000}),
			none, ""},
		{"three of a hundred thousand fragments", fragmentLoss,
			watched(counters{"Ip.ReasmReqds": 100_000, "Ip.ReasmOKs": 33_000, "Ip.ReasmFails": 3,
				"Ip.ReasmTimeout": 3}), none, ""},
		{"a few fragments, nothing else", fragmentLoss,
			watched(counters{"Ip.ReasmReqds": 12, "Ip.ReasmFails": 6, "Ip.ReasmTimeout": 6}), evidence.Notice, "6 datagrams"},
		{"fragments since boot", fragmentLoss,
			watched(counters{"Ip.ReasmReqds": 24074, "Ip.ReasmOKs": 7723, "Ip.ReasmFails": 458,
				"Ip.ReasmTimeout": 458}, history), evidence.Notice, "since boot"},

		{"memory gross", tcpMemoryPressure,
			watched(counters{"tcpmem.pages": 3100, "tcpmem.pressure_pages": 2000, "tcpmem.max_pages": 3000,
				"TcpExt.TCPMemoryPressures": 1,
				"TcpExt.TCPAbortOnMemory":   50}), evidence.Critical, "closed"},
		{"memory plain", tcpMemoryPressure, watched(counters{"tcpmem.pages": 2100, "TcpExt.PruneCalled": 400}),
			evidence.Warning, "2100"},
		{"memory for a tenth of the time", tcpMemoryPressure,
			watched(counters{"tcpmem.pages": 100, "TcpExt.TCPMemoryPressures": 3,
				"TcpExt.TCPMemoryPressuresChrono": 300}),
			evidence.Warning, ""},
		{"memory mild", tcpMemoryPressure,
			watched(counters{"tcpmem.pages": 100, "TcpExt.TCPMemoryPressures": 1,
				"TcpExt.TCPMemoryPressuresChrono": 20}), evidence.Notice,
			"ran short"},
		{"many sockets and no harm", tcpMemoryPressure, watched(counters{"tcpmem.pages": 2100}), evidence.Notice,
			"may have"},
		{"sockets of containers, whose counters are not seen", tcpMemoryPressure,
			watched(counters{"tcpmem.pages": 2600}), evidence.Warning, "2600"},
		{"one socket is pruned", tcpMemoryPressure,
			watched(counters{"tcpmem.pages": 100, "TcpExt.PruneCalled": 4000, "TcpExt.RcvPruned": 20,
				"TcpExt.TCPRcvQDrop": 100}),
			none, ""},
		{"orphans are closed", tcpMemoryPressure, watched(counters{"tcpmem.pages": 100, "TcpExt.TCPAbortOnMemory": 50}),
			none, ""},
		{"memory without limits", tcpMemoryPressure,
			watched(counters{"tcpmem.pages": 99999}, func(s *evidence.Span) { s.Host = nil }), none, ""},
		{"memory, once", tcpMemoryPressure,
			watched(counters{"tcpmem.pages": 100, "TcpExt.TCPMemoryPressures": 9,
				"TcpExt.TCPMemoryPressuresChrono": 90000,
				"TcpExt.PruneCalled":              7000}, history), evidence.Notice, "since boot"},

		// These three use the figures of a run over veth with Linux 6.18.
		{"firewall gross", firewallCost, watched(counters{"Ip.InReceives": 6098, "Ip.OutRequests": 5233},
			ofRun(traffic.Stream), firewalled(20000, 0.67)), evidence.Warning,
			"20.0 k"},
		{"firewall plain", firewallCost, watched(counters{"Ip.InReceives": 21463, "Ip.OutRequests": 19720},
			ofRun(traffic.Stream), firewalled(5000, 0.58)), evidence.Warning,
			"5000"},
		{"firewall mild", firewallCost, watched(counters{"Ip.InReceives": 138623, "Ip.OutRequests": 118261},
			ofRun(traffic.Stream), firewalled(500, 0.6)), evidence.Warning,
			"500"},
		{"firewall of a few hundred rules on a busy CPU", firewallCost, watched(counters{"Ip.InReceives": 150_000},
			ofRun(traffic.Stream), firewalled(640, 0.86)), evidence.Warning, "640 rules"},
		{"firewall of 160 rules on a busy CPU", firewallCost, watched(counters{"Ip.InReceives": 250_000},
			ofRun(traffic.Stream), firewalled(160, 0.86)), evidence.Warning, "160 rules"},
		{"firewall of 160 rules on a CPU that is not full", firewallCost, watched(counters{"Ip.InReceives": 200_000},
			ofRun(traffic.Stream), firewalled(160, 0.6)), evidence.Notice, "of it for that"},
		{"160 rules and time to spare", firewallCost, watched(counters{"Ip.InReceives": 50_000},
			ofRun(traffic.Stream), firewalled(160, 0.3)), none, ""},
		{"160 rules since boot", firewallCost, watched(counters{"Ip.InReceives": 9_000_000}, firewalled(160, 0.86),
			history), none, ""},
		{"160 rules and packets that cost far more", firewallCost, watched(counters{"Ip.InReceives": 2000},
			ofRun(traffic.Stream), firewalled(160, 0.86)), none, ""},
		{"a few rules", firewallCost, watched(counters{"Ip.InReceives": 250_000}, ofRun(traffic.Stream),
			firewalled(25, 0.95)), none, ""},
		{"rules behind jumps with conditions", firewallCost, watched(counters{"Ip.InReceives": 150_000},
			ofRun(traffic.Stream), firewalled(4, 0.86), chain(func(c *host.FirewallChain) { c.AtMost = 640 })),
			evidence.Warning, "640 rules"},
		{"rules behind jumps, and time to spare", firewallCost, watched(counters{"Ip.InReceives": 50_000},
			firewalled(4, 0.2), chain(func(c *host.FirewallChain) { c.AtMost = 640 })), none, ""},
		{"firewall of iptables-legacy", firewallCost, watched(counters{"Ip.InReceives": 150_000},
			ofRun(traffic.Stream), firewalled(640, 0.86), chain(func(c *host.FirewallChain) {
				c.Family, c.Table, c.Name, c.Legacy = "ip", "filter", "INPUT", true
			})), evidence.Warning, "ip filter INPUT"},
		{"firewall of IPv6", firewallCost, watched(counters{"Ip6.InReceives": 21463}, firewalled(5000, 0.58),
			chain(func(c *host.FirewallChain) { c.Family = "ip6" })),
			evidence.Warning, "ip6"},
		{"firewall of a router", firewallCost, watched(counters{"Ip.InReceives": 21463, "Ip.ForwDatagrams": 21000},
			firewalled(5000, 0.58),
			chain(func(c *host.FirewallChain) { c.Hook = "forward" })), evidence.Warning, "5000"},
		{"firewall of what goes out", firewallCost, watched(counters{"Ip.OutRequests": 21463}, firewalled(5000, 0.58),
			chain(func(c *host.FirewallChain) { c.Hook = "output" })), evidence.Warning, "5000"},
		{"a long chain that packets leave early", firewallCost,
			watched(counters{"Ip.InReceives": 2_000_000}, firewalled(20000, 0.9)), evidence.Notice, "20.0 k"},
		{"a long chain and few packets", firewallCost, watched(counters{"Ip.InReceives": 300}, firewalled(20000, 0.03)),
			evidence.Notice, "20.0 k"},
		{"a long chain and the softirqs of others", firewallCost,
			watched(counters{"Ip.InReceives": 10}, firewalled(5000, 0.9)), evidence.Notice, "5000"},
		{"many slow packets and few rules", firewallCost,
			watched(counters{"Ip.InReceives": 20000}, firewalled(40, 0.95)), none, ""},
		{"rules for new connections alone", firewallCost,
			watched(counters{"Ip.InReceives": 21463}, firewalled(5000, 0.58),
				chain(func(c *host.FirewallChain) { c.Type = "nat" })), none, ""},
		{"rules of a bridge", firewallCost, watched(counters{"Ip.InReceives": 21463}, firewalled(5000, 0.58),
			chain(func(c *host.FirewallChain) { c.Family = "bridge" })),
			none, ""},
		{"rules of a router at a host", firewallCost, watched(counters{"Ip.InReceives": 21463, "Ip.InDelivers": 21463},
			firewalled(5000, 0.58),
			chain(func(c *host.FirewallChain) { c.Hook = "forward" })), none, ""},
		{"firewall, not permitted to read it", firewallCost, watched(counters{"Ip.InReceives": 21463}), none, ""},
		{"firewall since boot", firewallCost, watched(counters{"Ip.InReceives": 900_000_000}, firewalled(5000, 0.5),
			history), evidence.Notice, "5000"},

		{"reader gross", applicationLimited,
			watched(counters{"TcpExt.TCPToZeroWindowAdv": 6}, reader(4_000_000, 4_227_633, 1_500_000)),
			evidence.Warning, "reads"},
		{"reader mild", applicationLimited, watched(counters{}, reader(4_000_000, 4_227_633, 112_000_000)),
			evidence.Warning, "reads"},
		{"a slow reader on a hogged host", applicationLimited,
			watched(counters{}, hogged, reader(4_000_000, 4_227_633, 1_500_000)), evidence.Warning, "reads"},
		{"a reader that gets no processor", applicationLimited,
			watched(counters{}, hogged, reader(4_000_000, 4_227_633, 112_000_000)), evidence.Notice, "reads"},
		{"a burst that was caught half way", applicationLimited,
			watched(counters{}, reader(3_000_000, 6_000_000, 5_000_000)), evidence.Notice, "reads"},
		{"a connection that has just begun", applicationLimited, watched(counters{}, reader(120_000, 131_072, 200_000),
			sockets(func(s *watch.Sockets) { s.Connections[0].New = true })),
			none, ""},
		{"a reader that stopped", applicationLimited, watched(counters{}, reader(4_000_000, 4_227_633, 0)),
			evidence.Notice, "stopped"},
		{"a buffer that is too small", applicationLimited,
			watched(counters{"TcpExt.TCPToZeroWindowAdv": 20000}, reader(126_076, 131_072, 1_500_000_000)), none, ""},
		{"a fast reader at work", applicationLimited, watched(counters{}, reader(6_362_752, 16_150_615, 4_500_000_000)),
			none, ""},
		{"a shell", applicationLimited, watched(counters{}, reader(0, 131_072, 900)), none, ""},
		{"a writer that rests", applicationLimited, watched(counters{}, writer(30_000_000, 0.5, true, 0)),
			evidence.Info, "nothing to send"},
		{"a writer of megabytes at a time", applicationLimited,
			watched(counters{}, writer(30_000_000, 0.02, false, 0)), none, ""},
		{"a writer that is held", applicationLimited, watched(counters{}, writer(30_000_000, 2.9, false, 0)), none, ""},
		{"a writer with bytes to send", applicationLimited,
			watched(counters{}, writer(30_000_000, 0.5, true, 9000)), none, ""},
		{"a talk", applicationLimited, watched(counters{}, writer(30_000, 0.5, true, 0)), none, ""},
		{"one of many", applicationLimited,
			watched(counters{}, writer(30_000_000, 0.5, true, 0), writer(40_000_000, 2.9, false, 0)), none, ""},
		{"our own run", applicationLimited, watched(counters{}, reader(4_000_000, 4_227_633, 1_500_000),
			ofRun(traffic.Stream)), none, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			x := test.rule(test.span)
			if x == nil {
				if test.want != none {
					t.Errorf("nothing found, want %s", test.want)
				}
				return
			}
			if x.Severity != test.want || !strings.Contains(x.Title, test.says) {
				t.Errorf("%s %q, want %q with %q", x.Severity, x.Title, test.want, test.says)
			}
			checkFinding(t, x)
		})
	}
}

var sentence = regexp.MustCompile(`^[A-Z0-9].*\.$`)

// checkFinding checks what every finding promises.
func checkFinding(t *testing.T, x *evidence.Finding) {
	t.Helper()
	if _, err := json.Marshal(x); err != nil { // not a number
		t.Error(err)
	}
	if x.Confidence <= 0 || x.Confidence >= 1 || x.Where == "" || x.Remedy.Text == "" || x.Remedy.Proof == "" ||
		len(x.Rejected) == 0 {
		t.Errorf("incomplete: %+v", x)
	}
	for _, text := range append([]string{x.Title, x.Remedy.Text, x.Remedy.Proof}, x.Rejected...) {
		if !sentence.MatchString(text) || strings.Contains(text, "NaN") || strings.Contains(text, "%!") {
			t.Errorf("not a sentence: %q", text)
		}
	}
	for _, text := range x.Rejected {
		if !strings.ContainsAny(text, "0123456789") {
			t.Errorf("rejected without a number: %q", text)
		}
	}
	for _, c := range x.Remedy.Settings {
		if len(c.Levels) == 0 || c.Side != x.Where || c.Why == "" {
			t.Errorf("candidate %+v", c)
		}
	}
}

// TestRemedies checks that a setting is proposed only if it is the limit.
func TestRemedies(t *testing.T) {
	knobs := func(x *evidence.Finding) []string {
		var names []string
		for _, c := range x.Remedy.Settings {
			names = append(names, string(c.Knob))
		}
		return names
	}
	overflows := counters{"TcpExt.ListenOverflows": 600, "Tcp.PassiveOpens": 60}
	lost := counters{"Udp.RcvbufErrors": 30, "Udp.InDatagrams": 15000}
	for name, test := range map[string]struct {
		finding *evidence.Finding
		want    []string
	}{
		"the program asked for little": {
			listenOverflow(watched(overflows, listener(watch.Listener{Queued: 5, Limit: 4, Drops: 600}))), nil},
		"the host cuts the backlog": {
			listenOverflow(watched(overflows, listener(watch.Listener{Queued: 4097, Limit: 4096, Drops: 600}))),
			[]string{coreSomaxconn}},
		"half-open": {listenOverflow(watched(counters{"TcpExt.TCPReqQFullDrop": 600})),
			[]string{synBacklog}},
		"half-open without cookies": {listenOverflow(watched(counters{"TcpExt.ListenDrops": 600}, set(synCookies, "0"))),
			[]string{synCookies, synBacklog}},
		"a socket with the default buffer": {udpSocketOverflow(watched(lost, datagram(30, 9000, 212992))),
			[]string{coreRmemDefault}},
		"a socket that got all it may": {udpSocketOverflow(watched(lost, datagram(30, 9000, 425984))),
			[]string{evidence.CoreRmemMax}},
		"a socket that asked for too little": {udpSocketOverflow(watched(lost, datagram(30, 9000, 16384))), nil},
		"no memory for fragments": {fragmentLoss(watched(counters{"Ip.ReasmReqds": 900, "Ip.ReasmFails": 900})),
			[]string{fragmentMemory}},
		"fragments of IPv6 alone": {fragmentLoss(watched(counters{"Ip6.ReasmReqds": 900, "Ip6.ReasmFails": 900})), nil},
		"a client": {portExhaustion(watched(counters{}, destination(28000, 28000))),
			[]string{twReuse, portRange}},
	} {
		if test.finding == nil || !slices.Equal(knobs(test.finding), test.want) {
			t.Errorf("%s: %+v, want %v", name, test.finding, test.want)
		}
	}
}

// TestRangeGrows: a range that begins below the proposed one keeps its begin.
func TestRangeGrows(t *testing.T) {
	for now, want := range map[string]string{"1024 60999": "1024 65535", "32768 60999": "10240 65535",
		"10240 65535": ""} {
		x, got := &evidence.Finding{}, ""
		portsRemedy(watched(counters{}, set(portRange, now), set(twReuse, "1")), x)
		for _, c := range x.Remedy.Settings {
			got += string(c.Levels[0])
		}
		if got != want {
			t.Errorf("%s: %q, want %q", now, got, want)
		}
	}
}

// TestPortsRefused checks that the kernel's error at connect is the best evidence, unless it
// concerns the family of the address.
func TestPortsRefused(t *testing.T) {
	near := watched(counters{}).Host
	const reason = "connect 192.0.2.7:7070: cannot assign requested address"
	stream := traffic.Result{Test: traffic.Stream, Bytes: 1e9}
	refused := map[evidence.Probe]string{evidence.ProbeConnect: reason}
	for name, test := range map[string]struct {
		c    evidence.Case
		want bool
	}{
		"a probe": {evidence.Case{Near: near, Runs: []traffic.Result{stream}, Refused: refused}, true},
		"a run": {evidence.Case{Near: near,
			Runs: []traffic.Result{{Test: traffic.CRR, TransactionsPerSec: 9, Warnings: []string{reason}}}}, true},
		"another probe": {evidence.Case{Near: near, Runs: []traffic.Result{stream},
			Refused: map[evidence.Probe]string{evidence.ProbeUDP: reason}}, false},
		"no such family": {evidence.Case{Near: near, Refused: refused}, false},
		"another refusal": {evidence.Case{Near: near, Runs: []traffic.Result{stream},
			Refused: map[evidence.Probe]string{evidence.ProbeConnect: "connection refused"}},
			false},
		"nothing":           {evidence.Case{Near: near, Runs: []traffic.Result{stream}}, false},
		"no range is known": {evidence.Case{Runs: []traffic.Result{stream}, Refused: refused}, false},
	} {
		x := portsRefused(&test.c)
		if (x != nil) != test.want {
			t.Errorf("%s: %+v", name, x)
		}
		if x != nil {
			checkFinding(t, x)
		}
	}
}

// TestAccountingIsKept: where rules only count, the remedy is not to pass packets by them.
func TestAccountingIsKept(t *testing.T) {
	s := watched(counters{"Ip.InReceives": 250_000}, ofRun(traffic.Stream), firewalled(160, 0.86))
	if x := firewallCost(s); !strings.Contains(x.Remedy.Text, "in the first rule") {
		t.Errorf("without accounting: %s", x.Remedy.Text)
	}
	chain(func(c *host.FirewallChain) { c.Counting = 158 })(s)
	x := firewallCost(s)
	if strings.Contains(x.Remedy.Text, "in the first rule") || !strings.Contains(x.Remedy.Text, "158 of these rules") ||
		!strings.Contains(x.Remedy.Text, "counter") {
		t.Errorf("with accounting: %s", x.Remedy.Text)
	}
}
