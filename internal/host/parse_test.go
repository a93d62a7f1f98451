package host

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/nl"
)

func newSet() *valueSet { return &valueSet{values: make(map[string]uint64)} }

// TestParseCounters has, for each file, its forms through the ages and what must be refused.
func TestParseCounters(t *testing.T) {
	for _, c := range []struct {
		name  string
		parse func([]byte, *valueSet) error
		in    string
		want  map[string]uint64
		bad   bool
	}{
		{"snmp", parseSNMP, "Tcp: MaxConn CurrEstab RetransSegs\nTcp: -1 3 17\n\nUdp: A\nUdp: 9", map[string]uint64{"Tcp.CurrEstab": 3, "Tcp.RetransSegs": 17, "Udp.A": 9}, false},
		{"snmp constants", parseSNMP, "Ip: Forwarding InReceives\nIp: 1 2\nMPTcpExt: X\nMPTcpExt: 3\n", map[string]uint64{"Ip.InReceives": 2}, false},
		{"snmp: a value too many", parseSNMP, "Tcp: A B\nTcp: 1 2 3\n", nil, true},
		{"snmp: a value too few", parseSNMP, "Tcp: A B\nTcp: 1\n", nil, true},
		{"snmp: two heads", parseSNMP, "Tcp: A\nUdp: A\n", nil, true},
		{"snmp: cut off", parseSNMP, "Tcp: A\n", nil, true},
		{"snmp: other text", parseSNMP, "hello\nhello\n", nil, true},
		{"snmp6", parseSNMP6, "Udp6RcvbufErrors\t4\nIcmp6InType128 3\nIp6InDiscards                    \t1\n", map[string]uint64{"Udp6.RcvbufErrors": 4, "Ip6.InDiscards": 1}, false},
		{"snmp6: no number", parseSNMP6, "Udp6RcvbufErrors\n", nil, true},
		{"softnet of 2.6", parseSoftnet, "0000000a 00000001 00000002 00000000 00000000 00000000 00000000 00000000 00000000\n", map[string]uint64{
			"softnet.0.processed": 10, "softnet.0.dropped": 1, "softnet.0.time_squeeze": 2, "softnet.processed": 10, "softnet.dropped": 1, "softnet.time_squeeze": 2}, false},
		{"softnet, CPU 1 offline", parseSoftnet, "1 2 3 0 0 0 0 0 0 4 5 6 0\nffffffff 1 1 0 0 0 0 0 0 1 1 0 2 0 0\n", map[string]uint64{
			"softnet.0.processed": 1, "softnet.0.dropped": 2, "softnet.0.time_squeeze": 3, "softnet.0.received_rps": 4, "softnet.0.flow_limit": 5,
			"softnet.2.processed": 1<<32 - 1, "softnet.2.dropped": 1, "softnet.2.time_squeeze": 1, "softnet.2.received_rps": 1, "softnet.2.flow_limit": 1,
			"softnet.processed": 1 << 32, "softnet.dropped": 3, "softnet.time_squeeze": 4, "softnet.received_rps": 5, "softnet.flow_limit": 6}, false},
		{"softnet: too short", parseSoftnet, "0000000a 00000001\n", nil, true},
		{"softnet: not hexadecimal", parseSoftnet, "0000000a 0000000g 0\n", nil, true},
		{"sockstat", parseSockstat, "sockets: used 17\nTCP: inuse 1 orphan 2 tw 3 alloc 4 mem 5\nUDP: inuse 6 mem 7\nRAW: inuse 0\n", map[string]uint64{
			"sockets.tcp_inuse": 1, "sockets.tcp_orphan": 2, "sockets.tcp_tw": 3, "sockets.tcp_alloc": 4, "tcpmem.pages": 5, "sockets.udp_inuse": 6, "udpmem.pages": 7}, false},
		{"sockstat: no number", parseSockstat, "TCP: inuse\n", nil, true},
		{"dev: too few columns", parseDev, "  eth0: 1 2 3\n", nil, true},
		{"dev: no name", parseDev, ": 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n", nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			set := newSet()
			err := c.parse([]byte(c.in), set)
			if c.bad {
				if !errors.Is(err, errFormat) {
					t.Errorf("taken: %v %v", set.values, err)
				}
				return
			}
			if diff := cmp.Diff(c.want, set.values); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestParseDev(t *testing.T) {
	set := newSet()
	in := "Inter-|   Receive\n face |bytes\n  eth0:1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\neth0.100: 21 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\neth0:1: 31 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"
	if err := parseDev([]byte(in), set); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"eth0", "eth0.100", "eth0:1"}, set.interfaces); diff != "" {
		t.Error(diff)
	}
	for name, want := range map[string]uint64{"nic.eth0.rx_bytes": 1, "nic.eth0.tx_bytes": 9, "nic.eth0.collisions": 14, "nic.eth0.100.rx_bytes": 21, "nic.eth0:1.rx_bytes": 31} {
		if set.values[name] != want {
			t.Errorf("%s = %d, want %d", name, set.values[name], want)
		}
	}
}

func TestParseStat(t *testing.T) {
	set := newSet()
	cpus, err := parseStat([]byte("cpu  100 1 200 4000 40 5 60 7 0 0\ncpu3 25 0 50 1000 10 1 15 2\ncpu4 1 2 3 4\nintr 25 20 0 5\nctxt 12\nsoftirq 9 1 2 3 4\n"), set)
	if err != nil {
		t.Fatal(err)
	}
	want := []CPUTimes{
		{CPU: -1, User: 1.01, System: 2, Idle: 40.4, IRQ: 0.05, SoftIRQ: 0.6, Steal: 0.07},
		{CPU: 3, User: 0.25, System: 0.5, Idle: 10.1, IRQ: 0.01, SoftIRQ: 0.15, Steal: 0.02},
		{CPU: 4, User: 0.03, System: 0.03, Idle: 0.04},
	}
	if diff := cmp.Diff(want, cpus, cmp.Comparer(func(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 })); diff != "" {
		t.Errorf("times (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]uint64{"irq.0": 20, "irq.2": 5, "ctxt": 12, "softirq.HI": 1, "softirq.TIMER": 2, "softirq.NET_TX": 3, "softirq.NET_RX": 4}, set.values); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	for _, bad := range []string{"cpux 1 2 3 4\n", "cpu0 1 2\n", "cpu0 1 2 3 -4\n", "cpu99999999 1 2 3 4\n", "intr 1 x\n"} {
		if _, err := parseStat([]byte(bad), newSet()); !errors.Is(err, errFormat) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestParseRoutes(t *testing.T) {
	const title = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
	got, err := parseRoutes(title+"eth0\t0000000A\t0100020A\t0003\t0\t0\t0\t000000FF\t1500\t4096\t0\neth0\t00000000\t0100020A\t0003\t0\t0\t0\t00000000\t0\t0\t0\neth1\t00000000\t00000000\t0200\t0\t0\t0\t00000000\t0\t0\t0\n", false)
	want := []Route{
		{Destination: "10.0.0.0/8", Gateway: "10.2.0.1", Interface: "eth0", WindowBytes: 4096, AdvMSSBytes: 1460},
		{Destination: "default", Gateway: "10.2.0.1", Interface: "eth0"},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	big, err := parseRoutes("eth0 0A000000 0A020001 0003 0 0 0 FF000000 0 0 0\n", bigEndian("s390x"))
	if err != nil || big[0].Destination != "10.0.0.0/8" || big[0].Gateway != "10.2.0.1" {
		t.Errorf("big-endian: %+v %v", big, err)
	}
	if _, err := parseRoutes("eth0 0A 0\n", false); !errors.Is(err, errFormat) {
		t.Errorf("short line: %v", err)
	}
	six, err := parseRoutes6("20010db8000100000000000000000000 30 00000000000000000000000000000000 00 fe800000000000000000000000000001 00000400 00000002 00000000 00000003     eth0\n" +
		"00000000000000000000000000000000 00 00000000000000000000000000000000 00 fe800000000000000000000000000001 00000400 00000002 00000000 00000003     eth0\n")
	want = []Route{
		{Destination: "2001:db8:1::/48", Gateway: "fe80::1", Interface: "eth0"},
		{Destination: "::/0", Gateway: "fe80::1", Interface: "eth0"},
	}
	if diff := cmp.Diff(want, six); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestParseSmall(t *testing.T) {
	for text, want := range map[string]float64{"8.0 GT/s PCIe": 8, "2.5 GT/s": 2.5, "16 GT/s": 16, "Unknown": 0, "Unknown speed": 0, "NaN GT/s": 0, "-5 GT/s": 0, "": 0} {
		if got := parseTransfers(text); got != want {
			t.Errorf("parseTransfers(%q) = %v", text, got)
		}
	}
	for gt, want := range map[float64]float64{2.5: 2e9, 5: 4e9, 8: 8e9 * 128 / 130, 16: 16e9 * 128 / 130, 64: 64e9 * 242 / 256} {
		if got := laneRate(gt); got != want {
			t.Errorf("laneRate(%v) = %v, want %v", gt, got, want)
		}
	}
	for text, want := range map[string]struct {
		mhz float64
		x   bool
		ok  bool
	}{"33 MHz PCI": {33, false, true}, "133 MHz PCI-X": {133, true, true}, "133 MHz PCI-X 266": {133, true, true}, "8.0 GT/s PCIe": {}, "AGP 4x": {}, "": {}} {
		if mhz, x, ok := parseSlotSpeed(text); mhz != want.mhz || x != want.x || ok != want.ok {
			t.Errorf("parseSlotSpeed(%q) = %v %v %v", text, mhz, x, ok)
		}
	}
	for text, want := range map[string][]int{"0-3,8": {0, 1, 2, 3, 8}, "": nil, "5": {5}, "3-1": nil, "0-99999999": nil, "1,x": {1}} {
		if diff := cmp.Diff(want, parseCPUList(text)); diff != "" {
			t.Errorf("parseCPUList(%q): %s", text, diff)
		}
	}
	for _, c := range []struct {
		release string
		want    bool
	}{{"6.6.0", true}, {"6.6-rc1", true}, {"6.18.44-fc", true}, {"7.0", true}, {"6.5.13", false}, {"5.14.0-503.el9", false}, {"", false}, {"six", false}, {"6.x", false}} {
		if got := kernelAtLeast(c.release, 6, 6); got != c.want {
			t.Errorf("kernelAtLeast(%q) = %v", c.release, got)
		}
	}
	arm := parseCPUInfo("processor\t: 1\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n\nprocessor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n")
	if len(arm) != 2 || arm[0].ID != 0 || arm[1].Model != "implementer 0x41 part 0xd0c" {
		t.Errorf("arm64: %+v", arm)
	}
	addresses, err := parseIfInet6("fe8000000000000000fc00fffe000001 04 40 20 80     eth0\n")
	if diff := cmp.Diff(map[string][]string{"eth0": {"fe80::fc:ff:fe00:1/64"}}, addresses); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
}

// TestCapabilityLoop: a list that points at itself, or out of the configuration space, ends.
func TestCapabilityLoop(t *testing.T) {
	config := make([]byte, 256)
	config[configStatus] = statusCapabilities
	config[configCapabilities], config[0x40], config[0x41] = 0x40, 0x01, 0x40
	if c := capability(config, capabilityPCIe); c != nil {
		t.Errorf("found %x", c)
	}
	config[0x41] = 0xfc
	if c := capability(config, capabilityPCIe); c != nil {
		t.Errorf("found %x", c)
	}
	config[0xfc] = capabilityPCIe
	if _, ok := linkFromConfig(config); ok {
		t.Error("a capability cut off by the end is believed")
	}
}

// TestLinkFromConfig reads what lspci shows as "LnkCap: Speed 5GT/s, Width x8; LnkSta: Speed 2.5GT/s, Width x4".
func TestLinkFromConfig(t *testing.T) {
	config := make([]byte, 256)
	config[configStatus] = statusCapabilities
	config[configCapabilities] = 0xa0
	copy(config[0xa0:], []byte{capabilityPCIe, 0, 2, 0})
	copy(config[0xac:], []byte{0x82, 0x00, 0, 0}) // x8, code 2
	copy(config[0xb2:], []byte{0x41, 0x10})       // x4, code 1
	got, ok := linkFromConfig(config)
	if want := (pcieLink{speed: 2.5, maxSpeed: 5, width: 4, maxWidth: 8}); got != want || !ok {
		t.Errorf("got %+v %v", got, ok)
	}
}

// TestNotes: missing, not permitted and not supported are different sentences; each is said once; what an archive lacks is none.
func TestNotes(t *testing.T) {
	var said notes
	for _, err := range []error{
		&fs.PathError{Op: "read", Path: "/proc/x", Err: fs.ErrNotExist}, &fs.PathError{Op: "read", Path: "/proc/y", Err: fs.ErrPermission},
		fmt.Errorf("read rings eth0: %w", nl.ErrNotSupported), errFormat, errFormat, nil, fmt.Errorf("linerate/links.json: %w", errNotTold),
	} {
		said.add("this", err)
	}
	want := []string{
		"this: not there: read /proc/x: file does not exist", "this: not permitted: read /proc/y: permission denied",
		"this: not supported: read rings eth0: " + nl.ErrNotSupported.Error(), "this: not readable: unexpected format",
	}
	if runtime.GOOS == "windows" {
		want[1] = said.sentences[1] // the system's own words
	}
	if diff := cmp.Diff(want, said.sentences); diff != "" {
		t.Error(diff)
	}
}

// TestPortableSnapshot: what Go tells anywhere, and the sentence about the rest.
func TestPortableSnapshot(t *testing.T) {
	s := portableSnapshot()
	if s.OS != runtime.GOOS || s.Name == "" || len(s.CPUs) != runtime.NumCPU() || len(s.Interfaces) == 0 {
		t.Errorf("snapshot %+v", s)
	}
	if n := len(s.Warnings); n == 0 || !strings.Contains(s.Warnings[n-1], "linux only") {
		t.Errorf("warnings %q", s.Warnings)
	}
	if got := Ceilings(s); len(got) != 0 {
		t.Errorf("ceilings out of nothing: %+v", got)
	}
}

// TestParsersAreFrugal: a reading around every test must not disturb it; names are cut from blocks, not made one by one.
func TestParsersAreFrugal(t *testing.T) {
	var in strings.Builder
	in.WriteString("TcpExt:")
	for i := range 500 {
		fmt.Fprintf(&in, " Name%d", i)
	}
	in.WriteString("\nTcpExt:" + strings.Repeat(" 1", 500) + "\n")
	text := []byte(in.String())
	set := newSet()
	if err := parseSNMP(text, set); err != nil || len(set.values) != 500 {
		t.Fatalf("%d values, %v", len(set.values), err)
	}
	if n := testing.AllocsPerRun(10, func() { _ = parseSNMP(text, set) }); n > 20 {
		t.Errorf("%v allocations for 500 counters", n)
	}
}

// TestNamesKeepTheirText: names share their memory, so a new block must not disturb those before it.
func TestNamesKeepTheirText(t *testing.T) {
	set := newSet()
	want := make(map[string]uint64)
	for i := range uint64(5000) {
		name := strings.Repeat("n", int(i%97)) + "." + string(rune('a'+i%26))
		set.put(i, "prefix.", name)
		want["prefix."+name] = i
	}
	set.put(1, strings.Repeat("long", nameBlock))
	delete(set.values, strings.Repeat("long", nameBlock))
	if !maps.Equal(set.values, want) {
		t.Error("names changed")
	}
}

func FuzzCounters(f *testing.F) {
	parsers := []func([]byte, *valueSet) error{
		parseSNMP, parseSNMP6, parseSoftnet, parseSockstat, parseDev,
		func(b []byte, set *valueSet) error { _, err := parseStat(b, set); return err },
	}
	for which, seed := range map[int]string{
		0: "Tcp: A B\nTcp: 1 2\n", 1: "Udp6RcvbufErrors 4\n", 2: "1 2 3 0 0 0 0 0 0 4 5 6 0\n", 3: "TCP: inuse 1 mem 5\n",
		4: "eth0:1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n", 5: "cpu0 1 2 3 4 5\nintr 1 2\nsoftirq 1 2\n",
	} {
		f.Add(which, []byte(seed))
	}
	f.Fuzz(func(t *testing.T, which int, in []byte) {
		set := newSet()
		err := parsers[uint(which)%uint(len(parsers))](in, set)
		if err != nil && !errors.Is(err, errFormat) {
			t.Errorf("error without a kind: %v", err)
		}
		for name := range set.values {
			if name == "" || strings.ContainsAny(name, "\n") {
				t.Errorf("name %q", name)
			}
		}
	})
}

func FuzzText(f *testing.F) {
	f.Add("Iface\neth0\t0000000A\t0100020A\t0003\t0\t0\t0\t000000FF\t1500\t4096\t0\n")
	f.Add("20010db8000100000000000000000000 30 00000000000000000000000000000000 00 fe800000000000000000000000000001 400 2 0 3 eth0\n")
	f.Add("fe8000000000000000fc00fffe000001 04 40 20 80     eth0\n")
	f.Add("processor\t: 0\nmodel name\t: X\ncpu MHz\t: 1.5\n")
	f.Add("MemTotal: 12 kB\n")
	f.Add("0-3,8")
	f.Add("133 MHz PCI-X")
	f.Add("8.0 GT/s PCIe")
	f.Fuzz(func(t *testing.T, in string) {
		for _, big := range []bool{false, true} {
			routes, err := parseRoutes(in, big)
			checkRoutes(t, routes, err)
		}
		routes, err := parseRoutes6(in)
		checkRoutes(t, routes, err)
		if _, err := parseIfInet6(in); err != nil && !errors.Is(err, errFormat) {
			t.Errorf("error without a kind: %v", err)
		}
		for _, c := range parseCPUInfo(in) {
			if c.ID < 0 || c.ID > maxCPUs || c.CurrentMHz < 0 {
				t.Errorf("cpu %+v", c)
			}
		}
		if n, err := parseMemTotal([]byte(in)); err == nil && n < 0 {
			t.Errorf("memory %d", n)
		}
		parseCPUList(in)
		if mhz, _, ok := parseSlotSpeed(in); ok && !(mhz > 0 && mhz <= 1000) {
			t.Errorf("slot %v", mhz)
		}
		if gt := parseTransfers(in); !(gt >= 0 && gt <= 1024) {
			t.Errorf("transfers %v", gt)
		}
		ueventKind(in)
		kernelAtLeast(in, 6, 6)
		hypervisorFlag(in)
	})
}

func checkRoutes(t *testing.T, routes []Route, err error) {
	if err != nil && !errors.Is(err, errFormat) {
		t.Errorf("error without a kind: %v", err)
	}
	for _, r := range routes {
		if _, ok := parsePrefix(r.Destination); !ok && r.Destination != "default" {
			t.Errorf("route %+v", r)
		}
	}
}

func FuzzConfig(f *testing.F) {
	f.Add(make([]byte, 64))
	config := make([]byte, 256)
	config[configStatus], config[configCapabilities], config[0x40] = statusCapabilities, 0x40, capabilityPCIe
	f.Add(config)
	f.Fuzz(func(t *testing.T, config []byte) {
		if len(config) < 64 {
			return // readConfig refuses it
		}
		if l, ok := linkFromConfig(config); ok && (l.speed <= 0 || l.width < 1 || l.width > 32) {
			t.Errorf("link %+v", l)
		}
		secondaryClock(config)
	})
}

// FuzzArchive: whatever is in the files of an archive, a Snapshot is made or an error is returned.
func FuzzArchive(f *testing.F) {
	names := []string{
		"linerate/links.json", "linerate/ethtool.json", "linerate/routes.json", "linerate/addresses.json", "linerate/qdiscs.json", "linerate/host.json",
		"proc/net/route", "proc/net/snmp", "proc/cpuinfo", "proc/sys/net/ipv4/tcp_rmem", "sys/class/net/eth0/ifindex", "sys/class/net/eth0/speed",
	}
	f.Add(0, []byte(`[{"index":2,"name":"eth0","mtu_bytes":1500}]`))
	f.Add(1, []byte(`{"eth0":{"rings":{"rx":{"current":1}}}}`))
	f.Add(9, []byte("1 2 3"))
	f.Fuzz(func(t *testing.T, which int, content []byte) {
		dir := t.TempDir()
		write := func(name string, content []byte) {
			rec := recorder{dir: dir}
			rec.file(name, content)
			if rec.err != nil {
				t.Fatal(rec.err)
			}
		}
		write("proc/sys/kernel/osrelease", []byte("6.1.0\n"))
		write("sys/class/net/eth0/mtu", []byte("1500\n"))
		write(filepath.ToSlash(names[uint(which)%uint(len(names))]), content)
		s, err := Root{Dir: dir}.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		Ceilings(s)
		s.InterfaceTo("192.0.2.1")
		_, _ = Root{Dir: dir}.Counters() // An archive with no counters at all is an error, which is the point here.
	})
}
