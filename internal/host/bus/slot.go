package bus

import (
	"path"
	"strconv"
	"strings"
)

// Tree is how files below /sys are read. Names are slash-separated and relative
// ("sys/bus/pci/devices"). Whoever makes it keeps its functions inside the tree: an archive that
// somebody sent may hold links to anywhere. All four are needed.
type Tree struct {
	Read func(name string) ([]byte, error)   // a whole file; the bytes may be overwritten by the next Read
	List func(name string) ([]string, error) // the names in a directory, sorted
	Link func(name string) (string, bool)    // the target of a symbolic link, as written in it
	// the real path of what is there, links followed; false: nothing is, or it is outside
	Resolve func(name string) (string, bool)
}

// text gives a one-value file without its final newline; empty where it cannot be read, which in
// sysfs is an everyday answer: an attribute of a sleeping or removed device says EIO or EINVAL.
func (t Tree) text(name string) string {
	b, err := t.Read(name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// number gives a one-value file as a decimal or 0x… number: attributes of devices come in both
// forms.
func (t Tree) number(name string) (int64, bool) {
	n, err := strconv.ParseInt(t.text(name), 0, 64)
	return n, err == nil
}

// Machine is the computer whose buses are looked at.
type Machine struct {
	Tree Tree
	// Guest: a hypervisor is below. The parallel bus of a guest is an imitation and has no
	// capacity; PCIe link attributes are believed all the same, since they may be those of a card
	// passed through; by the driver package host knows whose card it is.
	Guest bool
	// ShowsLinks: the kernel is 4.13 or later, so that a device without the link attributes in
	// sysfs has no link.
	ShowsLinks bool
}

// Slot is where a card sits and what its way to the processor carries; package comment: units. Zero
// means not known.
type Slot struct {
	// pcie, pci-x, pci, usb, virtio, eisa, isa, or the kernel's own word for the bus (xen, vmbus,
	// platform, …)
	Kind                  string
	Address               string  // 0000:03:00.0, 1-1.2, …
	CapacityBitsPerSec    float64 // as negotiated now, by the narrowest link of the way
	MaxCapacityBitsPerSec float64 // what card and slot could do
	Width                 int     // PCIe lanes or PCI bits
	SpeedGigatransfers    float64 // of PCIe; 0 on other buses

	// LimitedBy is the address of the bridge above the card whose link is narrower than the card's
	// own; empty: the card's own link is the narrowest.
	LimitedBy string
	// SharedWith are the addresses of the other devices that share this capacity: neighbours on a
	// conventional bus, other functions of the card.
	SharedWith []string

	// What card and slot could do together, beside MaxCapacityBitsPerSec: PCIe lanes or PCI bits,
	// and the speed of a PCIe lane.
	MaxWidth              int
	MaxSpeedGigatransfers float64
	// Transfers of a parallel bus, in millions per second, now and at best: its clock, or twice and
	// four times that for PCI-X 2.0. 0 on others.
	Megatransfers, MaxMegatransfers float64
}

// buses are the directories of /sys/bus that network cards are found in.
var buses = [...]string{"pci", "virtio", "usb", "platform", "vmbus", "xen", "eisa"}

// Locate gives the real path of the device with that address, on whatever bus it is. It is for
// where /sys/class/net belongs to another network namespace: /sys/bus is not divided by them.
// False: no such device, or an address that is none.
func (m Machine) Locate(address string) (string, bool) {
	if address == "" || strings.ContainsAny(address, "/") {
		return "", false
	}
	for _, bus := range buses {
		if real, ok := m.Tree.Resolve("sys/bus/" + bus + "/devices/" + address); ok {
			return real, true
		}
	}
	return "", false
}

// Slot tells where the device with that real path sits. False: it is on no bus that the kernel has
// a name for.
func (m Machine) Slot(device string) (Slot, bool) {
	if device == "" {
		return Slot{}, false
	}
	// The kernel says the bus by a link to /sys/bus/NAME; only its last element is of interest.
	target, _ := m.Tree.Link(device + "/subsystem")
	s := Slot{Kind: target[strings.LastIndexByte(target, '/')+1:], Address: path.Base(device)}
	switch s.Kind {
	case "pci":
		m.readPCI(device, &s)
	case "usb":
		m.readUSB(device, &s)
	case "eisa":
		s.Width, s.CapacityBitsPerSec, s.MaxCapacityBitsPerSec = 32, eisaRate, eisaRate
	case "pnp":
		// What plug and play configures without a bus of its own sits on ISA or its successor on
		// the board, LPC.
		s.Kind = "isa"
	case "virtio":
		// The PCI function below it is the hypervisor's imitation; its address is what people know
		// the card by.
		if up := parent(device); strings.Contains(path.Base(up), ":") {
			s.Address = path.Base(up)
		}
	case "":
		return Slot{}, false
	}
	return s, true
}

// readPCI tells PCIe, PCI-X and conventional PCI apart, which the kernel all calls pci, and finds
// what the way from the card to the processor carries.
func (m Machine) readPCI(device string, s *Slot) {
	// A virtual function (SR-IOV) has no link of its own: it uses that of the card.
	if card, ok := m.Tree.Resolve(device + "/physfn"); ok {
		device = card
	}
	config := m.readConfig(device)
	if own, ok := m.readLink(device, config); ok {
		s.Kind = "pcie"
		m.readPath(device, own, s)
		s.SharedWith = m.functions(device)
		return
	}
	if m.Guest {
		return
	}
	m.readConventional(device, config, s)
}

// readUSB reads the speed of the USB device that an interface belongs to: the attribute is one or
// two directories above the network function, "480" or "5000" Mb/s. 5 Gb/s is before 8b/10b coding,
// 10 and 20 Gb/s before 128b/132b (USB 3.2); up to 480 Mb/s bits are stuffed and not coded, so the
// rate stands.
func (m Machine) readUSB(device string, s *Slot) {
	for dir := device; dir != ""; dir = parent(dir) {
		text := m.Tree.text(dir + "/speed")
		if text == "" {
			continue
		}
		mbps, err := strconv.ParseFloat(text, 64)
		if err != nil || !(mbps > 0 && mbps <= 1e6) {
			return
		}
		s.Address = path.Base(dir)
		switch {
		case mbps <= 480:
			s.CapacityBitsPerSec = mbps * 1e6
		case mbps == 5000:
			s.CapacityBitsPerSec = mbps * 1e6 * 8 / 10
		default:
			s.CapacityBitsPerSec = mbps * 1e6 * 128 / 132
		}
		return
	}
}

// parent is path.Dir without its "." for the top.
func parent(name string) string {
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		return name[:i]
	}
	return ""
}
