package host

import (
	"encoding/binary"
	"path"
	"slices"
	"strconv"
	"strings"
)

// The clock of conventional PCI in hertz: 33⅓ MHz, doubled and so on for 66, 100 and 133 MHz.
const pciClock = 100e6 / 3

// devicePath gives the place of an interface's device in the tree of buses. Where sysfs shows another namespace the address that the driver tells is
// looked for: /sys/bus is not divided by network namespaces.
func devicePath(src *source, name, address string, own bool) string {
	if own {
		real, _ := src.resolve("sys/class/net/" + name + "/device")
		return real
	}
	if address == "" || strings.ContainsAny(address, "/") {
		return ""
	}
	for _, bus := range []string{"pci", "virtio", "usb", "platform", "vmbus", "xen"} {
		if real, ok := src.resolve("sys/bus/" + bus + "/devices/" + address); ok {
			return real
		}
	}
	return ""
}

// readBus tells where a device sits. guest: in a virtual machine the bus is an imitation and has no capacity, except where PCIe
// link attributes tell of a card passed through.
func readBus(src *source, device string, guest bool) *Bus {
	if device == "" {
		return nil
	}
	target, _ := src.link(device + "/subsystem")
	kind := target[strings.LastIndexByte(target, '/')+1:]
	b := &Bus{Kind: kind, Address: path.Base(device)}
	switch kind {
	case "pci":
		readPCI(src, device, b, guest)
	case "usb":
		readUSB(src, device, b)
	case "pnp":
		b.Kind = "isa"
	case "virtio":
		// The PCI function below it is the hypervisor's imitation; its address is what people know the card by.
		if up := parent(device); strings.Contains(path.Base(up), ":") {
			b.Address = path.Base(up)
		}
	case "":
		return nil
	}
	return b
}

// readPCI tells PCIe, PCI-X and conventional PCI apart and finds what the way from the card to the processor carries.
func readPCI(src *source, device string, b *Bus, guest bool) {
	// A virtual function has no link of its own: it uses that of the card.
	if card, ok := src.resolve(device + "/physfn"); ok {
		device = card
	}
	config := readConfig(src, device)
	if link, ok := readPCIeLink(src, device, config); ok {
		b.Kind = "pcie"
		readPCIePath(src, device, link, b)
		b.SharedWith = functions(src, device)
		return
	}
	if guest {
		return
	}
	readConventional(src, device, config, b)
}

// pcieLink is one PCIe link, transfers per second and lanes, as negotiated and as both of its ends could.
type pcieLink struct {
	speed, maxSpeed float64 // GT/s; 0: unknown
	width, maxWidth int
}

// readPCIeLink reads {current,max}_link_{speed,width} (sysfs since Linux 4.13), or else the PCI Express capability of the configuration space,
// which root may read. False: not PCIe, or without a link (integrated in the root complex), or one that says nothing.
func readPCIeLink(src *source, device string, config []byte) (pcieLink, bool) {
	var l pcieLink
	l.speed = parseTransfers(src.optional(device + "/current_link_speed"))
	l.maxSpeed = parseTransfers(src.optional(device + "/max_link_speed"))
	if n, ok := src.number(device + "/current_link_width"); ok {
		l.width = laneCount(n)
	}
	if n, ok := src.number(device + "/max_link_width"); ok {
		l.maxWidth = laneCount(n)
	}
	if l.speed > 0 && l.width > 0 {
		return l, true
	}
	return linkFromConfig(config)
}

// laneCount refuses the numbers that a device off the bus answers (all ones) and link widths that do not exist.
func laneCount(n int64) int {
	if n < 1 || n > 32 {
		return 0
	}
	return int(n)
}

// parseTransfers reads "8.0 GT/s PCIe", "2.5 GT/s" or "Unknown speed", in GT/s.
func parseTransfers(text string) float64 {
	number, _, ok := strings.Cut(text, " GT/s")
	if !ok {
		return 0
	}
	gt, err := strconv.ParseFloat(number, 64)
	if err != nil || !(gt > 0 && gt <= 1024) {
		return 0
	}
	return gt
}

