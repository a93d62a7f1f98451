package ceiling

import (
	"fmt"
	"strings"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/bus"
)

// isaWire is the Ethernet that cards of ISA are for, in bits per second.
const isaWire = 10e6

// ofBus returns the rate that a card gets in its slot. The figure for PCIe is per direction, the
// others are for both together. A shared bus is reported but not divided, because the load of the
// neighbours is not known.
func ofBus(s *host.Snapshot, dev *host.Interface) (Rate, bool) {
	b := dev.Bus
	if b == nil || NominalSpeed(s, dev) {
		return Rate{}, false
	}
	nominal, width := b.CapacityBitsPerSec, b.Width
	if b.Kind == "isa" && nominal == 0 {
		// The bus shows neither width nor clock. The maximum of the standard bounds every card.
		width = 16
		nominal = bus.ISARate(width, bus.ISAClock)
	}
	payload := 0
	if dev.Card != nil {
		payload = dev.Card.PayloadBytes
	}
	share, why, ok := bus.Slot{Kind: b.Kind, Width: width, CapacityBitsPerSec: nominal}.Efficiency(payload)
	if nominal <= 0 || !ok {
		return Rate{}, false
	}
	var what string
	switch b.Kind {
	case "pcie":
		what = fmt.Sprintf("PCIe x%d at %g GT/s, each direction", b.Width, b.SpeedGigatransfers)
	case "pci":
		what = fmt.Sprintf("conventional PCI, %d bits wide", b.Width)
	case "pci-x":
		what = fmt.Sprintf("PCI-X, %d bits wide", b.Width)
	case "eisa":
		what = "EISA, 32 bits at 8.33 MHz"
	case "isa":
		// The wire is Ethernet at 10 Mb/s in full frames; no card of ISA is known to show its speed.
		own := bus.SharedMemoryRate(isaWire*GoodputRatio(1500, false, false), nominal*share)
		what = fmt.Sprintf("ISA, %d bits at 8.33 MHz, the most it can be; a card of 8 bits gets a quarter, "+
			"and one that receives into memory of its own before it is copied delivers %s of TCP payload (1 / (1/wire + 1/bus))",
			width, unit.BitRate(own))
	default:
		what = strings.ToUpper(b.Kind)
	}
	c := Rate{
		Name:       "bus:" + dev.Name,
		BitsPerSec: nominal * share,
		Why:        fmt.Sprintf("%s nominal × %.2f: %s; %s", unit.BitRate(nominal), share, what, why),
	}
	if b.LimitedBy != "" {
		c.Why += "; the narrowest link is above the card, at " + b.LimitedBy
	}
	if n := len(b.SharedWith); n > 0 {
		c.Why += "; shared with " + strings.Join(b.SharedWith, ", ")
	}
	return c, true
}
