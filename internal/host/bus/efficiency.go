package bus

import (
	"fmt"
	"slices"
	"strings"
)

// The shares of a bus's nominal rate that cards get. Those without a formula are rounded-down
// experience, not laws: cards differ by a tenth. They only have to show whether a bus can be the
// bottleneck at all, which is mostly a matter of factors of two.
const (
	// pciEfficiency: arbitration, address phases and wait states leave about 80 of 133 MB/s of
	// conventional PCI.
	pciEfficiency = 0.60
	// pcixEfficiency: split transactions free the bus while a target prepares its answer.
	pcixEfficiency = 0.85
	// expressRest is the share of a PCIe link left, besides packet headers, by acknowledgements,
	// flow control and the card's own descriptors.
	expressRest = 0.93
	// usb2Efficiency is 13 bulk packets of 512 bytes in each of 8000 micro-frames per second, at
	// 480 Mb/s (USB 2.0, table 5-10).
	usb2Efficiency = 13 * 512 * 8 * 8000 / 480e6
	// usb3Efficiency is about 400 of the 500 MB/s that 5 Gb/s carries after coding.
	usb3Efficiency = 0.80
	// eisaEfficiency: an ordinary cycle takes two clocks where a burst takes one (EISA 3.12).
	eisaEfficiency = 0.50
	// isa16Efficiency: an ordinary 16-bit memory cycle takes three clocks where one without wait
	// states takes two.
	isa16Efficiency = 2.0 / 3
	// isa8Efficiency: an ordinary 8-bit memory cycle takes six clocks where one without wait states
	// takes three.
	isa8Efficiency = 3.0 / 6
)

// expressOverhead is the overhead of a PCIe packet in bytes: header with a 64-bit address 16,
// check sequence 4, sequence number and framing 4 (PCIe 5.0 §2.2.1, §3.6, §4.2).
const expressOverhead = 16 + 4 + 4

// AssumedPayload is the largest payload of a PCIe packet in bytes that is assumed if it is not
// known. Root ports of PCs and servers accept 256; every device accepts 128.
const AssumedPayload = 256

// Efficiency returns the share of its nominal rate that a NIC gets in s, with the reason.
// maxPayload is the largest payload of a PCIe packet in bytes; 0: not known. ok is false for a kind
// of bus without known figures.
func (s Slot) Efficiency(maxPayload int) (ratio float64, why string, ok bool) {
	switch s.Kind {
	case "pcie":
		assumed := ""
		if maxPayload <= 0 {
			maxPayload, assumed = AssumedPayload, ", assumed"
		}
		p := float64(maxPayload)
		return p / (p + expressOverhead) * expressRest,
			fmt.Sprintf("%d / (%d + %d) for packet headers (MPS%s; PCIe 5.0 §2.2) × %.2f for flow control "+
				"and descriptors", maxPayload, maxPayload, expressOverhead, assumed, expressRest), true
	case "pci-x":
		return pcixEfficiency,
			"shared by both directions and all its cards, less arbitration and split transactions (PCI-X 2.0)", true
	case "pci":
		return pciEfficiency,
			"shared by both directions and all its cards, less arbitration and wait states (seen: 80 of 133 MB/s)", true
	case "eisa":
		return eisaEfficiency, "ordinary cycles of two clocks (EISA 3.12)", true
	case "isa":
		if s.Width == 8 {
			return isa8Efficiency, "ordinary memory cycles of six clocks", true
		}
		return isa16Efficiency, "ordinary memory cycles of three clocks", true
	case "usb":
		if s.CapacityBitsPerSec <= 480e6 {
			return usb2Efficiency, "bulk transfers, 13 packets of 512 bytes in each micro-frame (USB 2.0, table 5-10)",
				true
		}
		return usb3Efficiency, "bulk transfers (seen: 400 of 500 MB/s)", true
	}
	return 0, "", false
}

// ISAClock is the highest clock of an ISA or EISA bus by the standard, in hertz. Boards of the time
// allowed more, but then some cards stopped working.
const ISAClock = 25e6 / 3

