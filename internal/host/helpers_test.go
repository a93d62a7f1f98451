package host_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/host"
)

func TestTriple(t *testing.T) {
	min, def, max, ok := host.Triple("4096 131072\t6291456\n")
	if min != 4096 || def != 131072 || max != 6291456 || !ok {
		t.Errorf("got %d %d %d %v", min, def, max, ok)
	}
	for _, bad := range []string{"", "1 2", "1 2 3 4", "1 2 x", "1 2 99999999999999999999"} {
		if _, _, _, ok := host.Triple(bad); ok {
			t.Errorf("Triple(%q) is taken", bad)
		}
	}
}

func TestUptime(t *testing.T) {
	boot := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name       string
		time, boot time.Time
		want       time.Duration
		ok         bool
	}{
		{"41 days", boot.AddDate(0, 0, 41), boot, 41 * 24 * time.Hour, true},
		{"no moment of the snapshot", time.Time{}, boot, 0, false},
		{"no moment of the start", boot, time.Time{}, 0, false},
		{"a start that is yet to come", boot, boot.Add(time.Hour), -time.Hour, false},
	} {
		s := host.Snapshot{Time: c.time, BootTime: c.boot}
		if up, ok := s.Uptime(); up != c.want || ok != c.ok {
			t.Errorf("%s: %v %v", c.name, up, ok)
		}
	}
}

func TestInterfaceTo(t *testing.T) {
	s := &host.Snapshot{
		Interfaces: []host.Interface{
			{Name: "lo", Addresses: []string{"127.0.0.1/8", "::1/128"}},
			{Name: "eth0", Addresses: []string{"192.0.2.5/24", "2001:db8::5/64", "broken"}},
			{Name: "eth1", Addresses: []string{"10.1.0.5/24", "fe80::1/64"}},
			{Name: "eth1.100"},
		},
		Routes: []host.Route{
			{Destination: "default", Gateway: "192.0.2.1", Interface: "eth0"},
			{Destination: "10.0.0.0/8", Gateway: "10.1.0.1", Interface: "eth1", WindowBytes: 65536},
			{Destination: "10.200.0.0/16", Interface: "eth1.100"},
			{Destination: "10.1.0.0/24", Interface: "eth1", InitCwnd: 20},
			{Destination: "203.0.113.9", Interface: "eth1"},
			{Destination: "nonsense", Interface: "eth1"},
			{Destination: "198.51.100.0/24", Interface: "gone"},
			{Destination: "2001:db8:1::/48", Interface: "eth1"},
		},
	}
	for _, c := range []struct{ ip, dev, destination string }{
		{"192.0.2.77", "eth0", "192.0.2.0/24"},
		{"192.0.2.5", "lo", "192.0.2.5"},
		{"127.0.0.1", "lo", "127.0.0.1"},
		{"127.9.9.9", "lo", "127.0.0.0/8"},
		{"8.8.8.8", "eth0", "default"},
		{"::ffff:8.8.8.8", "eth0", "default"},
		{"10.9.9.9", "eth1", "10.0.0.0/8"},
		{"10.200.1.1", "eth1.100", "10.200.0.0/16"},
		{"10.1.0.9", "eth1", "10.1.0.0/24"},
		{"203.0.113.9", "eth1", "203.0.113.9"},
		{"2001:db8::99", "eth0", "2001:db8::/64"},
		{"2001:db8:1::99", "eth1", "2001:db8:1::/48"},
		{"fe80::99%eth0", "eth0", "fe80::99"},
		{"2001:db9::1", "", ""}, // the default is IPv4's
		{"198.51.100.1", "", "198.51.100.0/24"},
		{"host.example", "", ""},
		{"", "", ""},
	} {
		dev, route, ok := s.InterfaceTo(c.ip)
		if dev.Name != c.dev || route.Destination != c.destination || ok != (c.dev != "") {
			t.Errorf("InterfaceTo(%q) = %q %q %v, want %q %q", c.ip, dev.Name, route.Destination, ok, c.dev,
				c.destination)
		}
	}
	// The metrics of the route win over those of the bare network of an address.
	if _, route, _ := s.InterfaceTo("10.1.0.9"); route.InitCwnd != 20 {
		t.Errorf("route %+v", route)
	}
}

