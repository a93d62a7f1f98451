package procfs

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestParseCounters has, for each file, its forms in various kernels and input to refuse.
func TestParseCounters(t *testing.T) {
	for _, c := range []struct {
		name  string
		parse func([]byte, *Counts) error
		in    string
		want  map[string]uint64
		bad   bool
	}{
		{"snmp", ParseSNMP, "Tcp: MaxConn CurrEstab RetransSegs\nTcp: -1 3 17\n\nUdp: A\nUdp: 9",
			map[string]uint64{"Tcp.CurrEstab": 3, "Tcp.RetransSegs": 17, "Udp.A": 9}, false},
		{"snmp constants", ParseSNMP, "Ip: Forwarding InReceives\nIp: 1 2\nMPTcpExt: X\nMPTcpExt: 3\n",
			map[string]uint64{"Ip.InReceives": 2}, false},
		{"snmp: surplus value", ParseSNMP, "Tcp: A B\nTcp: 1 2 3\n", nil, true},
		{"snmp: missing value", ParseSNMP, "Tcp: A B\nTcp: 1\n", nil, true},
		{"snmp: two heads", ParseSNMP, "Tcp: A\nUdp: A\n", nil, true},
		{"snmp: cut off", ParseSNMP, "Tcp: A\n", nil, true},
		{"snmp: other text", ParseSNMP, "hello\nhello\n", nil, true},
		{"snmp6", ParseSNMP6, "Udp6RcvbufErrors\t4\nIcmp6InType128 3\nIp6InDiscards                    \t1\n",
			map[string]uint64{"Udp6.RcvbufErrors": 4, "Ip6.InDiscards": 1}, false},
		{"snmp6: no number", ParseSNMP6, "Udp6RcvbufErrors\n", nil, true},
		{"softnet of 2.6", ParseSoftnet,
			"0000000a 00000001 00000002 00000000 00000000 00000000 00000000 00000000 00000000\n", map[string]uint64{
				"softnet.0.processed": 10, "softnet.0.dropped": 1, "softnet.0.time_squeeze": 2, "softnet.processed": 10,
				"softnet.dropped": 1, "softnet.time_squeeze": 2}, false},
		{"softnet, CPU 1 offline", ParseSoftnet, "1 2 3 0 0 0 0 0 0 4 5 6 0\nffffffff 1 1 0 0 0 0 0 0 1 1 0 2 0 0\n",
			map[string]uint64{
				"softnet.0.processed": 1, "softnet.0.dropped": 2, "softnet.0.time_squeeze": 3,
				"softnet.0.received_rps": 4,
				"softnet.0.flow_limit":   5,
				"softnet.2.processed":    1<<32 - 1, "softnet.2.dropped": 1, "softnet.2.time_squeeze": 1,
				"softnet.2.received_rps": 1, "softnet.2.flow_limit": 1,
				"softnet.processed": 1 << 32, "softnet.dropped": 3, "softnet.time_squeeze": 4,
				"softnet.received_rps": 5,
				"softnet.flow_limit":   6}, false},
		{"softnet: too short", ParseSoftnet, "0000000a 00000001\n", nil, true},
		{"softnet: not hexadecimal", ParseSoftnet, "0000000a 0000000g 0\n", nil, true},
		{"sockstat", ParseSockstat,
			"sockets: used 17\nTCP: inuse 1 orphan 2 tw 3 alloc 4 mem 5\nUDP: inuse 6 mem 7\nRAW: inuse 0\n",
			map[string]uint64{
				"sockets.tcp_inuse": 1, "sockets.tcp_orphan": 2, "sockets.tcp_tw": 3, "sockets.tcp_alloc": 4,
				"tcpmem.pages": 5, "sockets.udp_inuse": 6, "udpmem.pages": 7}, false},
		{"sockstat: no number", ParseSockstat, "TCP: inuse\n", nil, true},
		{"snmp, messages by type", ParseSNMP, "IcmpMsg: InType0 InType3 OutType3 OutType8\nIcmpMsg: 1 2 3 4\n",
			map[string]uint64{"IcmpMsg.InType3": 2, "IcmpMsg.OutType3": 3}, false},
		{"snmp6, messages", ParseSNMP6, "Icmp6InPktTooBigs 2\nIcmp6InType2 2\nIcmp6OutType135 3\nUdpLite6InErrors 9\n",
			map[string]uint64{"Icmp6.InPktTooBigs": 2}, false},
		{"conntrack of 6.18", columnsOf("conntrack"),
			"entries  found drop  search_restart\n00000007  0000000a 00000001  00000000\n" +
				"00000007  00000001 ffffffff  00000002\n", map[string]uint64{
				"conntrack.entries": 7, "conntrack.found": 11, "conntrack.drop": 1 << 32,
				"conntrack.search_restart": 2},
			false},
		{"conntrack without a CPU", columnsOf("conntrack"), "entries found\n",
			map[string]uint64{"conntrack.entries": 0, "conntrack.found": 0}, false},
		{"conntrack: a name without a number", columnsOf("conntrack"), "entries found\n00000007\n", nil, true},
		{"conntrack: a number without a name", columnsOf("conntrack"), "entries found\n7 8 9\n", nil, true},
		{"conntrack: nothing", columnsOf("conntrack"), "", nil, true},
		{"nfnetlink_queue", ParseQueues,
			"    0  22122     3 2 65531     4     5       12  1\n    7  22125     1 2 65531     0     1        1  1\n",
			map[string]uint64{
				"nfqueue.waiting": 4, "nfqueue.dropped": 4, "nfqueue.user_dropped": 6}, false},
		{"nfnetlink_queue, no queue", ParseQueues, "", map[string]uint64{"nfqueue.waiting": 0, "nfqueue.dropped": 0,
			"nfqueue.user_dropped": 0}, false},
		{"nfnetlink_queue: cut off", ParseQueues, "    0  22122     3\n", nil, true},
		{"softirqs", ParseSoftIRQs,
			"                    CPU0       CPU2       CPU3       \n" +
				"          HI:          1          0          0\n      NET_TX:          0          5          0\n" +
				"      NET_RX:          7          8          0\n", map[string]uint64{
				"softirq.NET_TX.2": 5, "softirq.NET_RX.0": 7, "softirq.NET_RX.2": 8}, false},
		{"softirqs: too few columns", ParseSoftIRQs, " CPU0 CPU1\nNET_RX: 1\n", nil, true},
		{"softirqs: no CPU", ParseSoftIRQs, " eth0 CPU1\nNET_RX: 1 2\n", nil, true},
		{"pressure", pressureOf("cpu"),
			"some avg10=0.00 avg60=1.50 avg300=0.00 total=1234\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n" +
				"most total=1\n", map[string]uint64{
				"pressure.cpu.some_microseconds": 1234, "pressure.cpu.full_microseconds": 0}, false},
		{"pressure: no total", pressureOf("cpu"), "some avg10=0.00\n", nil, true},
		{"pressure: no number", pressureOf("cpu"), "some total=-1\n", nil, true},
		{"levels", levels("tcpmem.low_pages", "tcpmem.pressure_pages"), "18813\t25084\t37626\n",
			map[string]uint64{"tcpmem.low_pages": 18813, "tcpmem.pressure_pages": 25084}, false},
		{"levels: too few", levels("a", "b"), "1\n", nil, true},
		{"dev: too few columns", ParseDev, "  eth0: 1 2 3\n", nil, true},
		{"dev: no name", ParseDev, ": 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n", nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			set := NewCounts(0)
			err := c.parse([]byte(c.in), set)
			if c.bad {
				if !errors.Is(err, ErrFormat) {
					t.Errorf("taken: %v %v", set.Values, err)
				}
				return
			}
			if diff := cmp.Diff(c.want, set.Values); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestParseDev(t *testing.T) {
	set := NewCounts(0)
	in := "Inter-|   Receive\n face |bytes\n  eth0:1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n" +
		"eth0.100: 21 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\neth0:1: 31 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"
	if err := ParseDev([]byte(in), set); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"eth0", "eth0.100", "eth0:1"}, set.Interfaces); diff != "" {
		t.Error(diff)
	}
	for name, want := range map[string]uint64{"nic.eth0.rx_bytes": 1, "nic.eth0.tx_bytes": 9, "nic.eth0.collisions": 14,
		"nic.eth0.100.rx_bytes": 21, "nic.eth0:1.rx_bytes": 31} {
		if set.Values[name] != want {
			t.Errorf("%s = %d, want %d", name, set.Values[name], want)
		}
	}
}

func TestParseStat(t *testing.T) {
	set := NewCounts(0)
	cpus, err := ParseStat(
		[]byte("cpu  100 1 200 4000 40 5 60 7 0 0\ncpu3 25 0 50 1000 10 1 15 2\ncpu4 1 2 3 4\nintr 25 20 0 5\n"+
			"ctxt 12\nsoftirq 9 1 2 3 4\n"), set)
	if err != nil {
		t.Fatal(err)
	}
	want := []CPUTimes{
		{CPU: -1, User: 1.01, Nice: 0.01, System: 2, Idle: 40.4, IRQ: 0.05, SoftIRQ: 0.6, Steal: 0.07},
		{CPU: 3, User: 0.25, System: 0.5, Idle: 10.1, IRQ: 0.01, SoftIRQ: 0.15, Steal: 0.02},
		{CPU: 4, User: 0.03, Nice: 0.02, System: 0.03, Idle: 0.04},
	}
	if diff := cmp.Diff(want, cpus,
		cmp.Comparer(func(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 })); diff != "" {
		t.Errorf("times (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]uint64{"irq.0": 20, "irq.2": 5, "ctxt": 12, "softirq.HI": 1, "softirq.TIMER": 2,
		"softirq.NET_TX": 3, "softirq.NET_RX": 4}, set.Values); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	for _, bad := range []string{"cpux 1 2 3 4\n", "cpu0 1 2\n", "cpu0 1 2 3 -4\n", "cpu99999999 1 2 3 4\n",
		"intr 1 x\n"} {
		if _, err := ParseStat([]byte(bad), NewCounts(0)); !errors.Is(err, ErrFormat) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestDifference(t *testing.T) {
	for _, c := range []struct {
		name           string
		was, now, want uint64
	}{
		{"Tcp.RetransSegs", 10, 17, 7}, {"Tcp.RetransSegs", 1<<32 - 1, 1, 1}, {"softnet.dropped", 1<<32 - 1, 1, 2},
		{"conntrack.drop", 3<<32 + 10, 1<<32 + 30, 20},
		{"qdisc.eth0.drops", 1000, 5, 5}, {"irq.45", 1<<32 - 10, 0, 10}, {"Tcp.CurrEstab", 9, 4, 4},
		{"neigh.ipv4.entries", 9, 4, 4}, {"neigh.ipv4.table_fulls", 4, 9, 5},
		{"qdisc.eth0.backlog_bytes", 9000, 0, 0}, {"nfqueue.waiting", 3, 8, 8}, {"nic.eth0.rx_bytes", 1 << 40, 99, 99},
	} {
		if got := Difference(c.name, c.was, c.now); got != c.want {
			t.Errorf("%s from %d to %d: %d, want %d", c.name, c.was, c.now, got, c.want)
		}
	}
}

// TestParsersAreFrugal checks allocations, because a reading around a test must not disturb it:
// names are slices of blocks, not allocated separately.
func TestParsersAreFrugal(t *testing.T) {
	var in strings.Builder
	in.WriteString("TcpExt:")
	for i := range 500 {
		fmt.Fprintf(&in, " Name%d", i)
	}
	in.WriteString("\nTcpExt:" + strings.Repeat(" 1", 500) + "\n")
	text := []byte(in.String())
	set := NewCounts(0)
	if err := ParseSNMP(text, set); err != nil || len(set.Values) != 500 {
		t.Fatalf("%d values, %v", len(set.Values), err)
	}
	if n := testing.AllocsPerRun(10, func() { _ = ParseSNMP(text, set) }); n > 20 {
		t.Errorf("%v allocations for 500 counters", n)
	}
}

// TestNamesKeepTheirText checks that a new block does not change the earlier names, which share
// memory.
func TestNamesKeepTheirText(t *testing.T) {
	set := NewCounts(0)
	want := make(map[string]uint64)
	for i := range uint64(5000) {
		name := strings.Repeat("n", int(i%97)) + "." + string(rune('a'+i%26))
		set.Put(i, "prefix.", name)
		want["prefix."+name] = i
	}
	set.Put(1, strings.Repeat("long", nameBlock))
	delete(set.Values, strings.Repeat("long", nameBlock))
	if !maps.Equal(set.Values, want) {
		t.Error("names changed")
	}
}

// TestParseBootTime checks the one relevant line, and refused values.
func TestParseBootTime(t *testing.T) {
	at, ok := ParseBootTime([]byte("cpu  1 2 3 4\nintr 5 5\nctxt 7\nbtime 1700000000\nprocesses 9\n"))
	if want := time.Date(2023, 11, 14, 22, 13, 20, 0, time.UTC); !ok || !at.Equal(want) {
		t.Errorf("%v %v, want %v", at, ok, want)
	}
	for _, bad := range []string{"", "cpu 1 2 3 4\n", "btime\n", "btime 0\n", "btime -5\n", "btime 99999999999999\n",
		"bttime 5\n"} {
		if at, ok := ParseBootTime([]byte(bad)); ok {
			t.Errorf("%q: %v", bad, at)
		}
	}
}

func FuzzCounters(f *testing.F) {
	parsers := []func([]byte, *Counts) error{
		ParseSNMP, ParseSNMP6, ParseSoftnet, ParseSockstat, ParseDev,
		func(b []byte, set *Counts) error { _, err := ParseStat(b, set); return err },
		columnsOf("conntrack"), ParseQueues, ParseSoftIRQs, pressureOf("cpu"),
		levels("tcpmem.low_pages", "tcpmem.pressure_pages", "tcpmem.max_pages"),
	}
	for which, seed := range []string{
		"Tcp: A B\nTcp: 1 2\n", "Udp6RcvbufErrors 4\n", "1 2 3 0 0 0 0 0 0 4 5 6 0\n", "TCP: inuse 1 mem 5\n",
		"eth0:1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n", "cpu0 1 2 3 4 5\nintr 1 2\nsoftirq 1 2\n",
		"entries found\n00000007 0000000a\n", "    0  22122     3 2 65531     4     5       12  1\n",
		" CPU0 CPU2\nNET_RX: 1 2\n", "some avg10=0.00 total=12\n", "1 2 3\n",
	} {
		f.Add(which, []byte(seed))
	}
	f.Fuzz(func(t *testing.T, which int, in []byte) {
		set := NewCounts(0)
		err := parsers[uint(which)%uint(len(parsers))](in, set)
		if err != nil && !errors.Is(err, ErrFormat) {
			t.Errorf("error without a kind: %v", err)
		}
		for name := range set.Values {
			if name == "" || strings.ContainsAny(name, "\n") {
				t.Errorf("name %q", name)
			}
		}
	})
}

// TestOfInterface checks the columns of one interface, and that an unknown interface yields nil
// instead of an empty table.
func TestOfInterface(t *testing.T) {
	set := NewCounts(DevColumns)
	if err := ParseDev([]byte("eth0:1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"), set); err != nil {
		t.Fatal(err)
	}
	got := set.OfInterface("eth0")
	if len(got) != DevColumns || got["rx_bytes"] != 1 || got["tx_compressed"] != 16 {
		t.Errorf("columns %v", got)
	}
	if got := set.OfInterface("eth"); got != nil {
		t.Errorf("a missing interface: %v", got)
	}
}

func TestParseRoutes(t *testing.T) {
	compare := cmp.Options{cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}), cmpopts.EquateEmpty()}
	prefix, addr := netip.MustParsePrefix, netip.MustParseAddr
	const title = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
	got, err := ParseRoutes(
		[]byte(title+"eth0\t0000000A\t0100020A\t0003\t0\t0\t0\t000000FF\t1500\t4096\t0\n"+
			"eth0\t00000000\t0100020A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"+
			"eth1\t00000000\t00000000\t0200\t0\t0\t0\t00000000\t0\t0\t0\n"), false)
	want := []Route{
		{Destination: prefix("10.0.0.0/8"), Gateway: addr("10.2.0.1"), Interface: "eth0", WindowBytes: 4096,
			AdvMSSBytes: 1460},
		{Destination: prefix("0.0.0.0/0"), Gateway: addr("10.2.0.1"), Interface: "eth0"},
	}
	if diff := cmp.Diff(want, got, compare); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	big, err := ParseRoutes([]byte("eth0 0A000000 0A020001 0003 0 0 0 FF000000 0 0 0\n"), BigEndian("s390x"))
	if err != nil || big[0].Destination != prefix("10.0.0.0/8") || big[0].Gateway != addr("10.2.0.1") {
		t.Errorf("big-endian: %+v %v", big, err)
	}
	if _, err := ParseRoutes([]byte("eth0 0A 0\n"), false); !errors.Is(err, ErrFormat) {
		t.Errorf("short line: %v", err)
	}
	six, err := ParseRoutes6(
		[]byte("20010db8000100000000000000000000 30 00000000000000000000000000000000 00 " +
			"fe800000000000000000000000000001 00000400 00000002 00000000 00000003     eth0\n" +
			"00000000000000000000000000000000 00 00000000000000000000000000000000 00 " +
			"fe800000000000000000000000000001 00000400 00000002 00000000 00000003     eth0\n"))
	want = []Route{
		{Destination: prefix("2001:db8:1::/48"), Gateway: addr("fe80::1"), Interface: "eth0"},
		{Destination: prefix("::/0"), Gateway: addr("fe80::1"), Interface: "eth0"},
	}
	if diff := cmp.Diff(want, six, compare); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	addresses, err := ParseIfInet6([]byte("fe8000000000000000fc00fffe000001 04 40 20 80     eth0\n"))
	if diff := cmp.Diff(map[string][]netip.Prefix{"eth0": {prefix("fe80::fc:ff:fe00:1/64")}}, addresses,
		compare); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	for _, bad := range []string{"fe80 04 40 20 80 eth0\n", "fe8000000000000000fc00fffe000001 04 81 20 80 eth0\n",
		"fe8000000000000000fc00fffe000001 04 40 20 eth0\n"} {
		if _, err := ParseIfInet6([]byte(bad)); !errors.Is(err, ErrFormat) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestParseMachine(t *testing.T) {
	for text, want := range map[string][]int{"0-3,8": {0, 1, 2, 3, 8}, "": nil, "5": {5}, "3-1": nil, "0-99999999": nil,
		"1,x": {1}} {
		if diff := cmp.Diff(want, ParseCPUList(text)); diff != "" {
			t.Errorf("ParseCPUList(%q): %s", text, diff)
		}
	}
	for _, c := range []struct {
		release string
		want    bool
	}{{"6.6.0", true}, {"6.6-rc1", true}, {"6.18.44-fc", true}, {"7.0", true}, {"6.5.13", false},
		{"5.14.0-503.el9", false}, {"", false}, {"six", false}, {"6.x", false}} {
		if got := KernelAtLeast(c.release, 6, 6); got != c.want {
			t.Errorf("KernelAtLeast(%q) = %v", c.release, got)
		}
	}
	arm := ParseCPUInfo(
		[]byte("processor\t: 1\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n\nprocessor\t: 0\n" +
			"CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"))
	if len(arm) != 2 || arm[0].Number != 0 || arm[1].Model != "implementer 0x41 part 0xd0c" {
		t.Errorf("arm64: %+v", arm)
	}
	if n, err := ParseMemTotal([]byte("MemTotal:        4046084 kB\nMemFree: 1 kB\n")); err != nil || n != 4046084<<10 {
		t.Errorf("memory %d %v", n, err)
	}
}

func FuzzText(f *testing.F) {
	f.Add([]byte("Iface\neth0\t0000000A\t0100020A\t0003\t0\t0\t0\t000000FF\t1500\t4096\t0\n"))
	f.Add([]byte("20010db8000100000000000000000000 30 00000000000000000000000000000000 00 " +
		"fe800000000000000000000000000001 400 2 0 3 eth0\n"))
	f.Add([]byte("fe8000000000000000fc00fffe000001 04 40 20 80     eth0\n"))
	f.Add([]byte("processor\t: 0\nmodel name\t: X\ncpu MHz\t: 1.5\n"))
	f.Add([]byte("MemTotal: 12 kB\n"))
	f.Add([]byte("0-3,8"))
	f.Fuzz(func(t *testing.T, in []byte) {
		for _, big := range []bool{false, true} {
			routes, err := ParseRoutes(in, big)
			checkRoutes(t, routes, err)
		}
		routes, err := ParseRoutes6(in)
		checkRoutes(t, routes, err)
		addresses, err := ParseIfInet6(in)
		if err != nil && !errors.Is(err, ErrFormat) {
			t.Errorf("error without a kind: %v", err)
		}
		for dev, prefixes := range addresses {
			for _, p := range prefixes {
				if dev == "" || !p.IsValid() || !p.Addr().Is6() {
					t.Errorf("address %v of %q", p, dev)
				}
			}
		}
		for _, c := range ParseCPUInfo(in) {
			if c.Number < 0 || c.Number > maxCPUs || c.MHz < 0 {
				t.Errorf("cpu %+v", c)
			}
		}
		if n, err := ParseMemTotal(in); err == nil && n < 0 {
			t.Errorf("memory %d", n)
		}
		ParseCPUList(string(in))
		KernelAtLeast(string(in), 6, 6)
	})
}

func checkRoutes(t *testing.T, routes []Route, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, ErrFormat) {
		t.Errorf("error without a kind: %v", err)
	}
	for _, r := range routes {
		if !r.Destination.IsValid() || r.WindowBytes < 0 || r.AdvMSSBytes < 0 {
			t.Errorf("route %+v", r)
		}
	}
}
