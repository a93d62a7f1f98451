package hazard

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/host/moderation"
)

// Port is one network port of a host.
type Port struct {
	Device string // eth0
	Driver string // e1000
	PCIID  string // vendor and device: 8086:1075
	Slot   string // PCI address: 0000:02:01.0
}

// card returns the port as package moderation knows it, on a host with the given number of ports of
// its driver.
func (p Port) card(ports int) moderation.Card {
	return moderation.Card{Driver: moderation.Driver(p.Driver), Ports: ports,
		Controller: moderation.ControllerOf(p.PCIID)}
}

// Here returns the ports of this host in the order of their PCI addresses; none where sysfs does
// not show them.
func Here() []Port { return in("/sys/class/net") }

// in reads the ports below a directory like /sys/class/net.
func in(dir string) []Port {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // not Linux, or hidden: nothing is known about any card
	}
	var all []Port
	for _, e := range entries {
		device := filepath.Join(dir, e.Name(), "device")
		driver, err := os.Readlink(filepath.Join(device, "driver"))
		if err != nil {
			continue // not a card
		}
		p := Port{Device: e.Name(), Driver: filepath.Base(driver)}
		vendor, model := hexFile(filepath.Join(device, "vendor")), hexFile(filepath.Join(device, "device"))
		if vendor != "" && model != "" {
			p.PCIID = vendor + ":" + model
		}
		if slot, err := filepath.EvalSymlinks(device); err == nil {
			p.Slot = filepath.Base(slot)
		}
		all = append(all, p)
	}
	sorting.StableFunc(all, func(a, b Port) int { return strings.Compare(a.Slot, b.Slot) })
	return all
}

// hexFile returns the digits of a file like "0x8086\n", or "".
func hexFile(name string) string {
	b, err := os.ReadFile(name)
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(strings.TrimSpace(string(b)), "0x")
}