// eisaRate is a burst of 32 bits in every clock, in bits per second.
const eisaRate = 32 * ISAClock

// ISARate returns the nominal rate of an ISA bus in bits per second, with cycles that have no wait
// states: three clocks for 8 bits, two for 16. It returns 0 for other widths, which do not exist.
func ISARate(width int, clockHertz float64) float64 {
	switch width {
	case 8:
		return 8 * clockHertz / 3
	case 16:
		return 16 * clockHertz / 2
	}
	return 0
}

// SharedMemoryRate returns what a card with memory of its own delivers on such a bus: it first
// receives a frame, then the processor copies it, so the times add up. wire is the payload rate of
// the network, copy that of the bus, both in the unit of the result. From the figures of Ethernet
// and ISA alone it reproduces the table of the field notes (an 8-bit WD8003 at 6.7 to 26.7 MHz: 740
// to 1075 kB/s) within a twentieth.
func SharedMemoryRate(wire, copy float64) float64 {
	if !(wire > 0) || !(copy > 0) {
		return 0
	}
	return 1 / (1/wire + 1/copy)
}

// Nominal returns a slot of that kind as its standard has it, for arithmetic without a machine,
// with the formula of its capacity. Width is bits of a parallel bus, lanes of PCIe, and the
// generation of USB (2 or 3); transfers is the clock in hertz, for PCI-X 2.0 times the transfers of
// a clock, and for PCIe the transfers per second of a lane. Zero is what is usual: 32 bits at 33
// MHz, 64 bits at 133 MHz of PCI-X, eight lanes of PCIe 3. It refuses kinds and widths that do not
// exist.
func Nominal(kind string, width int, transfers float64) (s Slot, formula string, err error) {
	usual, known := map[string]struct {
		widths    []int // the first is the usual one
		transfers float64
	}{
		"isa": {[]int{16, 8}, ISAClock}, "eisa": {[]int{32}, ISAClock}, "pci": {[]int{32, 64}, pciClock},
		"pci-x": {[]int{64, 32}, 4 * pciClock}, "pcie": {[]int{8, 4, 2, 1, 12, 16, 32}, 8e9},
		"usb": {[]int{3, 2}, 0},
	}[kind]
	if !known {
		return Slot{}, "", fmt.Errorf("%q: no kind of bus; isa, eisa, pci, pci-x, pcie or usb", kind)
	}
	if width == 0 {
		width = usual.widths[0]
	}
	if !slices.Contains(usual.widths, width) {
		return Slot{}, "", fmt.Errorf("%s with a width of %d: the widths are %s", kind, width,
			strings.Trim(strings.ReplaceAll(fmt.Sprint(usual.widths), " ", ", "), "[]"))
	}
	if transfers <= 0 {
		transfers = usual.transfers
	}
	s = Slot{Kind: kind, Width: width}
	mega := transfers / 1e6
	switch kind {
	case "isa":
		clocks := map[int]int{8: 3, 16: 2}[width]
		s.CapacityBitsPerSec = ISARate(width, transfers)
		formula = fmt.Sprintf("%d bits × %.4g MHz / %d clocks of a cycle", width, mega, clocks)
	case "pcie":
		s.SpeedGigatransfers = transfers / 1e9
		s.CapacityBitsPerSec = laneRate(s.SpeedGigatransfers) * float64(width)
		formula = fmt.Sprintf("%d lanes × %g GT/s × line coding, each direction", width, s.SpeedGigatransfers)
	case "usb":
		s.CapacityBitsPerSec = map[int]float64{2: 480e6, 3: 4e9}[width]
		formula = map[int]string{2: "480 Mb/s of high speed", 3: "5 Gb/s × 8/10 of line coding"}[width]
	default:
		s.CapacityBitsPerSec, s.Megatransfers = float64(width)*transfers, mega
		formula = fmt.Sprintf("%d bits × %.4g million transfers per second", width, mega)
	}
	return s, formula, nil
}
