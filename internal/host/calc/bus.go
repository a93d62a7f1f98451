package calc

import (
	"fmt"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/host/bus"
	"github.com/linerate/linerate/internal/host/ceiling"
)

// Bus asks what a bus carries. Width is bits of a parallel bus or lanes of PCIe. Transfers is its
// clock in hertz, or for PCIe the transfers per second of a lane; 0 is the usual one of that kind.
type Bus struct {
	Kind         string // isa, eisa, pci, pci-x, pcie, usb
	Width        int    // 0: the usual one
	Transfers    float64
	PayloadBytes int // the largest payload of a PCIe packet; 0: 256
	Link         unit.BitRate
	MTUBytes     int // 0: 1500
}

// Payloads of a PCIe packet (Max_Payload_Size of PCIe 5.0 §7.5.3.4).
const (
	leastPayload = 128
	mostPayload  = 4096
)

// leastClock is below the slowest bus of a PC: that of 1981 has 4.77 MHz. A smaller number is one
// of megahertz without its prefix.
const leastClock = 1e6

// Result returns the nominal and the usable rate, beside what the link delivers if it is given.
func (b Bus) Result() (*Result, error) {
	r := &Result{What: "bus", Formula: "usable rate of " + b.Kind + " = nominal rate × efficiency"}
	if p := b.PayloadBytes; p != 0 && (p < leastPayload || p > mostPayload) {
		return nil, fmt.Errorf("calculate bus with a payload of %d bytes: a PCIe packet has %d to %d: give --payload 256",
			p, leastPayload, mostPayload)
	}
	if c := b.Transfers; c != 0 && c < leastClock {
		return nil, fmt.Errorf("calculate bus with a clock of %g Hz: no bus is that slow: give --clock %gM", c, c)
	}
	slot, formula, err := bus.Nominal(b.Kind, b.Width, b.Transfers)
	if err != nil {
		return nil, fmt.Errorf("calculate bus: %w", err)
	}
	r.given("width", float64(b.Width), Number)
	r.given("transfers", b.Transfers, PerSecond)
	r.given("payload", float64(b.PayloadBytes), Bytes)
	r.given("link", float64(b.Link), BitsPerSecond)
	r.given("MTU", float64(b.MTUBytes), Bytes)
	share, why, ok := slot.Efficiency(b.PayloadBytes)
	if !ok {
		return nil, fmt.Errorf("calculate bus: no figures are known for %q", b.Kind)
	}
	usable := slot.CapacityBitsPerSec * share
	r.add("nominal rate", slot.CapacityBitsPerSec, BitsPerSecond, "%s", formula)
	r.add("efficiency", share, Number, "%s", why)
	r.add("usable rate", usable, BitsPerSecond, "nominal rate × efficiency")
	if b.Link > 0 {
		mtu, err := mtuOf(b.MTUBytes, leastMTU)
		if err != nil {
			return nil, err
		}
		goodput := float64(b.Link) * ceiling.GoodputRatio(mtu, false, false)
		r.add("TCP payload of the link", goodput, BitsPerSecond,
			"link × payload of a frame with MTU %d / its bytes on the wire", mtu)
		r.add("usable rate for each bit of the link", usable/float64(b.Link), Number, "usable rate / link")
		if b.Kind == "isa" {
			r.add("rate through memory on the card", bus.SharedMemoryRate(goodput, slot.CapacityBitsPerSec), BitsPerSecond,
				"1 / (1 / payload of the link + 1 / nominal rate): the card receives a frame, then the CPU copies it")
		}
	}
	return r.finish()
}