// laneRate is what one lane carries in bits per second after line coding: 8b/10b up to 5 GT/s, 128b/130b from 8 to 32 GT/s; from 64 GT/s on
// (PCIe 6.0) flits of 256 bytes of which 242 are packets.
func laneRate(gigatransfers float64) float64 {
	switch {
	case gigatransfers <= 5:
		return gigatransfers * 1e9 * 8 / 10
	case gigatransfers <= 32:
		return gigatransfers * 1e9 * 128 / 130
	}
	return gigatransfers * 1e9 * 242 / 256
}

// readPCIePath finds the narrowest link between card and root, now and at best. A link has two ends: what it could do is what both can.
func readPCIePath(src *source, device string, card pcieLink, b *Bus) {
	b.Width, b.SpeedGigatransfers = card.width, card.speed
	b.CapacityBitsPerSec = laneRate(card.speed) * float64(card.width)

	below := card
	for up := parent(device); isPCIAddress(path.Base(up)); up = parent(up) {
		port, ok := readPCIeLink(src, up, readConfig(src, up))
		if !ok {
			break
		}
		best := laneRate(min(positive(below.maxSpeed, below.speed), positive(port.maxSpeed, port.speed))) *
			float64(min(positive(below.maxWidth, below.width), positive(port.maxWidth, port.width)))
		if b.MaxCapacityBitsPerSec == 0 || best < b.MaxCapacityBitsPerSec {
			b.MaxCapacityBitsPerSec = best
		}
		// The port at the upper end of the link below repeats that link's figures; an upstream port of a switch has one of its own.
		if now := laneRate(port.speed) * float64(port.width); now < b.CapacityBitsPerSec {
			b.CapacityBitsPerSec, b.LimitedBy = now, path.Base(up)
		}
		below = port
	}
	if b.MaxCapacityBitsPerSec == 0 && card.maxSpeed > 0 && card.maxWidth > 0 {
		b.MaxCapacityBitsPerSec = laneRate(card.maxSpeed) * float64(card.maxWidth)
	}
	b.MaxCapacityBitsPerSec = max(b.MaxCapacityBitsPerSec, b.CapacityBitsPerSec)
}

// positive gives a unless it is unknown.
func positive[T int | float64](a, otherwise T) T {
	if a > 0 {
		return a
	}
	return otherwise
}

// isPCIAddress tells "0000:03:00.0" from "pci0000:00" and "virtio2".
func isPCIAddress(name string) bool {
	return strings.Count(name, ":") == 2 && strings.Count(name, ".") == 1
}

// functions lists the other functions of the same card: two ports of a card share its link.
func functions(src *source, device string) []string {
	self := path.Base(device)
	slot, _, _ := strings.Cut(self, ".")
	siblings, _ := src.list(parent(device)) // Without a list nothing is known to be shared.
	var others []string
	for _, name := range siblings {
		if name != self && isPCIAddress(name) && strings.HasPrefix(name, slot+".") {
			others = append(others, name)
		}
	}
	return others
}

// Where the configuration space of a PCI device keeps what we read (PCI Local Bus 3.0 §6.1, PCI-X 2.0 §7.2, PCIe 5.0 §7.5).
const (
	configStatus          = 0x06
	configSecondaryStatus = 0x1e // of a bridge
	configCapabilities    = 0x34

	statusCapabilities = 1 << 4
	status66MHz        = 1 << 5

	capabilityPCIX = 0x07
	capabilityPCIe = 0x10
)

// readConfig reads the configuration space: 64 bytes for everybody, all of it for root. Reading may wake the device from power
// saving; it changes nothing. Copied, because other files are read while it is looked at.
func readConfig(src *source, device string) []byte {
	b, err := src.read(device + "/config")
	if err != nil || len(b) < 64 {
		return nil
	}
	// All ones: the device does not answer.
	if binary.LittleEndian.Uint32(b) == 0xffffffff {
		return nil
	}
	return slices.Clone(b)
}