func TestSettingAndInterface(t *testing.T) {
	s := &host.Snapshot{Settings: []host.Setting{{Knob: "sysctl:net.ipv4.tcp_sack", Value: "1"},
		{Knob: "sysctl:net.ipv4.tcp_rmem", Value: "1 2 3"}}, Interfaces: []host.Interface{{Name: "eth0", Index: 3}}}
	if v, ok := s.Setting("sysctl:net.ipv4.tcp_sack"); v != "1" || !ok {
		t.Errorf("setting %q %v", v, ok)
	}
	if n, ok := s.SysctlNumber("net.ipv4.tcp_sack"); n != 1 || !ok {
		t.Errorf("number %d %v", n, ok)
	}
	if n, ok := s.SysctlNumber("net.ipv4.tcp_rmem"); ok {
		t.Errorf("three numbers are one: %d", n)
	}
	if _, ok := s.Setting("sysctl:net.ipv4.tcp_dsack"); ok {
		t.Error("an unknown setting is known")
	}
	if dev, ok := s.Interface("eth0"); dev.Index != 3 || !ok {
		t.Errorf("interface %+v", dev)
	}
	if _, ok := s.Interface("eth1"); ok {
		t.Error("an unknown interface is known")
	}
}

// TestSubOfProcessorsThatComeAndGo takes processor 1 offline and brings 2 back, which has counted
// before: the kernel's sums are over the lines of the online ones.
func TestSubOfProcessorsThatComeAndGo(t *testing.T) {
	before := &host.Counters{CPUs: []host.CPUTimes{{CPU: -1, User: 900}, {CPU: 0, User: 1}, {CPU: 1, User: 2}},
		Values: map[string]uint64{"softnet.0.dropped": 10, "softnet.1.dropped": 700, "softnet.dropped": 710}}
	after := &host.Counters{CPUs: []host.CPUTimes{{CPU: -1, User: 901}, {CPU: 0, User: 2}, {CPU: 2, User: 800}},
		Values: map[string]uint64{"softnet.0.dropped": 13, "softnet.2.dropped": 90_000, "softnet.dropped": 90_013}}
	want := &host.Counters{CPUs: []host.CPUTimes{{CPU: -1, User: 1}, {CPU: 0, User: 1}},
		Values: map[string]uint64{"softnet.0.dropped": 3, "softnet.dropped": 3}}
	if diff := cmp.Diff(want, host.Sub(before, after)); diff != "" {
		t.Errorf("difference (-want +got):\n%s", diff)
	}
}

