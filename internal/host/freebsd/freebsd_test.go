package freebsd

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// links is `netstat --libxo json -ibn` of FreeBSD 12 in the form that riemann/riemann-tools
// (spec/riemann/tools/net_spec.rb) shows, with other numbers and documentation addresses.
const links = `{"statistics": {"interface": [{"name":"em0","flags":"0x8863","mtu":1500,"network":"<Link#1>",` +
	`"address":"00:00:5e:00:53:56","received-packets":14409097,"received-errors":640,"dropped-packets":3,` +
	`"received-bytes":3661133356,"sent-packets":14006498,"send-errors":0,"sent-bytes":4606661018,"collisions":0}, ` +
	`{"name":"em0","flags":"0x8863","network":"192.0.2.0/24","address":"192.0.2.1","received-packets":11897156,` +
	`"received-bytes":2242504526,"sent-packets":12708744,"sent-bytes":4372534465}, {"name":"lo0","flags":"0x8049",` +
	`"mtu":16384,"network":"<Link#2>","address":"lo0","received-packets":5,"received-errors":0,"dropped-packets":0,` +
	`"received-bytes":500,"sent-packets":5,"send-errors":0,"sent-bytes":500,"collisions":0}]}}`

func TestInterfaces(t *testing.T) {
	all, err := ParseInterfaces([]byte(links))
	if err != nil || len(all) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	em := all[0]
	if em.Name != "em0" || em.RxErrors != 640 || em.RxDropped != 3 || em.TxBytes != 4606661018 || !em.HasErrors {
		t.Errorf("%+v", em)
	}
	for _, bad := range []string{"", "{}", links[:200], `{"statistics":{"interface":[]}}`, "Name Mtu Network"} {
		if _, err := ParseInterfaces([]byte(bad)); !errors.Is(err, ErrFormat) {
			t.Errorf("%.20q: %v", bad, err)
		}
	}
}

// The object has the names that OPNsense passes on from `netstat --libxo json -s`
// (rknightion/opnsense-exporter shows one in its tests).
func TestProtocols(t *testing.T) {
	counts, err := ParseProtocols([]byte(`{"__version":"1","statistics":{"tcp":{"sent-packets":1000,` +
		`"sent-retransmitted-packets":50,"listen-queue-overflows":2,"sack":{"segment-retransmits":7}},` +
		`"udp":{"dropped-full-socket-buffer":5},"icmp":{"icmp-address-responses":"0"},"pfsync":{"input-histogram":[]}}}`))
	if err != nil || counts["tcp.sent-retransmitted-packets"] != 50 || counts["tcp.sack.segment-retransmits"] != 7 ||
		counts["udp.dropped-full-socket-buffer"] != 5 || len(counts) != 5 {
		t.Errorf("%v, %v", counts, err)
	}
	if _, err := ParseProtocols([]byte(`{"statistics":{}}`)); !errors.Is(err, ErrFormat) {
		t.Errorf("empty: %v", err)
	}
}

func TestInterrupts(t *testing.T) {
	all, err := ParseInterrupts([]byte(`{"__version":"1","interrupt-statistics":{"interrupt":[{"name":"irq1: atkbd0 ",` +
		`"total":6,"rate":0},{"name":"irq268: ixl0:rxq0","total":3028517,"rate":9}]},"total-interrupts":3028523}`))
	if err != nil || len(all) != 2 || all[1] != (Interrupt{"irq268: ixl0:rxq0", 3028517, 9}) ||
		all[0].Name != "irq1: atkbd0" {
		t.Errorf("%v, %v", all, err)
	}
}

// netstat counts packets that found no room as errors: the card's own counters separate them.
func TestMissedIsNotCRC(t *testing.T) {
	all, err := ParseInterfaces([]byte(links))
	if err != nil {
		t.Fatal(err)
	}
	sysctls := map[string]string{"mac_stats.missed_packets": "600", "mac_stats.crc_errs": "30", "mac_stats.recv_errs": "0",
		"mac_stats.alignment_errs": "0", "mac_stats.recv_no_buff": "80", "dropped": "0", "rx_overruns": "2"}
	c, ok := CardCounters(sysctls, all[0].RxErrors)
	if !ok || c.Missed != 600 || c.CRC != 30 || c.NoBuffer != 80 || c.Unexplained != 10 || c.Overruns != 2 {
		t.Errorf("%+v, %v", c, ok)
	}
	if _, ok := CardCounters(map[string]string{"%driver": "vtnet"}, 5); ok {
		t.Error("a driver without these counters has some")
	}
}

