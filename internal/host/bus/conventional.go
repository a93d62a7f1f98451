package bus

import (
	"encoding/binary"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
)

// pciClock is the clock of conventional PCI in hertz: 33⅓ MHz, with multiples of it for 66 and 133
// MHz.
const pciClock = 100e6 / 3

// readConventional finds the capacity of a shared parallel bus. sysfs has no clock for it, so the
// sources are, in this order: the slot driver ("66 MHz PCI-X" in
// /sys/bus/pci/slots/*/cur_bus_speed); the PCI-X capability; the 66 MHz bits of the bridge and all
// neighbours, since one slow card slows the whole bus (M66EN, PCI Local Bus 3.0, chapter 7). A
// device without a link on the root bus of a PCIe machine is part of the chipset, where none of
// these figures holds: it gets no capacity.
func (m Machine) readConventional(device string, config []byte, s *Slot) {
	bridge := parent(device)
	behind := isPCIAddress(path.Base(bridge))
	_, hasLink := m.Tree.Resolve(device + "/max_link_width")
	if hasLink || !m.provenConventional(config) || !behind && m.hasExpress() {
		return
	}
	// What every PCI bus supports, unless a source below says more: width in bits, transfers per
	// second now and at best.
	width, now, best := 32, pciClock, pciClock
	fast := func(c []byte, at int) bool {
		return c != nil && binary.LittleEndian.Uint16(c[at:])&status66MHz != 0
	}
	if fast(config, configStatus) {
		best = 2 * pciClock
		if behind && fast(m.readConfig(bridge), configSecondaryStatus) && m.allFast(device, fast) {
			now = best
		}
	}
	// PCI-X status of a device: bit 16 shows 64 data lines, bit 17 that it supports 133 MHz, bits
	// 30 and 31 two and four transfers per clock (PCI_X_STATUS in pci_regs.h).
	if x := capability(config, capabilityPCIX); len(x) >= 8 {
		status := binary.LittleEndian.Uint32(x[4:])
		if status&pcix64Bits != 0 {
			width = 64
		}
		switch {
		case status&(1<<31) != 0:
			best = 16 * pciClock
		case status&(1<<30) != 0:
			best = 8 * pciClock
		case status&(1<<17) != 0:
			best = 4 * pciClock
		default:
			best = 2 * pciClock
		}
		if transfers, ok := secondaryTransfers(m.readConfig(bridge)); behind && ok {
			now, s.Kind = transfers, "pci-x"
		}
	}
	if slotNow, slotBest, isX, ok := m.slotTransfers(device); ok {
		now = slotNow
		if slotBest > 0 {
			best = min(max(best, now), slotBest)
		}
		if isX {
			s.Kind = "pci-x"
		}
	}
	// In the short slots of a desktop a 64-bit card uses 32 bits: both ends limit the width.
	if behind {
		if below, fastest, ok := secondaryBus(m.readConfig(bridge)); ok {
			width, best = min(width, positive(below, width)), min(best, fastest)
		}
	}
	s.Width, s.MaxWidth = width, width
	s.Megatransfers, s.MaxMegatransfers = millions(now), millions(max(best, now))
	s.CapacityBitsPerSec = float64(width) * now
	s.MaxCapacityBitsPerSec = float64(width) * max(best, now)
	s.SharedWith = m.neighbours(device)
	m.narrow(bridge, s)
}

// millions converts transfers per second to millions of them, rounded to kilohertz as in their
// names: 33.333.
func millions(transfers float64) float64 { return math.Round(transfers/1e3) / 1e3 }

// narrow includes the buses above the card's own, up to the root or to where they become PCIe. Data
// pass all of them, so the narrowest one is the limit. A bridge that reports nothing narrows
// nothing.
func (m Machine) narrow(bridge string, s *Slot) {
	for at := bridge; isPCIAddress(path.Base(at)); at = parent(at) {
		config := m.readConfig(at)
		// A bridge from PCIe has its own link. Its figure is for one direction, whereas that of a
		// parallel bus is for both together: NICs that only send or only receive get no more. It
		// counts only for PCI-X, which loses as little of its rate as PCIe does: what conventional
		// PCI delivers passes any such link.
		if l, ok := m.readLink(at, config); ok {
			if s.Kind == "pci-x" {
				s.limit(laneRate(l.speed)*float64(l.width), at)
			}
			return
		}
		above := m.readConfig(parent(at))
		if config == nil || above == nil {
			continue
		}
		width, _, _ := secondaryBus(above)
		if x := capability(config, capabilityPCIX); len(x) >= 8 && binary.LittleEndian.Uint32(x[4:])&pcix64Bits == 0 {
			width = 32 // the upper side of this bridge
		}
		transfers, isX := secondaryTransfers(above)
		if !isX {
			transfers = pciClock
			if binary.LittleEndian.Uint16(above[configSecondaryStatus:])&binary.LittleEndian.Uint16(
				config[configStatus:])&status66MHz != 0 {
				transfers = 2 * pciClock
			}
		}
		s.limit(float64(width)*transfers, parent(at))
	}
}

