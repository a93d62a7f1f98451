package sample

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/nl/ethtool"
)

// driverOf returns the name of the driver. /sys shows it without waking the device; if /sys shows
// another namespace, ethtool is asked.
func (s *Sampler) driverOf(k *link, n *nl.LinkCounters) string {
	if !k.hardware {
		return n.Kind
	}
	if s.shows(n) {
		if target, err := os.Readlink("/sys/class/net/" + n.Name + "/device/driver"); err == nil {
			return filepath.Base(target)
		}
	}
	if k.driver != "" || s.asleep(n) {
		return k.driver
	}
	d, err := ethtool.New(s.client).Driver(n.Name)
	if err != nil {
		return ""
	}
	return d.Driver
}

// speedOf asks for the speed of a link. Without a link the speed is 0, and a sleeping device has no
// link.
func (s *Sampler) speedOf(k *link, n *nl.LinkCounters) float64 {
	if !k.up || n.Loopback || s.asleep(n) {
		return 0
	}
	speed, _, err := ethtool.New(s.client).LinkMode(n.Name)
	if err != nil {
		return 0
	}
	return speed
}

// shows reports whether /sys shows this interface, and not one with the same name in another
// network namespace.
func (s *Sampler) shows(n *nl.LinkCounters) bool {
	b, err := os.ReadFile("/sys/class/net/" + n.Name + "/ifindex")
	return err == nil && strings.TrimSpace(string(b)) == strconv.Itoa(n.Index)
}

// asleep reports whether the device behind an interface, one below it or a bridge above it is
// powered down until it is needed (package host, "Sleep"): asking would wake it.
func (s *Sampler) asleep(n *nl.LinkCounters) bool {
	for range 8 { // a VLAN of a bond of cards; the kernel refuses cycles
		k := s.links.byIndex[n.Index]
		if !k.powerKnown {
			k.power, k.powerKnown = powerOf(n.Name), true
		}
		for _, name := range k.power {
			f, err := openFile(name)
			if err != nil {
				continue
			}
			b, err := f.read(s.buf)
			f.close()
			if err == nil && (bytes.HasPrefix(b, []byte("suspended")) || bytes.HasPrefix(b, []byte("suspending"))) {
				return true
			}
		}
		below := s.links.find(n.ParentIndex)
		if below == nil || nl.IsPair(n.Kind) {
			return false
		}
		n = below
	}
	return false
}

func (l *links) find(index int) *nl.LinkCounters {
	for i := range l.now {
		if l.now[i].Index == index {
			return &l.now[i]
		}
	}
	return nil
}

// powerOf returns the files that show whether the device behind an interface sleeps, or one above
// it. For a name of another network namespace they are those of another device, or none.
func powerOf(name string) []string {
	device, err := filepath.EvalSymlinks("/sys/class/net/" + name + "/device")
	if err != nil {
		return nil
	}
	var files []string
	for dir := device; strings.HasPrefix(dir, "/sys/devices/"); dir = filepath.Dir(dir) {
		// An interface of a USB device has a state of its own, which does not show the power state
		// of the device above it.
		if _, err := os.Stat(dir + "/bInterfaceNumber"); err == nil {
			continue
		}
		if b, err := os.ReadFile(dir + "/power/runtime_status"); err == nil &&
			strings.TrimSpace(string(b)) != "unsupported" {
			files = append(files, dir+"/power/runtime_status")
		}
	}
	return files
}
