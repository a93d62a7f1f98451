package bus

import (
	"encoding/binary"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
)

// pciClock is the clock of conventional PCI in hertz: 33⅓ MHz, doubled and so on for 66 and 133
// MHz.
const pciClock = 100e6 / 3

// readConventional tells the capacity of a shared parallel bus. sysfs has no clock for it, so in
// this order: the slot driver's word ("66 MHz PCI-X" in /sys/bus/pci/slots/*/cur_bus_speed); the
// PCI-X capability; the 66 MHz bits of bridge and all neighbours, since one slow card pulls the
// whole bus down (M66EN, PCI Local Bus 3.0, chapter 7). A device that is on the root bus of a PCIe
// machine without a link is part of the chipset, where none of these figures holds: it gets no
// capacity.
func (m Machine) readConventional(device string, config []byte, s *Slot) {
	bridge := parent(device)
	behind := isPCIAddress(path.Base(bridge))
	_, hasLink := m.Tree.Resolve(device + "/max_link_width")
	if hasLink || !m.provenConventional(config) || !behind && m.hasExpress() {
		return
	}
	// What every PCI bus can do, unless something below says more: width in bits, transfers per
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
	// PCI-X status of a device: bit 16 says that it has 64 data lines, bit 17 that it can do 133
	// MHz, bits 30 and 31 that it can take two and four transfers in a clock (PCI_X_STATUS in
	// pci_regs.h).
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
	// A card of 64 bits runs with 32 of them in the short slots of a desktop: both ends of the bus
	// have a say.
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

// millions turns transfers per second into millions of them, to the kilohertz that their names
// have: 33.333.
func millions(transfers float64) float64 { return math.Round(transfers/1e3) / 1e3 }

// narrow takes the buses above the one that a card sits on into account, up to the root or to where
// they become PCIe: data pass them all, so the narrowest of them is what arrives. What a bridge
// does not tell narrows nothing.
func (m Machine) narrow(bridge string, s *Slot) {
	for at := bridge; isPCIAddress(path.Base(at)); at = parent(at) {
		config := m.readConfig(at)
		// A bridge from PCIe has its own link. The figure is that of one direction, where a
		// parallel bus has one for both together: cards that only send or only receive get no more.
		// Of PCI-X alone, which loses as little of its rate as PCIe: what conventional PCI leaves
		// of its own passes any such link.
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

// limit notes that a bridge carries less than what has been found so far. 0 is not known.
func (s *Slot) limit(bitsPerSecond float64, bridge string) {
	if bitsPerSecond > 0 && bitsPerSecond < s.CapacityBitsPerSec {
		s.CapacityBitsPerSec, s.LimitedBy = bitsPerSecond, path.Base(bridge)
	}
}

// clockHertz is the clock that a name in MHz stands for: 33, 66 and 133 are thirds of 100 MHz.
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

// hasExpress tells whether anything in this machine has a PCIe link.
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

// provenConventional asks for more than the absence of a PCIe link in sysfs, which a kernel before
// 4.13 does not show, or of its capability, which 64 bytes of configuration space do not reach. A
// PCIe device always has a list of capabilities, so one without any is not PCIe.
func (m Machine) provenConventional(config []byte) bool {
	if config == nil || capability(config, capabilityPCIe) != nil {
		return false
	}
	none := binary.LittleEndian.Uint16(config[configStatus:])&statusCapabilities == 0
	return none || len(config) > headerSize || m.ShowsLinks
}

// allFast tells whether every other device on the bus can do 66 MHz. One whose configuration cannot
// be read counts as slow: the lower figure is the one that promises nothing.
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
	names, _ := m.Tree.List(parent(device)) // Without a list nobody is known to share the bus.
	return slices.DeleteFunc(names, func(name string) bool { return name == self || !isPCIAddress(name) })
}

// slotTransfers looks the device up among the slots that a hot-plug or slot driver knows
// (/sys/bus/pci/slots/NAME/address is "0000:02:01", without a function: a slot holds the whole
// card). Most machines have no such driver for their parallel bus. Answers are transfers per
// second.
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

// parseSlotSpeed reads "33 MHz PCI", "133 MHz PCI-X", "133 MHz PCI-X 266" (drivers/pci/slot.c) in
// transfers per second. The second number is that of PCI-X 2.0: 266 is two transfers in each clock,
// 533 is four. PCIe and AGP answer in other words and are refused.
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