// capability finds a capability in the linked list of a configuration space and gives it from its first byte on.
func capability(config []byte, id byte) []byte {
	if len(config) <= 64 || binary.LittleEndian.Uint16(config[configStatus:])&statusCapabilities == 0 {
		return nil
	}
	at := int(config[configCapabilities] &^ 3)
	// A list of more than 48 entries cannot fit and is a loop.
	for range 48 {
		if at < 64 || at+2 > len(config) {
			return nil
		}
		if config[at] == id {
			return config[at:]
		}
		at = int(config[at+1] &^ 3)
	}
	return nil
}

// linkSpeeds are the codes of the PCI Express link registers, in GT/s.
var linkSpeeds = [...]float64{1: 2.5, 2: 5, 3: 8, 4: 16, 5: 32, 6: 64}

// linkFromConfig reads Link Capabilities (at 0x0c) and Link Status (at 0x12) of the PCI Express capability: speed in bits 3:0, width in 9:4.
func linkFromConfig(config []byte) (pcieLink, bool) {
	c := capability(config, capabilityPCIe)
	if len(c) < 0x14 {
		return pcieLink{}, false
	}
	decode := func(v uint32) (float64, int) {
		code := v & 0xf
		if int(code) >= len(linkSpeeds) {
			return 0, 0
		}
		return linkSpeeds[code], laneCount(int64(v >> 4 & 0x3f))
	}
	var l pcieLink
	l.maxSpeed, l.maxWidth = decode(binary.LittleEndian.Uint32(c[0x0c:]))
	l.speed, l.width = decode(uint32(binary.LittleEndian.Uint16(c[0x12:])))
	return l, l.speed > 0 && l.width > 0
}

// readConventional tells the capacity of a shared parallel bus. sysfs has no clock for it, so in this order: the slot driver's word
// ("66 MHz PCI-X" in /sys/bus/pci/slots/*/cur_bus_speed); the PCI-X capability; the 66 MHz bits of bridge and all neighbours, since one slow card
// pulls the whole bus down (M66EN). A device that is on the root bus of a PCIe machine without a link is part of the chipset, where
// none of these figures holds: it gets no capacity.
func readConventional(src *source, device string, config []byte, b *Bus) {
	bridge := parent(device)
	behind := isPCIAddress(path.Base(bridge))
	if src.exists(device+"/max_link_width") || !provenConventional(src, config) || !behind && hasPCIe(src) {
		return
	}
	width, mhz, maxMHz := 32, 33.0, 33.0
	fast := func(c []byte, at int) bool {
		return c != nil && binary.LittleEndian.Uint16(c[at:])&status66MHz != 0
	}
	if fast(config, configStatus) {
		maxMHz = 66
		if behind && fast(readConfig(src, bridge), configSecondaryStatus) && allFast(src, device, fast) {
			mhz = 66
		}
	}
	if x := capability(config, capabilityPCIX); len(x) >= 8 {
		status := binary.LittleEndian.Uint32(x[4:])
		if status&(1<<16) != 0 {
			width = 64
		}
		maxMHz = 66
		if status&(1<<17) != 0 {
			maxMHz = 133
		}
		if now, ok := secondaryClock(readConfig(src, bridge)); behind && ok {
			mhz, b.Kind = now, "pci-x"
		}
	}
	if now, best, isX, ok := slotClock(src, device); ok {
		mhz = now
		if best > 0 {
			maxMHz = min(max(maxMHz, now), best)
		}
		if isX {
			b.Kind = "pci-x"
		}
	}
	b.Width = width
	b.CapacityBitsPerSec = parallelRate(width, mhz)
	b.MaxCapacityBitsPerSec = max(parallelRate(width, maxMHz), b.CapacityBitsPerSec)
	b.SharedWith = neighbours(src, device)
}

// parallelRate is width × clock in bits per second; the names 33, 66 and 133 MHz stand for thirds of 100 MHz.
func parallelRate(width int, mhz float64) float64 {
	switch mhz {
	case 33:
		return float64(width) * pciClock
	case 66:
		return float64(width) * pciClock * 2
	case 133:
		return float64(width) * pciClock * 4
	}
	return float64(width) * mhz * 1e6
}

// hasPCIe tells whether anything in this machine has a PCIe link.
func hasPCIe(src *source) bool {
	names, _ := src.list("sys/bus/pci/devices") // An unreadable list proves nothing either way.
	for _, name := range names {
		dir := "sys/bus/pci/devices/" + name
		if src.optional(dir+"/max_link_width") != "" {
			return true
		}
		if capability(readConfig(src, dir), capabilityPCIe) != nil {
			return true
		}
	}
	return false
}

