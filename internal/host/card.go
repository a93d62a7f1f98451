package host

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"path"
	"strings"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/host/bus"
	"github.com/linerate/linerate/internal/host/nicstat"
	"github.com/linerate/linerate/internal/kernel/nl/ethtool"
)

// errAsleep is returned instead of asking for what would wake a device.
var errAsleep = errors.New("the device is asleep (power/runtime_status), and asking would wake it")

// asleep reports whether the device behind an interface, or a bridge above it, is powered down
// until it is needed (Documentation/ABI/testing/sysfs-devices-power: runtime_status). Asking
// ethtool or reading the configuration space would wake it, since the kernel powers it up for the
// answer (ethnl_ops_begin, pci_config_pm_runtime_get). Inspecting a host must not change it.
func (src *source) asleep(name string) bool {
	// /sys shows one network namespace only. A device that it does not show is not known to sleep;
	// doc.go says what happens then.
	device, ok := src.Resolve("sys/class/net/" + name + "/device")
	return ok && src.suspended(device)
}

// suspended checks the device and everything above it: a device below a sleeping bridge cannot be
// reached without waking the bridge.
func (src *source) suspended(device string) bool {
	for dir := device; strings.HasPrefix(dir, "sys/devices/"); dir = path.Dir(dir) {
		// An interface of a USB device has a state of its own, which does not show the power state
		// of the device above it.
		if src.Optional(dir+"/bInterfaceNumber") != "" {
			continue
		}
		switch src.Optional(dir + "/power/runtime_status") {
		case "suspended", "suspending":
			return true
		}
	}
	return false
}

// wakeful reads for package bus, and refuses to read what would wake a sleeping device: its
// configuration space and the attributes computed from it.
func (src *source) wakeful(name string) ([]byte, error) {
	switch path.Base(name) {
	case "config", "current_link_speed", "current_link_width", "max_link_speed", "max_link_width":
		if src.suspended(path.Dir(name)) {
			return nil, &fs.PathError{Op: "read", Path: "/" + name, Err: errAsleep}
		}
	}
	return src.Read(name)
}

// readCard adds the hardware facts of sysfs to those of ethtool (sysfs-bus-pci). The PCI function
// of a virtio card is one directory up.
func readCard(src *source, m bus.Machine, device string, reported *Card) *Card {
	var c Card
	if reported != nil {
		c = *reported
	}
	id := func(dir, vendor, product string) string {
		v, p := src.Optional(dir+"/"+vendor), src.Optional(dir+"/"+product)
		if !strings.HasPrefix(v, "0x") || !strings.HasPrefix(p, "0x") {
			return ""
		}
		return v[2:] + ":" + p[2:]
	}
	if device != "" {
		function := device
		if strings.HasPrefix(path.Base(device), "virtio") {
			function = path.Dir(device)
		}
		if c.PCIID = id(function, "vendor", "device"); c.PCIID != "" {
			c.Subsystem = id(function, "subsystem_vendor", "subsystem_device")
		}
		if sizes, ok := m.Control(function); ok {
			c.PayloadBytes, c.PayloadSupportedBytes, c.ReadRequestBytes = sizes.PayloadBytes,
				sizes.PayloadSupportedBytes, sizes.ReadRequestBytes
		}
		if e, ok := m.Errors(function); ok {
			c.AER = (*AER)(&e)
		}
		if physical, ok := src.Resolve(device + "/physfn"); ok {
			c.VirtualFunction = path.Base(physical)
		}
		// Both ends of a link must agree, so the card's own directory is sufficient. The files
		// exist where the kernel may decide (since Linux 5.5).
		names, _ := src.List(function + "/link")
		for _, name := range names {
			state, isState := strings.CutSuffix(name, "_aspm")
			if isState && src.Optional(function+"/link/"+name) == "1" {
				c.ASPM = append(c.ASPM, strings.ReplaceAll(state, "_", "."))
			}
		}
	}
	if c.empty() {
		return nil
	}
	return &c
}

