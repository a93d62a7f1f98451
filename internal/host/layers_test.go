package host_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/kernel/hostfs"
)

// tree plants an archive: names as text archives have them ("a -> b" is a link), contents with a
// line end behind them.
func tree(t testing.TB, files map[string]string) host.Root {
	t.Helper()
	var entries []hostfs.Entry
	for name, content := range files {
		entries = append(entries, planted(t, name, []byte(content+"\n")))
	}
	return inMemory(entries)
}

// device plants a card: its interface in /sys/class/net as a link into the tree of buses, with what
// every interface has.
func device(files map[string]string, name string, index int, at string) string {
	dir := "sys/devices/virtual/net/" + name
	if at != "" {
		dir = at + "/net/" + name
		files[dir+"/device -> ../../../"+at[strings.LastIndexByte(at, '/')+1:]] = ""
	}
	files["sys/class/net/"+name+" -> ../../"+strings.TrimPrefix(dir, "sys/")] = ""
	files[dir+"/ifindex"], files[dir+"/mtu"], files[dir+"/flags"] = fmt.Sprint(index), "1500", "0x1003"
	return dir
}

// stack plants two cards in a bond, VLANs on it and a bridge on the first of those.
func stack(vlans int) map[string]string {
	files := map[string]string{"proc/sys/kernel/osrelease": "6.6.9"}
	below := func(dir, lower string) { files[dir+"/lower_"+lower+" -> ../"+lower] = "" }
	for n, name := range []string{"eth0", "eth1"} {
		device(files, name, 2+n, fmt.Sprintf("sys/devices/pci0000:00/0000:03:00.%d", n))
		files[fmt.Sprintf("sys/devices/pci0000:00/0000:03:00.%d/subsystem -> ../../../bus/pci", n)] = ""
	}
	files["sys/bus/pci/"] = ""
	bond := device(files, "bond0", 4, "")
	files[bond+"/uevent"] = "INTERFACE=bond0\nDEVTYPE=bond"
	below(bond, "eth0")
	below(bond, "eth1")
	for n := range vlans {
		name := fmt.Sprintf("bond0.%d", 100+n)
		vlan := device(files, name, 10+n, "")
		files[vlan+"/uevent"] = "DEVTYPE=vlan"
		below(vlan, "bond0")
	}
	bridge := device(files, "br0", 5, "")
	files[bridge+"/uevent"] = "DEVTYPE=bridge"
	below(bridge, "bond0.100")
	return files
}

