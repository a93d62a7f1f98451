package bus

import "fmt"

// What cards get out of a bus, as shares of its nominal rate. Those without a formula are
// experience rounded down, not laws: cards differ by a tenth. What they have to be good for is the
// question whether a bus can be the bottleneck at all, and that is mostly a matter of factors of
// two.
const (
	// pciEfficiency: arbitration, address phases and wait states leave about 80 of 133 MB/s of
	// conventional PCI.
	pciEfficiency = 0.60
	// pcixEfficiency: split transactions give the bus free while a target thinks.
	pcixEfficiency = 0.85
	// expressRest is what acknowledgements, flow control and the card's own descriptors leave of a
	// PCIe link beside packet headers.
	expressRest = 0.93
	// usb2Efficiency is 13 bulk packets of 512 bytes in each of 8000 micro-frames per second, of
	// 480 Mb/s (USB 2.0, table 5-10).
	usb2Efficiency = 13 * 512 * 8 * 8000 / 480e6
	// usb3Efficiency is about 400 of the 500 MB/s that 5 Gb/s carry after coding.
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

// expressOverhead is what a PCIe packet costs beside its payload, in bytes: header with a 64-bit
// address 16, check sequence 4, sequence number and framing 4 (PCIe 5.0 §2.2.1, §3.6, §4.2).
const expressOverhead = 16 + 4 + 4

// AssumedPayload is the largest payload of a PCIe packet, in bytes, that is assumed where it is not
// known. 256 is what the root ports of PCs and servers take; every device takes 128.
const AssumedPayload = 256

// Efficiency is the share of its nominal rate that a network card gets in s, with the reason.
// maxPayload is the largest payload of a PCIe packet in bytes; 0: not known. False: nothing is
// known of that kind of bus.
func (s Slot) Efficiency(maxPayload int) (ratio float64, why string, ok bool) {
	switch s.Kind {
	case "pcie":
		assumed := ""
		if maxPayload <= 0 {
			maxPayload, assumed = AssumedPayload, ", assumed"
		}
		p := float64(maxPayload)
		return p / (p + expressOverhead) * expressRest,
			fmt.Sprintf("%d / (%d + %d) for packet headers (MPS%s; PCIe 5.0 §2.2) × %.2f for flow control and descriptors", maxPayload, maxPayload, expressOverhead, assumed, expressRest), true
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
// could be set to more, at the price of cards that no longer worked.
const ISAClock = 25e6 / 3

// eisaRate is a burst of 32 bits in every clock, in bits per second.
const eisaRate = 32 * ISAClock

// ISARate is the nominal rate of an ISA bus in bits per second, with cycles that have no wait
// states: three clocks for 8 bits, two for 16. Other widths do not exist and give 0.
func ISARate(width int, clockHertz float64) float64 {
	switch width {
	case 8:
		return 8 * clockHertz / 3
	case 16:
		return 16 * clockHertz / 2
	}
	return 0
}

// SharedMemoryRate is what a card with memory of its own on such a bus delivers when a frame is
// first received and then copied by the processor: the times add up. wire is the payload rate of
// the network, copy that of the bus, both in one unit, which is that of the answer. It gives the
// table of the field notes (an 8-bit WD8003 at 6.7 to 26.7 MHz: 740 to 1075 kB/s) within a
// twentieth, from the figures of Ethernet and ISA alone.
func SharedMemoryRate(wire, copy float64) float64 {
	if !(wire > 0) || !(copy > 0) {
		return 0
	}
	return 1 / (1/wire + 1/copy)
}