// limit records that a bridge carries less than the limit so far. 0 means not known.
func (s *Slot) limit(bitsPerSecond float64, bridge string) {
	if bitsPerSecond > 0 && bitsPerSecond < s.CapacityBitsPerSec {
		s.CapacityBitsPerSec, s.LimitedBy = bitsPerSecond, path.Base(bridge)
	}
}

// clockHertz returns the clock in hertz for a name in MHz: 33, 66 and 133 are thirds of 100 MHz.
func clockHertz(mhz float64) float64 {
	switch mhz {
	case 33:
		return pciClock
	case 66:
		return 2 * pciClock
	case 133:
		return 4 * pciClock
	}
	return mhz * 1e6
}

// hasExpress reports whether any device of this machine has a PCIe link.
func (m Machine) hasExpress() bool {
	names, _ := m.Tree.List("sys/bus/pci/devices") // An unreadable list proves nothing either way.
	for _, name := range names {
		dir := "sys/bus/pci/devices/" + name
		if m.Tree.text(dir+"/max_link_width") != "" {
			return true
		}
		if capability(m.readConfig(dir), capabilityPCIe) != nil {
			return true
		}
	}
	return false
}

// provenConventional reports whether a device is proven not to be PCIe. A missing link in sysfs
// proves nothing before Linux 4.13, and 64 bytes of configuration space do not reach the PCIe
// capability. But a PCIe device always has a list of capabilities, so a device without one is not
// PCIe.
func (m Machine) provenConventional(config []byte) bool {
	if config == nil || capability(config, capabilityPCIe) != nil {
		return false
	}
	none := binary.LittleEndian.Uint16(config[configStatus:])&statusCapabilities == 0
	return none || len(config) > headerSize || m.ShowsLinks
}

// allFast reports whether every other device on the bus supports 66 MHz. A device with unreadable
// configuration counts as slow: the lower figure promises nothing.
func (m Machine) allFast(device string, fast func([]byte, int) bool) bool {
	for _, name := range m.neighbours(device) {
		if !fast(m.readConfig(parent(device)+"/"+name), configStatus) {
			return false
		}
	}
	return true
}

// neighbours lists the other devices on the same parallel bus.
func (m Machine) neighbours(device string) []string {
	self := path.Base(device)
	names, _ := m.Tree.List(parent(device)) // Without a list no device is known to share the bus.
	return slices.DeleteFunc(names, func(name string) bool { return name == self || !isPCIAddress(name) })
}

// slotTransfers searches for the device among the slots that a hot-plug or slot driver knows
// (/sys/bus/pci/slots/NAME/address is "0000:02:01", without a function, because a slot holds the
// whole card). Most machines have no such driver for their parallel bus. The results are transfers
// per second.
func (m Machine) slotTransfers(device string) (now, best float64, isX, ok bool) {
	slot, _, _ := strings.Cut(path.Base(device), ".")
	names, err := m.Tree.List("sys/bus/pci/slots")
	if err != nil {
		return 0, 0, false, false
	}
	for _, name := range names {
		dir := "sys/bus/pci/slots/" + name
		if m.Tree.text(dir+"/address") != slot {
			continue
		}
		if now, isX, ok = parseSlotSpeed(m.Tree.text(dir + "/cur_bus_speed")); ok {
			best, _, _ = parseSlotSpeed(m.Tree.text(dir + "/max_bus_speed"))
			return now, best, isX, true
		}
	}
	return 0, 0, false, false
}

// parseSlotSpeed returns transfers per second for "33 MHz PCI", "133 MHz PCI-X", "133 MHz PCI-X
// 266" (drivers/pci/slot.c). The second number is that of PCI-X 2.0: 266 is two transfers per
// clock, 533 is four. ok is false for the forms of PCIe and AGP.
func parseSlotSpeed(text string) (transfers float64, isX, ok bool) {
	number, rest, found := strings.Cut(text, " MHz PCI")
	if !found {
		return 0, false, false
	}
	mhz, err := strconv.ParseFloat(number, 64)
	if err != nil || !(mhz > 0 && mhz <= 1000) {
		return 0, false, false
	}
	transfers = clockHertz(mhz)
	switch rest {
	case "-X 266":
		transfers *= 2
	case "-X 533":
		transfers *= 4
	}
	return transfers, strings.HasPrefix(rest, "-X"), true
}