// provenConventional asks for more than the absence of a PCIe link in sysfs, which a kernel before 4.13 does not show, or of its capability, which
// 64 bytes of configuration space do not reach.
func provenConventional(src *source, config []byte) bool {
	if config == nil || capability(config, capabilityPCIe) != nil {
		return false
	}
	none := binary.LittleEndian.Uint16(config[configStatus:])&statusCapabilities == 0
	return none || len(config) > 64 || kernelAtLeast(src.optional("proc/sys/kernel/osrelease"), 4, 13)
}

// allFast tells whether every device on the bus can do 66 MHz.
func allFast(src *source, device string, fast func([]byte, int) bool) bool {
	for _, name := range neighbours(src, device) {
		if !fast(readConfig(src, parent(device)+"/"+name), configStatus) {
			return false
		}
	}
	return true
}

// neighbours lists the other devices on the same parallel bus.
func neighbours(src *source, device string) []string {
	self := path.Base(device)
	names, _ := src.list(parent(device)) // Without a list nobody is known to share the bus.
	return slices.DeleteFunc(names, func(name string) bool { return name == self || !isPCIAddress(name) })
}

// secondaryClock reads bits 8:6 of the secondary status in a PCI-X bridge's capability: the mode that its lower bus runs in. 0 is conventional.
func secondaryClock(bridge []byte) (mhz float64, ok bool) {
	x := capability(bridge, capabilityPCIX)
	if len(x) < 4 {
		return 0, false
	}
	switch binary.LittleEndian.Uint16(x[2:]) >> 6 & 7 {
	case 1:
		return 66, true
	case 2:
		return 100, true
	case 3:
		return 133, true
	}
	return 0, false
}

// slotClock looks the device up among the slots that a slot driver knows (/sys/bus/pci/slots/NAME/address is "0000:02:01").
func slotClock(src *source, device string) (now, best float64, isX, ok bool) {
	slot, _, _ := strings.Cut(path.Base(device), ".")
	names, err := src.list("sys/bus/pci/slots")
	if err != nil {
		return 0, 0, false, false
	}
	for _, name := range names {
		dir := "sys/bus/pci/slots/" + name
		if src.optional(dir+"/address") != slot {
			continue
		}
		if now, isX, ok = parseSlotSpeed(src.optional(dir + "/cur_bus_speed")); ok {
			best, _, _ = parseSlotSpeed(src.optional(dir + "/max_bus_speed"))
			return now, best, isX, true
		}
	}
	return 0, 0, false, false
}

// parseSlotSpeed reads "33 MHz PCI", "133 MHz PCI-X", "133 MHz PCI-X 266" (drivers/pci/slot.c) in MHz. PCIe and AGP answer in other words and
// are refused.
func parseSlotSpeed(text string) (mhz float64, isX, ok bool) {
	number, rest, found := strings.Cut(text, " MHz PCI")
	if !found {
		return 0, false, false
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || !(n > 0 && n <= 1000) {
		return 0, false, false
	}
	return n, strings.HasPrefix(rest, "-X"), true
}

// readUSB reads the speed of the USB device that an interface belongs to, "480" or "5000" Mb/s: 5 Gb/s is before 8b/10b coding, 10 and
// 20 Gb/s before 128b/132b.
func readUSB(src *source, device string, b *Bus) {
	for dir := device; dir != ""; dir = parent(dir) {
		text := src.optional(dir + "/speed")
		if text == "" {
			continue
		}
		mbps, err := strconv.ParseFloat(text, 64)
		if err != nil || !(mbps > 0 && mbps <= 1e6) {
			return
		}
		b.Address = path.Base(dir)
		switch {
		case mbps <= 480:
			b.CapacityBitsPerSec = mbps * 1e6
		case mbps == 5000:
			b.CapacityBitsPerSec = mbps * 1e6 * 8 / 10
		default:
			b.CapacityBitsPerSec = mbps * 1e6 * 128 / 132
		}
		return
	}
}
