package bus

import (
	"encoding/binary"
	"math"
	"testing"
)

func near(got, want, tolerance float64) bool { return math.Abs(got-want) <= tolerance*math.Abs(want) }

// TestUsableRates holds what a card gets out of every bus, in MB/s, against what is known of them.
func TestUsableRates(t *testing.T) {
	for _, c := range []struct {
		name          string
		kind          string
		width         int
		nominal       float64 // bits per second
		payload       int
		paper, usable float64 // MB/s
	}{
		{"ISA 8 bits", "isa", 8, ISARate(8, ISAClock), 0, 2.78, 1.39},
		{"ISA 16 bits", "isa", 16, ISARate(16, ISAClock), 0, 8.33, 5.56},
		{"EISA", "eisa", 0, eisaRate, 0, 33.3, 16.7},
		{"PCI 32/33", "pci", 0, 32 * pciClock, 0, 133, 80},
		{"PCI 32/66", "pci", 0, 64 * pciClock, 0, 266, 160},
		{"PCI 64/33", "pci", 0, 64 * pciClock, 0, 266, 160},
		{"PCI 64/66", "pci", 0, 128 * pciClock, 0, 532, 320},
		{"PCI-X 64/66", "pci-x", 0, 64 * clockHertz(66), 0, 533, 453},
		{"PCI-X 64/100", "pci-x", 0, 64 * clockHertz(100), 0, 800, 680},
		{"PCI-X 64/133", "pci-x", 0, 64 * clockHertz(133), 0, 1067, 907},
		{"PCI-X 64/266", "pci-x", 0, 64 * 2 * clockHertz(133), 0, 2133, 1813},
		{"PCI-X 64/533", "pci-x", 0, 64 * 4 * clockHertz(133), 0, 4267, 3627},
		{"PCIe 1 x1", "pcie", 0, laneRate(2.5), 128, 250, 196},
		{"PCIe 2 x4", "pcie", 0, 4 * laneRate(5), 256, 2000, 1700},
		{"PCIe 3 x8", "pcie", 0, 8 * laneRate(8), 0, 7877, 6697},
		{"PCIe 4 x16", "pcie", 0, 16 * laneRate(16), 512, 31508, 27990},
		{"PCIe 5 x16", "pcie", 0, 16 * laneRate(32), 512, 63015, 55981},
		{"USB 2", "usb", 0, 480e6, 0, 60, 53.2},
		{"USB 3", "usb", 0, 4e9, 0, 500, 400},
	} {
		ratio, why, ok := Slot{Kind: c.kind, Width: c.width, CapacityBitsPerSec: c.nominal}.Efficiency(c.payload)
		if !ok || why == "" || !(ratio > 0 && ratio < 1) {
			t.Errorf("%s: %v %q %v", c.name, ratio, why, ok)
		}
		if !near(c.nominal/8e6, c.paper, 0.005) || !near(c.nominal*ratio/8e6, c.usable, 0.005) {
			t.Errorf("%s: %.1f of %.1f MB/s, want %v of %v", c.name, c.nominal*ratio/8e6, c.nominal/8e6,
				c.usable, c.paper)
		}
	}
	if _, _, ok := (Slot{Kind: "virtio"}).Efficiency(0); ok {
		t.Error("an imitated bus has an efficiency")
	}
	if ISARate(32, ISAClock) != 0 {
		t.Error("there is no 32-bit ISA")
	}
	// A larger packet never costs more.
	previous := 0.0
	for payload := 128; payload <= 4096; payload *= 2 {
		ratio, _, _ := Slot{Kind: "pcie"}.Efficiency(payload)
		if ratio <= previous || ratio >= expressRest {
			t.Errorf("%d bytes: %v after %v", payload, ratio, previous)
		}
		previous = ratio
	}
}

// TestFieldNotesISA: received TCP payload of an 8-bit card on 10 Mb/s Ethernet at four clocks of
// the bus.
func TestFieldNotesISA(t *testing.T) {
	const wire = 10e6 / 8 * 1460 / 1538 // bytes of payload per second, full frames
	for _, c := range []struct{ mhz, measured float64 }{{6.7, 740e3}, {13.4, 970e3}, {20.0, 1030e3}, {26.7, 1075e3}} {
		if got := SharedMemoryRate(wire, ISARate(8, c.mhz*1e6)/8); !near(got, c.measured, 0.05) {
			t.Errorf("%v MHz: %.0f B/s, measured %.0f", c.mhz, got, c.measured)
		}
	}
	if SharedMemoryRate(0, 1) != 0 || SharedMemoryRate(1, math.NaN()) != 0 {
		t.Error("nothing is delivered over nothing")
	}
}

// TestSecondaryTransfers reads every mode of a PCI-X bridge, as pcix_bus_speed in
// drivers/pci/probe.c has them.
func TestSecondaryTransfers(t *testing.T) {
	const third = 100e6 / 3
	want := [16]float64{
		1: 2 * third, 2: 100e6, 3: 4 * third, // mode 1
		5: 2 * third, 6: 100e6, 7: 4 * third, // with error correction
		9: 4 * third, 10: 200e6, 11: 8 * third, // 266
		13: 8 * third, 14: 400e6, 15: 16 * third, // 533
	}
	for mode, transfers := range want {
		config := header(256)
		config[configStatus] |= statusCapabilities
		config[configCapabilities], config[0x40] = 0x40, capabilityPCIX
		binary.LittleEndian.PutUint16(config[0x42:], uint16(mode)<<6)
		if got, ok := secondaryTransfers(config); !near(got, transfers, 1e-12) || ok != (transfers > 0) {
			t.Errorf("mode %d: %v %v, want %v", mode, got, ok, transfers)
		}
	}
}
