package bus

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tree is a sysfs in memory: files by name; a name with a trailing arrow is a symbolic link to the
// name that is its content.
type tree map[string]string

func (m tree) read(name string) ([]byte, error) {
	if real, ok := m.resolve(name); ok {
		if content, ok := m[real]; ok {
			return []byte(content), nil
		}
	}
	return nil, &fs.PathError{Op: "read", Path: "/" + name, Err: fs.ErrNotExist}
}

func (m tree) list(name string) ([]string, error) {
	var names []string
	for entry := range m {
		if rest, ok := strings.CutPrefix(entry, name+"/"); ok {
			first, _, _ := strings.Cut(strings.TrimSuffix(rest, "->"), "/")
			names = append(names, first)
		}
	}
	if names == nil {
		return nil, fs.ErrNotExist
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

func (m tree) link(name string) (string, bool) {
	target, ok := m[name+"->"]
	return target, ok
}

// resolve follows links in every element of name; targets are names from the top.
func (m tree) resolve(name string) (string, bool) {
	real := ""
	for element := range strings.SplitSeq(name, "/") {
		real = path.Join(real, element)
		if target, ok := m[real+"->"]; ok {
			real = target
		}
	}
	if _, ok := m[real]; ok {
		return real, true
	}
	_, err := m.list(real)
	return real, err == nil
}

func (m tree) machine() Machine {
	return Machine{Tree: Tree{Read: m.read, List: m.list, Link: m.link, Resolve: m.resolve}}
}

// header is a configuration space of that many bytes with a vendor in it.
func header(size int) []byte {
	b := make([]byte, size)
	binary.LittleEndian.PutUint16(b, 0x8086)
	return b
}

// TestExpressWay: the switch above a card with two ports is the narrow place. The slot shows the
// capacity in use, the best possible one, and the second port that shares it.
func TestExpressWay(t *testing.T) {
	const root, up, card = "sys/devices/pci0000:00/0000:00:01.0", "/0000:01:00.0", "/0000:02:00.0"
	m := tree{root + up + card + "/subsystem->": "../../../../bus/pci",
		root + up + "/0000:02:00.1/config": string(header(64))}
	attributes := func(dir, speed, width, maxSpeed, maxWidth string) {
		m[dir+"/current_link_speed"], m[dir+"/current_link_width"] = speed+"\n", width+"\n"
		m[dir+"/max_link_speed"], m[dir+"/max_link_width"] = maxSpeed+"\n", maxWidth+"\n"
	}
	attributes(root+up+card, "8.0 GT/s PCIe", "8", "8.0 GT/s PCIe", "8")
	attributes(root+up, "2.5 GT/s", "4", "8 GT/s", "4")
	attributes(root, "2.5 GT/s", "4", "16 GT/s", "16")
	got, ok := m.machine().Slot(root + up + card)
	want := Slot{
		Kind: "pcie", Address: "0000:02:00.0", Width: 8, SpeedGigatransfers: 8,
		CapacityBitsPerSec: 4 * 2e9, MaxCapacityBitsPerSec: 4 * (8e9 * 128 / 130),
		LimitedBy: "0000:01:00.0", SharedWith: []string{"0000:02:00.1"}, MaxWidth: 4, MaxSpeedGigatransfers: 8,
	}
	if diff := cmp.Diff(want, got); diff != "" || !ok {
		t.Errorf("%v (-want +got):\n%s", ok, diff)
	}
	// A virtual function has no link of its own and answers with the card's.
	m[root+up+"/0000:02:10.0/subsystem->"], m[root+up+"/0000:02:10.0/physfn->"] = "../../bus/pci", root+up+card
	if vf, _ := m.machine().Slot(root + up + "/0000:02:10.0"); vf.CapacityBitsPerSec != want.CapacityBitsPerSec ||
		vf.Address != "0000:02:10.0" {
		t.Errorf("virtual function %+v", vf)
	}
}

// TestConventional: one slow neighbour holds the whole bus at 33 MHz; a guest's bus, a device that
// may be PCIe after all and one of a PCIe machine's chipset have no capacity.
func TestConventional(t *testing.T) {
	const bridge = "sys/devices/pci0000:00/0000:00:1e.0"
	fast := header(64)
	fast[configStatus] = status66MHz
	above := header(64)
	above[configSecondaryStatus] = status66MHz
	m := tree{
		bridge + "/config": string(above), bridge + "/0000:02:05.0/config": string(fast),
		bridge + "/0000:02:05.0/subsystem->": "../../../../bus/pci",
		bridge + "/0000:02:06.0/config":      string(fast),
	}
	check := func(name string, m Machine, now, best float64) {
		t.Helper()
		got, ok := m.Slot(bridge + "/0000:02:05.0")
		if !ok || got.Kind != "pci" || got.CapacityBitsPerSec != now || got.MaxCapacityBitsPerSec != best {
			t.Errorf("%s: %+v", name, got)
		}
	}
	check("two fast cards", m.machine(), 64*pciClock, 64*pciClock)
	m[bridge+"/0000:02:06.0/config"] = string(header(64))
	check("one of them slow", m.machine(), 32*pciClock, 64*pciClock)
	guest := m.machine()
	guest.Guest = true
	check("a guest", guest, 0, 0)

	// Sixty-four bytes that speak of capabilities prove nothing until the kernel is known to show
	// links.
	fast[configStatus] |= statusCapabilities
	m[bridge+"/0000:02:05.0/config"] = string(fast)
	check("capabilities out of reach", m.machine(), 0, 0)
	shows := m.machine()
	shows.ShowsLinks = true
	check("no link in a kernel that shows them", shows, 32*pciClock, 64*pciClock)
}

// pcix is a configuration space of 256 bytes with a PCI-X capability: second is its 16 bits behind
// the head, status its 32 bits.
func pcix(second uint16, status uint32) []byte {
	b := header(256)
	b[configStatus], b[configCapabilities], b[0x40] = statusCapabilities|status66MHz, 0x40, capabilityPCIX
	binary.LittleEndian.PutUint16(b[0x42:], second)
	binary.LittleEndian.PutUint32(b[0x44:], status)
	return b
}

// TestNarrowestOfTheWay: an 82545 has 64 bits and 133 MHz, and gets what the bridges above it leave
// of them.
func TestNarrowestOfTheWay(t *testing.T) {
	const (
		up, bridge, card = "sys/devices/pci0000:00/0000:00:02.0", "/0000:01:01.0", "/0000:02:05.0"
		mode133          = 3 << 6 // PCI-X at 133 MHz
		wide, fast       = 1, 1 << 1
	)
	device := string(pcix(0, pcix64Bits|1<<17))
	both := func(upper, lower []byte) tree {
		return tree{up + "/config": string(upper), up + bridge + "/config": string(lower),
			up + bridge + card + "/config":      device,
			up + bridge + card + "/subsystem->": "../../../../../bus/pci"}
	}
	full := pcix(mode133|wide|fast, pcix64Bits)
	slow66, plain := header(64), header(64)
	slow66[configSecondaryStatus], slow66[configStatus] = status66MHz, status66MHz
	hidden := header(64)
	hidden[configStatus] = statusCapabilities
	for _, c := range []struct {
		name         string
		upper, lower []byte
		width        int
		kind         string
		now, best    float64 // in transfers of the width
		limitedBy    string
	}{
		{"64 bits and 133 MHz all the way", full, full, 64, "pci-x", 64 * 4 * pciClock, 64 * 4 * pciClock, ""},
		{"a slot of 32 bits", full, pcix(mode133|fast, pcix64Bits), 32, "pci-x", 32 * 4 * pciClock,
			32 * 4 * pciClock, ""},
		{"a slot of 66 MHz", full, pcix(1<<6|wide, pcix64Bits), 64, "pci-x", 64 * 2 * pciClock, 64 * 2 * pciClock, ""},
		{"the bridge of a desktop", full, plain, 32, "pci", 32 * pciClock, 32 * pciClock, ""},
		{"a conventional bridge of 66 MHz", full, slow66, 64, "pci", 64 * 2 * pciClock, 64 * 2 * pciClock, ""},
		{"a narrow bus above", pcix(mode133|fast, 0), full, 64, "pci-x", 32 * 4 * pciClock, 64 * 4 * pciClock,
			"0000:00:02.0"},
		{"a narrow upper side", full, pcix(mode133|wide|fast, 0), 64, "pci-x", 32 * 4 * pciClock, 64 * 4 * pciClock,
			"0000:00:02.0"},
		{"a desktop above", plain, full, 64, "pci-x", 32 * pciClock, 64 * 4 * pciClock, "0000:00:02.0"},
		{"a bridge that hides", hidden, hidden, 64, "pci", 64 * pciClock, 64 * 4 * pciClock, ""},
	} {
		got, ok := both(c.upper, c.lower).machine().Slot(up + bridge + card)
		if !ok || got.Width != c.width || got.Kind != c.kind || got.CapacityBitsPerSec != c.now ||
			got.MaxCapacityBitsPerSec != c.best || got.LimitedBy != c.limitedBy {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
	// A bridge from PCIe x1 of the first generation carries 2 Gb/s each way.
	m := both(full, full)
	m[up+bridge+"/current_link_speed"], m[up+bridge+"/current_link_width"] = "2.5 GT/s PCIe", "1"
	if got, _ := m.machine().Slot(up + bridge + card); got.CapacityBitsPerSec != 2e9 ||
		got.LimitedBy != "0000:01:01.0" {
		t.Errorf("behind PCIe: %+v", got)
	}
}

func TestOtherBuses(t *testing.T) {
	m := tree{
		"sys/devices/usb/2-1/speed": "5000\n", "sys/devices/usb/2-1/2-1:1.0/subsystem->": "../../../../bus/usb",
		"sys/devices/pci0000:00/0000:00:03.0/virtio0/subsystem->": "../../../../bus/virtio",
		"sys/devices/pnp0/00:05/subsystem->":                      "../../../bus/pnp",
		"sys/devices/vif-0/subsystem->":                           "../../bus/xen",
		"sys/devices/eisa0/00:03/subsystem->":                     "../../../bus/eisa",
		"sys/devices/lone/uevent":                                 "",
		"sys/bus/usb/devices/2-1:1.0->":                           "sys/devices/usb/2-1/2-1:1.0",
	}
	for device, want := range map[string]Slot{
		"sys/devices/usb/2-1/2-1:1.0":                 {Kind: "usb", Address: "2-1", CapacityBitsPerSec: 4e9},
		"sys/devices/pci0000:00/0000:00:03.0/virtio0": {Kind: "virtio", Address: "0000:00:03.0"},
		"sys/devices/pnp0/00:05":                      {Kind: "isa", Address: "00:05"},
		"sys/devices/vif-0":                           {Kind: "xen", Address: "vif-0"},
		"sys/devices/eisa0/00:03": {Kind: "eisa", Address: "00:03", Width: 32,
			CapacityBitsPerSec: eisaRate, MaxCapacityBitsPerSec: eisaRate},
	} {
		got, ok := m.machine().Slot(device)
		if diff := cmp.Diff(want, got); diff != "" || !ok {
			t.Errorf("%s: %v (-want +got):\n%s", device, ok, diff)
		}
	}
	for _, device := range []string{"", "sys/devices/lone"} {
		if got, ok := m.machine().Slot(device); ok {
			t.Errorf("%q is on no bus: %+v", device, got)
		}
	}
	if got, ok := m.machine().Locate("2-1:1.0"); !ok || got != "sys/devices/usb/2-1/2-1:1.0" {
		t.Errorf("located at %q %v", got, ok)
	}
	for _, address := range []string{"", "../../devices/lone", "0000:09:00.0"} {
		if got, ok := m.machine().Locate(address); ok {
			t.Errorf("%q located at %q", address, got)
		}
	}
	if _, err := m.read("sys/nothing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the tree of the test: %v", err)
	}
}

func TestParseWords(t *testing.T) {
	for text, want := range map[string]float64{"8.0 GT/s PCIe": 8, "2.5 GT/s": 2.5, "16 GT/s": 16, "Unknown": 0,
		"Unknown speed": 0, "NaN GT/s": 0, "-5 GT/s": 0, "": 0} {
		if got := parseTransfers(text); got != want {
			t.Errorf("parseTransfers(%q) = %v", text, got)
		}
	}
	for gt, want := range map[float64]float64{2.5: 2e9, 5: 4e9, 8: 8e9 * 128 / 130, 16: 16e9 * 128 / 130,
		64: 64e9 * 242 / 256} {
		if got := laneRate(gt); got != want {
			t.Errorf("laneRate(%v) = %v, want %v", gt, got, want)
		}
	}
	for text, want := range map[string]struct {
		transfers float64
		x         bool
		ok        bool
	}{
		"33 MHz PCI": {pciClock, false, true}, "66 MHz PCI": {2 * pciClock, false, true},
		"50 MHz PCI": {50e6, false, true}, "66 MHz PCI-X": {2 * pciClock, true, true},
		"100 MHz PCI-X": {100e6, true, true}, "133 MHz PCI-X": {4 * pciClock, true, true},
		"133 MHz PCI-X 266": {8 * pciClock, true, true},
		"133 MHz PCI-X 533": {16 * pciClock, true, true}, "8.0 GT/s PCIe": {}, "AGP 4x": {}, "": {},
	} {
		if transfers, x, ok := parseSlotSpeed(text); transfers != want.transfers || x != want.x || ok != want.ok {
			t.Errorf("parseSlotSpeed(%q) = %v %v %v", text, transfers, x, ok)
		}
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

// TestLinkFromConfig reads what lspci shows as "LnkCap: Speed 5GT/s, Width x8; LnkSta: Speed
// 2.5GT/s, Width x4".
func TestLinkFromConfig(t *testing.T) {
	config := make([]byte, 256)
	config[configStatus] = statusCapabilities
	config[configCapabilities] = 0xa0
	copy(config[0xa0:], []byte{capabilityPCIe, 0, 2, 0})
	copy(config[0xac:], []byte{0x82, 0x00, 0, 0}) // x8, code 2
	copy(config[0xb2:], []byte{0x41, 0x10})       // x4, code 1
	got, ok := linkFromConfig(config)
	if want := (link{speed: 2.5, maxSpeed: 5, width: 4, maxWidth: 8}); got != want || !ok {
		t.Errorf("got %+v %v", got, ok)
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
		secondaryTransfers(config)
		m := tree{"sys/devices/pci0000:00/0000:00:03.0/config": string(config)}
		if c, ok := m.machine().Control("sys/devices/pci0000:00/0000:00:03.0"); ok &&
			(c.PayloadBytes > 4096 || c.ReadRequestBytes > 4096 || c.PayloadSupportedBytes > 4096) {
			t.Errorf("control %+v", c)
		}
		if width, best, ok := secondaryBus(config); ok &&
			(width != 0 && width != 32 && width != 64 || best < pciClock || best > 16*pciClock) {
			t.Errorf("bus of %d bits, %v transfers", width, best)
		}
	})
}

// FuzzWords: the words of sysfs give figures within bounds or none.
func FuzzWords(f *testing.F) {
	for _, seed := range []string{"133 MHz PCI-X", "33 MHz PCI", "8.0 GT/s PCIe", "Unknown speed", "NaN GT/s",
		"1e9 MHz PCI"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		if transfers, _, ok := parseSlotSpeed(in); ok && !(transfers > 0 && transfers <= 4e9) {
			t.Errorf("slot %v", transfers)
		}
		if gt := parseTransfers(in); !(gt >= 0 && gt <= 1024) {
			t.Errorf("transfers %v", gt)
		}
		m := tree{"sys/devices/1-1/speed": in, "sys/devices/1-1/subsystem->": "bus/usb"}
		if s, _ := m.machine().Slot("sys/devices/1-1"); !(s.CapacityBitsPerSec >= 0 && s.CapacityBitsPerSec <= 1e12) {
			t.Errorf("usb %v", s.CapacityBitsPerSec)
		}
	})
}
