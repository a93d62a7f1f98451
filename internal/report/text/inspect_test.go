package text_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/owner"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/reporttest"
	"github.com/linerate/linerate/internal/report/text"
)

// serverSnapshot is a typical file server: two bonded ports, forty VLANs on the bond, a bridge for
// guests on one of them, a third NIC that is asleep, interrupts on their default CPUs, and three
// programs that set the same knobs.
func serverSnapshot() *host.Snapshot {
	s := &host.Snapshot{Name: "store1", OS: "linux", Kernel: "6.1.0-28-amd64", Arch: "amd64", MemoryBytes: 128 << 30,
		Time: reporttest.Noon}
	card := func(index int, name, address string) host.Interface {
		return host.Interface{
			Name: name, Index: index, Driver: "ixgbe", Up: true, Carrier: true, MTUBytes: 9000, SpeedBitsPerSec: 10e9,
			Duplex: "full", Qdisc: "mq",
			Rings: &host.Rings{Rx: host.Ring{Current: 512, Max: 8192}, Tx: host.Ring{Current: 512, Max: 8192}},
			Bus: &host.Bus{Kind: "pcie", Address: address, Width: 4, SpeedGigatransfers: 5,
				CapacityBitsPerSec: 16e9, MaxCapacityBitsPerSec: 32e9},
			Layers: host.Layers{Kind: "physical", Above: []string{"bond0"}},
			Interrupts: []host.Interrupt{{Number: 60, Name: name + "-TxRx-0",
				Counts: []host.CPUCount{{CPU: 0, Total: 900}}},
				{Number: 61, Name: name + "-TxRx-1", Counts: []host.CPUCount{{CPU: 3, Total: 100}}}},
			NAPI: &host.NAPI{DeferHardIRQs: 2, GROFlushTimeoutSeconds: 20e-6},
			Queues: []host.Queue{{Name: "rx-0", RPSCPUs: "f"}, {Name: "rx-1", RPSCPUs: "0"},
				{Name: "tx-0", XPSCPUs: "00000000,00000001"}},
			Card: &host.Card{
				FirmwareVersion: "3.30", PCIID: "8086:10fb", PayloadBytes: 256, ReadRequestBytes: 512,
				ASPM: []string{"l1"}, Pause: &host.Pause{Rx: true, Tx: true},
				RSS: &host.RSS{HashFunction: "toeplitz", Entries: 128,
					Shares: []host.RSSShare{{Queue: 0, Entries: 96}, {Queue: 1, Entries: 32}}},
				PrivateFlags: map[string]bool{"legacy-rx": true, "vf-ipsec": false},
			},
		}
	}
	bonded := []string{"eth0", "eth1"}
	s.Interfaces = []host.Interface{
		{Name: "lo", Index: 1, Up: true, Carrier: true, Virtual: true, MTUBytes: 65536,
			Addresses: []string{"127.0.0.1/8"}, Layers: host.Layers{Kind: "loopback"}},
		card(2, "eth0", "0000:03:00.0"), card(3, "eth1", "0000:03:00.1"),
		{Name: "eth2", Index: 4, Driver: "r8169", MTUBytes: 1500, Asleep: true, Layers: host.Layers{Kind: "physical"}},
		{Name: "bond0", Index: 5, Driver: "bonding", Up: true, Carrier: true, Virtual: true, MTUBytes: 9000,
			Layers: host.Layers{Kind: "bond", BondMode: "802.3ad", Below: bonded, Carriers: bonded}},
	}
	s.Interfaces[1].Symptoms = []host.Symptom{
		{Counter: "rx_missed_errors", Total: 4711, Class: "ring-full", Meaning: "the receive ring was full",
			Source: "ixgbe_ethtool.c"},
		{Counter: "rx_crc_errors", Total: 3, Class: "damaged", Meaning: "the packet came with a wrong checksum",
			Source: "statistics.rst"},
	}
	for n := range 40 {
		name := fmt.Sprintf("bond0.%d", 100+n)
		s.Interfaces[4].Above = append(s.Interfaces[4].Above, name)
		s.Interfaces = append(s.Interfaces, host.Interface{
			Name: name, Index: 10 + n, Driver: "vlan", Up: n != 7, Carrier: true, Virtual: true, MTUBytes: 1500,
			Addresses: []string{fmt.Sprintf("10.0.%d.1/24", n)},
			Layers:    host.Layers{Kind: "vlan", VLANID: 100 + n, Below: []string{"bond0"}, Carriers: bonded},
		})
	}
	s.Interfaces[5].Above = []string{"br0"}
	s.Interfaces = append(s.Interfaces, host.Interface{Name: "br0", Index: 60, Driver: "bridge", Up: true,
		Carrier: true, Virtual: true, MTUBytes: 1500,
		Layers: host.Layers{Kind: "bridge", Below: []string{"bond0.100"}, Carriers: bonded}})
	for n := range 4 {
		s.CPUs = append(s.CPUs, host.CPU{ID: n, Model: "Some Server CPU", Governor: "powersave", MaxMHz: 3500,
			LimitMHz: 2000})
	}
	s.CPUs[1].StealRatio = 0.034
	s.Platform = host.Platform{
		Qdiscs: []host.Qdisc{{Interface: "eth0", Kind: "mq", Parent: "root", QdiscState: host.QdiscState{Drops: 31}},
			{Interface: "eth0", Kind: "fq_codel", Parent: ":1", QdiscState: host.QdiscState{Drops: 31}}},
		Idle: &host.Idle{Driver: "intel_idle", Governor: "menu",
			States: []host.IdleState{{Name: "POLL"}, {Name: "C1", LatencySeconds: 2e-6},
				{Name: "C6", LatencySeconds: 133e-6}}},
		Tables: []host.Table{{Name: "tcp-sockets", Entries: 20}, {Name: "neighbours-ipv4", Entries: 17, Limit: 1024},
			{Name: "conntrack", Entries: 200000, Limit: 262144}},
		Mounts: []host.Mount{{Source: "192.0.2.9:/srv", Path: "/mnt/srv", Type: "nfs4",
			Options: "rw,relatime,vers=4.2,rsize=32768,wsize=32768,hard,proto=tcp"}},
		Owners: []owner.Owner{{Name: "irqbalance", Running: true},
			{Name: "tuned", Running: true, Profile: "throughput-performance"}, {Name: "netplan"}},
	}
	return s
}

