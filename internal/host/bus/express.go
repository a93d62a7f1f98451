package bus

import (
	"path"
	"strconv"
	"strings"
)

// link is one PCIe link: transfers per second and lanes, as negotiated and as its lower end
// supports them.
type link struct {
	speed, maxSpeed float64 // GT/s; 0: unknown
	width, maxWidth int
}

// readLink reads {current,max}_link_{speed,width} (sysfs since Linux 4.13), or the PCI Express
// capability of the configuration space, which root may read. ok is false for a device that is not
// PCIe, has no link (integrated in the root complex), or shows none.
func (m Machine) readLink(device string, config []byte) (link, bool) {
	var l link
	l.speed = parseTransfers(m.Tree.text(device + "/current_link_speed"))
	l.maxSpeed = parseTransfers(m.Tree.text(device + "/max_link_speed"))
	if n, ok := m.Tree.number(device + "/current_link_width"); ok {
		l.width = laneCount(n)
	}
	if n, ok := m.Tree.number(device + "/max_link_width"); ok {
		l.maxWidth = laneCount(n)
	}
	if l.speed > 0 && l.width > 0 {
		return l, true
	}
	return linkFromConfig(config)
}

// laneCount returns 0 for the numbers that a device off the bus returns (all ones: 63, and 255 in
// sysfs) and for link widths that do not exist.
func laneCount(n int64) int {
	if n < 1 || n > 32 {
		return 0
	}
	return int(n)
}

// parseTransfers reads "8.0 GT/s PCIe" (since Linux 5.7), "8 GT/s" (before) or "Unknown speed", in
// GT/s.
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

// laneRate returns what one lane carries in bits per second after line coding: 8b/10b up to 5 GT/s,
// 128b/130b from 8 to 32 GT/s; from 64 GT/s on (PCIe 6.0) flits of 256 bytes, 242 of them for
// packets.
func laneRate(gigatransfers float64) float64 {
	switch {
	case gigatransfers <= 5:
		return gigatransfers * 1e9 * 8 / 10
	case gigatransfers <= 32:
		return gigatransfers * 1e9 * 128 / 130
	}
	return gigatransfers * 1e9 * 242 / 256
}

// readPath finds the narrowest link between card and root, now and at best. A link has two ends; it
// supports what both support.
//
// Slots can be wider than they are wired, and a switch shares its upper link, so only the whole
// path shows what arrives. A link may also run slower than it could, because it was trained badly
// or saves power; so the best is reported beside the present.
func (m Machine) readPath(device string, card link, s *Slot) {
	s.Width, s.SpeedGigatransfers = card.width, card.speed
	s.CapacityBitsPerSec = laneRate(card.speed) * float64(card.width)

	below := card
	for up := parent(device); isPCIAddress(path.Base(up)); up = parent(up) {
		port, ok := m.readLink(up, m.readConfig(up))
		if !ok {
			break
		}
		speed := min(positive(below.maxSpeed, below.speed), positive(port.maxSpeed, port.speed))
		lanes := min(positive(below.maxWidth, below.width), positive(port.maxWidth, port.width))
		if below == card && s.MaxWidth == 0 {
			s.MaxWidth, s.MaxSpeedGigatransfers = lanes, speed
		}
		best := laneRate(speed) * float64(lanes)
		if s.MaxCapacityBitsPerSec == 0 || best < s.MaxCapacityBitsPerSec {
			s.MaxCapacityBitsPerSec = best
		}
		// The port at the upper end of the link below repeats that link's figures; an upstream port
		// of a switch has its own.
		if now := laneRate(port.speed) * float64(port.width); now < s.CapacityBitsPerSec {
			s.CapacityBitsPerSec, s.LimitedBy = now, path.Base(up)
		}
		below = port
	}
	// Without a readable port above, as in a guest with a passed-through card, only the card's own
	// figures are available.
	if s.MaxCapacityBitsPerSec == 0 && card.maxSpeed > 0 && card.maxWidth > 0 {
		s.MaxCapacityBitsPerSec = laneRate(card.maxSpeed) * float64(card.maxWidth)
		s.MaxWidth, s.MaxSpeedGigatransfers = card.maxWidth, card.maxSpeed
	}
	s.MaxCapacityBitsPerSec = max(s.MaxCapacityBitsPerSec, s.CapacityBitsPerSec)
}

// positive returns a unless it is unknown.
func positive[T int | float64](a, otherwise T) T {
	if a > 0 {
		return a
	}
	return otherwise
}

// isPCIAddress reports whether name is an address like "0000:03:00.0" (domain:bus:device.function),
// in contrast to "pci0000:00", the root, and "virtio2".
func isPCIAddress(name string) bool {
	return strings.Count(name, ":") == 2 && strings.Count(name, ".") == 1
}

// functions lists the other functions of the same card: two ports of a card share its link. It does
// not find virtual functions beyond the eighth, which have other device numbers; they belong to the
// same card.
func (m Machine) functions(device string) []string {
	self := path.Base(device)
	slot, _, _ := strings.Cut(self, ".")
	siblings, _ := m.Tree.List(parent(device)) // Without a list nothing is known to be shared.
	var others []string
	for _, name := range siblings {
		if name != self && isPCIAddress(name) && strings.HasPrefix(name, slot+".") {
			others = append(others, name)
		}
	}
	return others
}