func TestIfconfigLines(t *testing.T) {
	// As FreeBSD 14 prints it: chef/ohai, spec/unit/plugins/freebsd/network_spec.rb.
	all := ParseIfconfig("vtnet0: flags=1008843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST,LOWER_UP> metric 0 mtu 1500\n" +
		"\toptions=4c079b<RXCSUM,TXCSUM,VLAN_MTU,TSO4,TSO6,LRO,VLAN_HWTSO,LINKSTATE,TXCSUM_IPV6>\n" +
		"\tether 00:00:5e:00:53:01\n\tmedia: Ethernet autoselect (10Gbase-T <full-duplex>)\n\tstatus: active\n")
	if len(all) != 1 || all[0].MTUBytes != 1500 || !slices.Contains(all[0].Flags, "LOWER_UP") ||
		all[0].Status != "active" {
		t.Fatalf("%+v", all)
	}
	if on, able, known := all[0].Option("tso4"); !on || !able || !known {
		t.Error("tso4")
	}
	if _, _, known := all[0].Option("colour"); known {
		t.Error("an unknown word is known")
	}
	// A list that is cut off loses its last word, which may be half of one.
	cut := ParseIfconfig("em0: flags=8843<UP,RUNNING> mtu 1500\n\toptions=1<RXCSUM,TXCSUM_IP")
	if len(cut) != 1 || !slices.Equal(cut[0].Options, []string{"RXCSUM"}) {
		t.Errorf("%+v", cut)
	}
	for _, text := range []string{"", "ifconfig: interface does not exist\n", "\toptions=1<A>\n", "em0: \n"} {
		if got := ParseIfconfig(text); len(got) != 0 {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

func TestSpeed(t *testing.T) {
	for media, want := range map[string]struct {
		bits   float64
		duplex string
	}{
		"Ethernet autoselect (1000baseT <full-duplex>)":          {1e9, "full"},
		"Ethernet autoselect (10Gbase-T <full-duplex>)":          {1e10, "full"},
		"Ethernet autoselect (2500Base-T <full-duplex,rxpause>)": {2.5e9, "full"}, "Ethernet autoselect": {0, ""},
		"Ethernet 100baseTX <half-duplex>": {1e8, "half"}, "Ethernet autoselect (none)": {0, ""},
	} {
		if bits, duplex := (Interface{Media: media}).Speed(); bits != want.bits || duplex != want.duplex {
			t.Errorf("%s: %g %q", media, bits, duplex)
		}
	}
}

// TestUnknownInterface checks that lines below an interface that is not understood say nothing of
// the one above it.
func TestUnknownInterface(t *testing.T) {
	got := ParseIfconfig("em0: flags=8843<UP> metric 0 mtu 1500\n\tether 02:00:00:00:00:01\n" +
		": flags=8843<UP> metric 0 mtu 9000\n\tether 02:00:00:00:00:02\n" +
		"no interface\n\tmedia: Ethernet autoselect (none)\n")
	if len(got) != 1 || got[0].MAC != "02:00:00:00:00:01" || got[0].Media != "" || got[0].MTUBytes != 1500 {
		t.Errorf("%+v", got)
	}
}

func TestAssigned(t *testing.T) {
	text := "# a=\"0\"\na=\"1\"\nb=2 # two\n a = '3'\nifconfig_em0=\"inet 192.0.2.1/24 -tso4\"\nc=\"open\n"
	for name, want := range map[string]string{"a": "3", "b": "2", "ifconfig_em0": "inet 192.0.2.1/24 -tso4", "c": "open"} {
		if got, ok := Assigned(text, name); got != want || !ok {
			t.Errorf("%s: %q, %v", name, got, ok)
		}
	}
	if _, ok := Assigned(text, "d"); ok {
		t.Error("d is not set")
	}
}

func FuzzParsers(f *testing.F) {
	f.Add(links)
	f.Add("em0: flags=8843<UP> metric 0 mtu 1500\n\toptions=1<RXCSUM>\n")
	f.Add(`{"statistics":{"tcp":{"a":1,"b":{"c":2}}}}`)
	f.Add("a=\"b\"\n")
	f.Add(": flags= mtu5UP> m")
	f.Fuzz(func(t *testing.T, text string) {
		for _, i := range ParseIfconfig(text) {
			if i.Name == "" || strings.ContainsAny(i.Name, " \t\n") {
				t.Errorf("interface %q", i.Name)
			}
		}
		_, _ = ParseInterfaces([]byte(text))
		_, _ = ParseProtocols([]byte(text))
		_, _ = ParseInterrupts([]byte(text))
		_, _ = Assigned(text, "a")
	})
}