// empty reports whether the card has no facts, so that documents have no empty object.
func (c *Card) empty() bool {
	return c.FirmwareVersion == "" && c.DriverVersion == "" && c.PCIID == "" && c.VirtualFunction == "" &&
		c.PayloadBytes == 0 && len(c.ASPM) == 0 &&
		c.Pause == nil && c.EEE == nil && c.FEC == nil && c.RSS == nil && c.Optic == nil && len(c.PrivateFlags) == 0 &&
		c.PermanentMAC == "" && c.Port == "" && c.Modes == nil && c.AER == nil
}

// spread summarises an indirection table: the number of entries of each queue.
func spread(r ethtool.RSS) *RSS {
	s := &RSS{HashFunction: r.HashFunction, KeyBytes: r.KeyBytes, Entries: len(r.Indirection)}
	// Counted by queue: the order of the entries does not matter, because the hash spreads flows
	// evenly over all of them.
	entries := make(map[uint32]int)
	for _, queue := range r.Indirection {
		entries[queue]++
	}
	for queue, n := range entries {
		s.Shares = append(s.Shares, RSSShare{Queue: queue, Entries: n})
	}
	sorting.Func(s.Shares, func(a, b RSSShare) int { return cmp.Compare(a.Queue, b.Queue) })
	return s
}

// countQueues assigns the driver's per-queue counters to the queues.
func countQueues(queues []Queue, statistics map[string]uint64) {
	// By name, and only to queues that sysfs has: a counter of no queue with a number in its name
	// ("rx_64_byte_packets") matches none.
	position := make(map[string]int, len(queues))
	for i, q := range queues {
		position[q.Name] = i
	}
	for name, n := range statistics {
		queue, counter, ok := nicstat.Queue(name)
		i, known := position[queue]
		if !ok || !known {
			continue
		}
		if queues[i].Counters == nil {
			queues[i].Counters = make(map[string]uint64)
		}
		queues[i].Counters[counter] = n
	}
}

// sourceAER is the source for the meaning of bus errors.
const sourceAER = "PCIe 5.0 §6.2; Documentation/PCI/pcieaer-howto.rst"

// readSymptoms looks up every counter that is not zero, including the driver's own, and adds the
// errors of the bus.
func readSymptoms(dev *Interface, statistics map[string]uint64) []Symptom {
	counters := maps.Clone(dev.Counters)
	// A driver that repeats the common counters under their names gives them the same meaning.
	if counters == nil {
		counters = statistics
	} else {
		maps.Copy(counters, statistics)
	}
	var found []Symptom
	if dev.Card != nil && dev.Card.AER != nil {
		// Besides the NIC's counters: no statistic of the interface shows a bus error, and a bus
		// error is a reason for a card that is slow without another reason.
		for _, e := range []struct {
			class, meaning string
			n              uint64
		}{
			{"correctable", "packets damaged between card and slot and sent again: " +
				"a bad contact, a riser, a slot too fast for it",
				dev.Card.AER.Correctable},
			{"nonfatal", "transactions between card and memory that were lost; the link stayed up",
				dev.Card.AER.NonFatal},
			{"fatal", "times that the card's link to the slot became unreliable and had to be re-established",
				dev.Card.AER.Fatal},
		} {
			if e.n > 0 {
				found = append(found, Symptom{Counter: "aer_dev_" + e.class, Total: e.n, Class: string(nicstat.Bus),
					Meaning: e.meaning, Source: sourceAER})
			}
		}
	}
	for name, n := range counters {
		if n == 0 {
			continue
		}
		if e, ok := nicstat.Lookup(dev.Driver, name); ok {
			found = append(found, Symptom{Counter: name, Total: n, Class: string(e.Class), Meaning: e.Meaning,
				Source: e.Source})
		}
	}
	sorting.Func(found, func(a, b Symptom) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(a.Counter, b.Counter))
	})
	return found
}