// TestInspectServer checks that a server with forty VLANs fits on one screen, which shows what its
// NICs carry.
func TestInspectServer(t *testing.T) {
	doc := report.NewInspect(reporttest.Envelope(), serverSnapshot())
	doc.Ceilings = reporttest.Ceilings()
	var encoded, out bytes.Buffer
	if err := report.EncodeIndent(&encoded, doc); err != nil {
		t.Fatal(err)
	}
	if err := reporttest.Validate(encoded.Bytes()); err != nil {
		t.Error(err)
	}
	if err := text.Inspect(&out, doc, text.Style{}); err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/inspect-server.txt", out.Bytes())
	checkText(t, out.String())
	for _, width := range []int{80, 60} {
		var narrow bytes.Buffer
		if err := text.Inspect(&narrow, doc, text.Style{Width: width}); err != nil {
			t.Fatal(err)
		}
		golden(t, fmt.Sprintf("testdata/inspect-server-%d.txt", width), narrow.Bytes())
		checkText(t, narrow.String())
	}
	for _, want := range []string{"bond0, 40 vlan, br0", "(39)", "asleep", "the receive ring was full"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the text lacks %q", want)
		}
	}
	if lines := strings.Count(out.String(), "\n"); lines > 50 {
		t.Errorf("%d lines for forty VLANs", lines)
	}
}

// TestInspectCircle checks that a document whose interfaces stand on each other in a circle is
// printed, with every interface once.
func TestInspectCircle(t *testing.T) {
	s := &host.Snapshot{Interfaces: []host.Interface{
		{Name: "aa0", Virtual: true, Layers: host.Layers{Kind: "vlan", Below: []string{"bb0"}, Above: []string{"bb0"}}},
		{Name: "bb0", Virtual: true, Layers: host.Layers{Kind: "vlan", Below: []string{"aa0"}, Above: []string{"aa0"}}},
		{Name: "cc0", Virtual: true, Layers: host.Layers{Kind: "vlan", Below: []string{"gone"}}},
	}}
	var out bytes.Buffer
	if err := text.Inspect(&out, report.NewInspect(reporttest.Envelope(), s), text.Style{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"aa0", "bb0", "cc0"} {
		if strings.Count(out.String(), name) != 1 {
			t.Errorf("%s appears %d times:\n%s", name, strings.Count(out.String(), name), out.String())
		}
	}
}
