package bus

import (
	"path"
	"strconv"
	"strings"
)

// Tree reads files below /sys. Names are slash-separated and relative ("sys/bus/pci/devices"). Its
// functions must not leave the tree: an archive from an untrusted source may contain links to any
// place. All four are required.
type Tree struct {
	Read func(name string) ([]byte, error)   // a whole file; the bytes may be overwritten by the next Read
	List func(name string) ([]string, error) // the names in a directory, sorted
	Link func(name string) (string, bool)    // the target of a symbolic link, as written in it
	// Resolve returns the real path with links followed. False: nothing exists there, or it is
	// outside.
	Resolve func(name string) (string, bool)
}

// text returns a one-value file without its final newline; empty if it cannot be read. That is
// common in sysfs: an attribute of a sleeping or removed device returns EIO or EINVAL.
func (t Tree) text(name string) string {
	b, err := t.Read(name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// number returns a one-value file as a number. Attributes of devices come in decimal and as 0x….
func (t Tree) number(name string) (int64, bool) {
	n, err := strconv.ParseInt(t.text(name), 0, 64)
	return n, err == nil
}

// Machine is the computer whose buses are read.
type Machine struct {
	Tree Tree
	// Guest reports that the host is a virtual machine. A guest's parallel bus is emulated and has
	// no capacity. PCIe link attributes are used all the same, since they may be those of a
	// passed-through card; package host identifies an emulated card by its driver.
	Guest bool
	// ShowsLinks reports that the kernel is 4.13 or later, so that a device without the link
	// attributes in sysfs has no link.
	ShowsLinks bool
}

// Slot describes where a card sits and what its path to the processor carries; for units see the
// package comment. Zero means not known.
type Slot struct {
	// pcie, pci-x, pci, usb, virtio, eisa, isa, or the kernel's name for the bus (xen, vmbus,
	// platform, …)
	Kind                  string
	Address               string  // 0000:03:00.0, 1-1.2, …
	CapacityBitsPerSec    float64 // as negotiated now, by the narrowest link of the path
	MaxCapacityBitsPerSec float64 // what card and slot support
	Width                 int     // PCIe lanes or PCI bits
	SpeedGigatransfers    float64 // of PCIe; 0 on other buses

	// LimitedBy is the address of the bridge above the card whose link is narrower than the card's
	// own; empty if the card's own link is the narrowest.
	LimitedBy string
	// SharedWith are the addresses of the other devices that share this capacity: neighbours on a
	// conventional bus, other functions of the card.
	SharedWith []string

	// What card and slot support together, besides MaxCapacityBitsPerSec: PCIe lanes or PCI bits,
	// and the speed of a PCIe lane.
	MaxWidth              int
	MaxSpeedGigatransfers float64
	// Transfers of a parallel bus, in millions per second, now and at best: its clock, or twice and
	// four times that for PCI-X 2.0. 0 on others.
	Megatransfers, MaxMegatransfers float64
}

// buses are the directories of /sys/bus that contain NICs.
var buses = [...]string{"pci", "virtio", "usb", "platform", "vmbus", "xen", "eisa"}

// Locate returns the real path of the device with that address, on any bus. It serves the case that
// /sys/class/net shows another network namespace: namespaces do not divide /sys/bus. ok is false if
// no device has that address.
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

// Slot returns the slot of the device with that real path. ok is false if it is on no bus that the
// kernel has a name for.
func (m Machine) Slot(device string) (Slot, bool) {
	if device == "" {
		return Slot{}, false
	}
	// The kernel links to /sys/bus/NAME; only the last element matters.
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
		// The hypervisor emulates the PCI function below it; that function's address is the one
		// users know.
		if up := parent(device); strings.Contains(path.Base(up), ":") {
			s.Address = path.Base(up)
		}
	case "":
		return Slot{}, false
	}
	return s, true
}

// readPCI distinguishes PCIe, PCI-X and conventional PCI, which the kernel all names pci, and finds
// what the path from the card to the processor carries.
func (m Machine) readPCI(device string, s *Slot) {
	// A virtual function (SR-IOV) has no link of its own: it uses the card's.
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
// 10 and 20 Gb/s before 128b/132b (USB 3.2). Up to 480 Mb/s USB stuffs bits and does not code them,
// so the rate needs no correction.
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
