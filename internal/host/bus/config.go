package bus

import (
	"encoding/binary"
	"slices"
)

// Byte offsets of the fields read from a PCI device's configuration space (PCI Local Bus 3.0 §6.1,
// PCI-X 2.0 §7.2, PCIe 5.0 §7.5). All numbers in it are little-endian on every machine.
const (
	configStatus          = 0x06
	configSecondaryStatus = 0x1e // of a bridge: the status of the bus below it
	configCapabilities    = 0x34

	statusCapabilities = 1 << 4 // there is a list of capabilities
	status66MHz        = 1 << 5 // the device can run at 66 MHz

	capabilityPCIX = 0x07
	capabilityPCIe = 0x10
)

// headerSize is the length of the standard header in bytes: the part that the kernel shows to
// readers without CAP_SYS_ADMIN.
const headerSize = 64

// readConfig reads the configuration space: 64 bytes for ordinary users, all of it for root.
// Reading may wake the device from power saving; it changes nothing. The result is a copy, because
// the caller reads other files while it uses it.
func (m Machine) readConfig(device string) []byte {
	b, err := m.Tree.Read(device + "/config")
	if err != nil || len(b) < headerSize {
		return nil
	}
	// All ones: the device does not answer.
	if binary.LittleEndian.Uint32(b) == 0xffffffff {
		return nil
	}
	return slices.Clone(b)
}

// capability finds a capability in the linked list of a configuration space and returns the space
// from the capability's first byte on. The list lies behind the header; the two low bits of its
// pointers are reserved and must be masked (PCI Local Bus 3.0 §6.7).
func capability(config []byte, id byte) []byte {
	if len(config) <= headerSize || binary.LittleEndian.Uint16(config[configStatus:])&statusCapabilities == 0 {
		return nil
	}
	at := int(config[configCapabilities] &^ 3)
	// More than 48 entries cannot fit (192 bytes, 4 for each), so a longer list is a loop. The
	// kernel has the same limit (PCI_FIND_CAP_TTL).
	for range 48 {
		if at < headerSize || at+2 > len(config) {
			return nil
		}
		if config[at] == id {
			return config[at:]
		}
		at = int(config[at+1] &^ 3)
	}
	return nil
}

// linkSpeeds maps the codes of the PCI Express link registers to GT/s: generations 1 to 6.
var linkSpeeds = [...]float64{1: 2.5, 2: 5, 3: 8, 4: 16, 5: 32, 6: 64}

// linkFromConfig reads Link Capabilities (at 0x0c) and Link Status (at 0x12) of the PCI Express
// capability: speed in bits 3:0, width in 9:4 (PCIe 5.0 §7.5.3.6 and §7.5.3.8).
func linkFromConfig(config []byte) (link, bool) {
	c := capability(config, capabilityPCIe)
	if len(c) < 0x14 {
		return link{}, false
	}
	decode := func(v uint32) (float64, int) {
		code := v & 0xf
		if int(code) >= len(linkSpeeds) {
			return 0, 0
		}
		return linkSpeeds[code], laneCount(int64(v >> 4 & 0x3f))
	}
	var l link
	l.maxSpeed, l.maxWidth = decode(binary.LittleEndian.Uint32(c[0x0c:]))
	l.speed, l.width = decode(uint32(binary.LittleEndian.Uint16(c[0x12:])))
	return l, l.speed > 0 && l.width > 0
}

// secondaryTransfers returns the transfers per second of a PCI-X bridge's lower bus, from bits 9:6
// of the secondary status in its capability (PCI_X_SSTATUS_FREQ in pci_regs.h). The low two bits
// are the clock, 66, 100 or 133 MHz; 0 is conventional PCI. The high two bits are the mode: plain,
// with error correction, two or four transfers per clock (pcix_bus_speed in drivers/pci/probe.c).
func secondaryTransfers(bridge []byte) (transfers float64, ok bool) {
	x := capability(bridge, capabilityPCIX)
	if len(x) < 4 {
		return 0, false
	}
	mode := binary.LittleEndian.Uint16(x[2:]) >> 6 & 0xf
	switch mode & 3 {
	case 1:
		transfers = clockHertz(66)
	case 2:
		transfers = clockHertz(100)
	case 3:
		transfers = clockHertz(133)
	default:
		return 0, false
	}
	switch mode >> 2 {
	case 2:
		transfers *= 2
	case 3:
		transfers *= 4
	}
	return transfers, true
}

// pcix64Bits is the bit of the PCI-X status that shows 64 data lines, both of a device
// (PCI_X_STATUS_64BIT) and of the upper side of a bridge.
const pcix64Bits = 1 << 16

// secondaryBus returns what a bridge supports on the bus below it: the width in bits, 0 if unknown,
// and the highest transfers per second. A PCI-X bridge shows both in its secondary status
// (PCI_X_SSTATUS_* in pci_regs.h). A conventional bridge has a bit for 66 MHz and none for its
// width. Without that bit the bus is taken for the 32 bits of desktops, because 64 bits came with
// 66 MHz on nearly all boards; with it the width is unknown. ok is false without a configuration
// space, or if this reader may not see its capabilities.
func secondaryBus(bridge []byte) (width int, best float64, ok bool) {
	if bridge == nil {
		return 0, 0, false
	}
	if x := capability(bridge, capabilityPCIX); len(x) >= 4 {
		status := binary.LittleEndian.Uint16(x[2:])
		width = 32
		if status&1 != 0 {
			width = 64
		}
		switch {
		case status&(1<<15) != 0:
			return width, 16 * pciClock, true
		case status&(1<<14) != 0:
			return width, 8 * pciClock, true
		case status&(1<<1) != 0:
			return width, 4 * pciClock, true
		}
		return width, 2 * pciClock, true
	}
	if len(bridge) <= headerSize && binary.LittleEndian.Uint16(bridge[configStatus:])&statusCapabilities != 0 {
		return 0, 0, false
	}
	if binary.LittleEndian.Uint16(bridge[configSecondaryStatus:])&status66MHz != 0 {
		return 0, 2 * pciClock, true
	}
	return 32, pciClock, true
}