// TestLayersOfSysfs: a plain copy of /sys shows which card carries what.
func TestLayersOfSysfs(t *testing.T) {
	s, err := tree(t, stack(2)).Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]host.Layers)
	for _, i := range s.Interfaces {
		got[i.Name] = i.Layers
	}
	cards := []string{"eth0", "eth1"}
	want := map[string]host.Layers{
		"eth0":      {Kind: "physical", Above: []string{"bond0"}},
		"eth1":      {Kind: "physical", Above: []string{"bond0"}},
		"bond0":     {Kind: "bond", Below: cards, Above: []string{"bond0.100", "bond0.101"}, Carriers: cards},
		"bond0.100": {Kind: "vlan", Below: []string{"bond0"}, Above: []string{"br0"}, Carriers: cards},
		"bond0.101": {Kind: "vlan", Below: []string{"bond0"}, Carriers: cards},
		"br0":       {Kind: "bridge", Below: []string{"bond0.100"}, Carriers: cards},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestLayersOfNetlink: where sysfs belongs to another namespace, only netlink has the facts; a veth
// whose other end is elsewhere is no layer, and neither is a ring of interfaces that no kernel
// would make.
func TestLayersOfNetlink(t *testing.T) {
	s, err := tree(t, map[string]string{
		"proc/sys/kernel/osrelease": "6.6.9",
		"linerate/links.json": `[
			{"index":1,"name":"lo","mtu_bytes":65536,"up":true,"carrier":true},
			{"index":2,"name":"eth0","mtu_bytes":1500,"up":true,"carrier":true,"master_index":3},
			{"index":3,"name":"bond0","kind":"bond","mtu_bytes":1500,"up":true,"carrier":true,"bond_mode":"802.3ad"},
			{"index":4,"name":"v7","kind":"vlan","mtu_bytes":1500,"up":true,"carrier":true,"parent_index":3,"vlan_id":7,"vlan_protocol":"802.1Q"},
			{"index":5,"name":"va","kind":"veth","mtu_bytes":1500,"up":true,"carrier":true,"parent_index":6},
			{"index":6,"name":"vb","kind":"veth","mtu_bytes":1500,"up":true,"carrier":true,"parent_index":5},
			{"index":7,"name":"vc","kind":"veth","mtu_bytes":1500,"up":true,"carrier":true,"parent_index":2},
			{"index":8,"name":"gre1","kind":"gre","mtu_bytes":1476,"up":true,"carrier":true,"parent_index":4},
			{"index":9,"name":"x","kind":"vlan","mtu_bytes":1500,"up":true,"carrier":true,"parent_index":10},
			{"index":10,"name":"y","kind":"vlan","mtu_bytes":1500,"up":true,"carrier":true,"parent_index":9},
			{"index":11,"name":"nk0","kind":"netkit","mtu_bytes":1500,"parent_index":12},
			{"index":12,"name":"nk1","kind":"netkit","mtu_bytes":1500,"parent_index":11},
			{"index":13,"name":"nk2","kind":"netkit","mtu_bytes":1500,"parent":"nk3"}]`,
		"linerate/ethtool.json": `{"eth0":{"driver":"igb","bus":"0000:03:00.0"}}`,
	}).Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]host.Layers)
	for _, i := range s.Interfaces {
		got[i.Name] = i.Layers
	}
	eth0 := []string{"eth0"}
	want := map[string]host.Layers{
		"lo":    {Kind: "loopback"},
		"eth0":  {Kind: "physical", Above: []string{"bond0"}},
		"bond0": {Kind: "bond", BondMode: "802.3ad", Below: eth0, Above: []string{"v7"}, Carriers: eth0},
		"v7": {Kind: "vlan", VLANID: 7, VLANProtocol: "802.1Q", Below: []string{"bond0"}, Above: []string{"gre1"},
			Carriers: eth0},
		"va":   {Kind: "veth", Peer: "vb"},
		"vb":   {Kind: "veth", Peer: "va"},
		"vc":   {Kind: "veth"},
		"nk0":  {Kind: "netkit", Peer: "nk1"},
		"nk1":  {Kind: "netkit", Peer: "nk0"},
		"nk2":  {Kind: "netkit"},
		"gre1": {Kind: "gre", Below: []string{"v7"}, Carriers: eth0},
		"x":    {Kind: "vlan", Below: []string{"y"}, Above: []string{"y"}},
		"y":    {Kind: "vlan", Below: []string{"x"}, Above: []string{"x"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAsleep: of a card that is powered down, or behind a bridge that is, nothing is read that
// would wake it.
func TestAsleep(t *testing.T) {
	for _, sleeper := range []string{"sys/devices/pci0000:00/0000:00:1c.0/0000:03:00.0",
		"sys/devices/pci0000:00/0000:00:1c.0"} {
		files := map[string]string{"proc/sys/kernel/osrelease": "6.6.9", "sys/bus/pci/": "",
			sleeper + "/power/runtime_status": "suspended"}
		at := "sys/devices/pci0000:00/0000:00:1c.0/0000:03:00.0"
		dir := device(files, "eth0", 2, at)
		files[at+"/subsystem -> ../../../../bus/pci"] = ""
		files[dir+"/speed"], files[dir+"/duplex"], files[at+"/vendor"], files[at+"/device"] = "1000", "full",
			"0x8086", "0x10d3"
		files[at+"/current_link_speed"], files[at+"/current_link_width"] = "2.5 GT/s PCIe", "1"
		s, err := tree(t, files).Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		dev, _ := s.Interface("eth0")
		if !dev.Asleep || dev.SpeedBitsPerSec != 0 || dev.Duplex != "" || dev.Bus == nil ||
			dev.Bus.CapacityBitsPerSec != 0 {
			t.Errorf("%s asleep: %+v, bus %+v", sleeper, dev, dev.Bus)
		}
		// What the kernel keeps in its own memory is no question to the device.
		if dev.Card == nil || dev.Card.PCIID != "8086:10d3" {
			t.Errorf("%s asleep: card %+v", sleeper, dev.Card)
		}
		files[sleeper+"/power/runtime_status"] = "active"
		if s, err = tree(t, files).Snapshot(t.Context()); err != nil {
			t.Fatal(err)
		}
		if dev, _ := s.Interface("eth0"); dev.Asleep || dev.SpeedBitsPerSec != 1e9 || dev.Bus == nil ||
			dev.Bus.CapacityBitsPerSec != 2e9 {
			t.Errorf("%s awake: %+v, bus %+v", sleeper, dev, dev.Bus)
		}
	}
}

// TestAsleepUSB: the state of a USB card is that of the device, and not that of the interface which
// the driver is bound to.
func TestAsleepUSB(t *testing.T) {
	usb := "sys/devices/pci0000:00/0000:00:14.0/usb1/1-1"
	for _, c := range []struct {
		device, function string
		asleep           bool
	}{{"active", "suspended", false}, {"active", "active", false}, {"suspended", "suspended", true},
		{"suspended", "active", true}} {
		files := map[string]string{"proc/sys/kernel/osrelease": "6.6.9",
			usb + "/power/runtime_status": c.device, usb + "/1-1:1.0/power/runtime_status": c.function,
			usb + "/1-1:1.0/bInterfaceNumber": "00"}
		dir := device(files, "usb0", 2, usb+"/1-1:1.0")
		files[dir+"/speed"] = "480"
		s, err := tree(t, files).Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if dev, _ := s.Interface("usb0"); dev.Asleep != c.asleep || (dev.SpeedBitsPerSec == 480e6) == c.asleep {
			t.Errorf("device %s, interface %s: %+v", c.device, c.function, dev)
		}
	}
}