func TestSub(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	before := &host.Counters{Time: at, CPUs: []host.CPUTimes{{CPU: 0, User: 10, Idle: 100, Steal: 3}},
		Values: map[string]uint64{
			"Tcp.RetransSegs": 10, "softnet.processed": 1<<32 - 5, "qdisc.eth0.drops": 1<<32 - 1,
			"nic.eth0.rx_bytes": 1 << 40, "nic.gone.rx_bytes": 5,
			"tcpmem.pages": 900, "Tcp.CurrEstab": 7, "qdisc.eth0.backlog_bytes": 4000, "same": 4,
			// Two CPUs went through zero, so that the sum stepped back twice; a discipline was
			// replaced, and began anew.
			"conntrack.drop": 3<<32 + 10, "qdisc.eth1.drops": 1000, "neigh.ipv4.entries": 9,
			"neigh.ipv4.table_fulls": 1,
			"neigh.ipv4.gc_thresh3":  1024,
		}}
	after := &host.Counters{Time: at.Add(1500 * time.Millisecond),
		CPUs: []host.CPUTimes{{CPU: 0, User: 11.5, Idle: 99.5, Steal: 4}, {CPU: 1, User: 2}}, Values: map[string]uint64{
			"Tcp.RetransSegs": 17, "softnet.processed": 7, "qdisc.eth0.drops": 0, "nic.eth0.rx_bytes": 99,
			"nic.new.rx_bytes": 6,
			"tcpmem.pages":     100, "Tcp.CurrEstab": 2, "qdisc.eth0.backlog_bytes": 0, "same": 4,
			"conntrack.drop": 1<<32 + 30, "qdisc.eth1.drops": 5, "neigh.ipv4.entries": 7, "neigh.ipv4.table_fulls": 4,
			"neigh.ipv4.gc_thresh3": 1024,
		}}
	want := &host.Counters{Time: after.Time, Seconds: 1.5,
		CPUs: []host.CPUTimes{{CPU: 0, User: 1.5, Steal: 1}}, Values: map[string]uint64{
			"Tcp.RetransSegs": 7, "softnet.processed": 12, "qdisc.eth0.drops": 1, "nic.eth0.rx_bytes": 99,
			"nic.new.rx_bytes": 6,
			"tcpmem.pages":     100, "Tcp.CurrEstab": 2, "qdisc.eth0.backlog_bytes": 0, "same": 0,
			"conntrack.drop": 20, "qdisc.eth1.drops": 5, "neigh.ipv4.entries": 7, "neigh.ipv4.table_fulls": 3,
			"neigh.ipv4.gc_thresh3": 1024,
		}}
	if diff := cmp.Diff(want, host.Sub(before, after)); diff != "" {
		t.Errorf("difference (-want +got):\n%s", diff)
	}
	if d := host.Sub(after, after); d.Seconds != 0 || d.Values["Tcp.RetransSegs"] != 0 ||
		d.Values["tcpmem.pages"] != 100 {
		t.Errorf("a reading differs from itself: %+v", d)
	}
	if d := host.Sub(nil, after); d.Values["Tcp.RetransSegs"] != 17 {
		t.Errorf("from nothing: %+v", d)
	}
	if d := host.Sub(before, nil); len(d.Values) != 0 {
		t.Errorf("to nothing: %+v", d)
	}
	if got := want.CPUs[0].Busy(); got != 1.5 {
		t.Errorf("busy %v", got)
	}
	if got := want.CPUs[0].Total(); got != 2.5 {
		t.Errorf("total %v", got)
	}
	if names := after.Names(); len(names) != len(after.Values) || names[0] != "Tcp.CurrEstab" {
		t.Errorf("names %v", names)
	}
}

// FuzzWords: three numbers are three numbers, and a way to an address is one that the snapshot has.
func FuzzWords(f *testing.F) {
	f.Add("4096 131072 6291456", "192.0.2.7", "192.0.2.0/24")
	f.Add("1 2 3 4", "fe80::1%eth0", "default")
	f.Add("-1\t0\n9", "::ffff:10.0.0.1", "::/0")
	f.Fuzz(func(t *testing.T, value, ip, destination string) {
		if least, def, most, ok := host.Triple(value); ok && len(strings.Fields(value)) != 3 ||
			!ok && (least|def|most) != 0 {
			t.Errorf("%q: %d %d %d %v", value, least, def, most, ok)
		}
		s := &host.Snapshot{
			Interfaces: []host.Interface{{Name: "eth0", Addresses: []string{destination, value}}},
			Routes:     []host.Route{{Destination: destination, Interface: "eth0"}},
			Settings:   []host.Setting{{Knob: "sysctl:x", Value: value}},
		}
		s.SysctlNumber("x")
		if dev, route, ok := s.InterfaceTo(ip); ok && (dev.Name != "eth0" || route.Interface != "eth0") {
			t.Errorf("%q by %q over %q", ip, route.Interface, dev.Name)
		}
	})
}
