package sosreport

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/host/nicstat"
	"github.com/linerate/linerate/internal/host/sosreport/printed"
	"github.com/linerate/linerate/internal/kernel/hostfs"
	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/procfs"
)

// pci writes every device that lspci shows as in sysfs, with the attributes that lspci shows too.
func (s *source) pci(devices []*printed.PCIDevice) {
	s.paths = s.pciPaths(devices)
	for _, d := range devices {
		dir := s.paths[d.Address]
		file := func(name, value string) { s.value(dir+"/"+name, value) }
		positive := func(name string, n int) {
			if n > 0 {
				file(name, strconv.Itoa(n))
			}
		}
		file("vendor", d.Vendor)
		file("device", d.Device)
		file("subsystem_vendor", d.SubsystemVendor)
		file("subsystem_device", d.SubsystemDevice)
		file("current_link_speed", d.Speed)
		file("max_link_speed", d.MaxSpeed)
		positive("current_link_width", d.Width)
		positive("max_link_width", d.MaxWidth)
		positive("irq", d.IRQ)
		if d.NUMANode >= 0 {
			file("numa_node", strconv.Itoa(d.NUMANode))
		}
		s.putLink(dir+"/subsystem", "sys/bus/pci")
		s.putLink("sys/bus/pci/devices/"+d.Address, dir)
		s.config(d, dir)
	}
}

// config writes the configuration space that /proc/bus/pci has, if it is that of the device: some
// versions of sos copy files as text, which damages it.
func (s *source) config(d *printed.PCIDevice, dir string) {
	domain, rest, _ := strings.Cut(d.Address, ":")
	bus, function, _ := strings.Cut(rest, ":")
	if domain != "0000" {
		bus = domain + ":" + bus
	}
	// The name is that of the kernel (pci_proc_attach_device), which includes the domain only if
	// there are several.
	b := s.text("proc/bus/pci/" + bus + "/" + function)
	if len(b) < 64 || len(b) > 4096 {
		return
	}
	ids := fmt.Sprintf("0x%04x 0x%04x", binary.LittleEndian.Uint16([]byte(b)),
		binary.LittleEndian.Uint16([]byte(b[2:])))
	if ids == d.Vendor+" "+d.Device {
		s.put(dir+"/config", b)
	}
}

// pciPaths returns the path of each device through the tree of buses: that of a link or directory
// of the report, or one derived from the bridges' numbers of the buses below them.
func (s *source) pciPaths(devices []*printed.PCIDevice) map[string]string {
	at := make(map[string]string, len(devices))
	// Interfaces first: the paths of their links are the kernel's own.
	names, _ := s.tree.ReadDir("sys/class/net") // Empty where sos did not copy it.
	for _, e := range names {
		real, ok := s.resolve("sys/class/net/" + e.Name())
		if !ok || !strings.HasPrefix(real, "sys/devices/") {
			continue
		}
		for dir := real; dir != "sys/devices"; dir = path.Dir(dir) {
			if base := path.Base(dir); isPCIAddress(base) {
				at[base] = dir
			}
		}
	}
	// For other devices lspci's output about the bridges decides: a slot's capacity is that of the
	// narrowest link above the card.
	bridges := make(map[string]*printed.PCIDevice) // by domain and number of the bus below
	for _, d := range devices {
		if d.SecondaryBus > 0 {
			bridges[fmt.Sprintf("%s:%02x", d.Address[:len(d.Address)-8], d.SecondaryBus)] = d
		}
	}
	var place func(d *printed.PCIDevice, depth int) string
	place = func(d *printed.PCIDevice, depth int) string {
		if dir, ok := at[d.Address]; ok {
			return dir
		}
		bus := d.Address[:len(d.Address)-5] // 0000:03 of 0000:03:00.0
		dir := "sys/devices/pci" + bus + "/" + d.Address
		// Cyclic numbers, which no machine has, end at a depth that no machine reaches.
		if up, ok := bridges[bus]; ok && up != d && depth < 32 {
			dir = place(up, depth+1) + "/" + d.Address
		}
		at[d.Address] = dir
		return dir
	}
	for _, d := range devices {
		place(d, 0)
	}
	return at
}

// isPCIAddress reports whether a directory's name is an address such as "0000:03:00.0".
func isPCIAddress(name string) bool {
	domain, rest, _ := strings.Cut(name, ":")
	bus, function, _ := strings.Cut(rest, ":")
	return len(domain) >= 4 && len(bus) == 2 && len(function) == 4 && function[2] == '.'
}

// sysfs writes an interface as in /sys/class/net, with its number and address, so that package host
// uses the other facts of the report too.
func (s *source) sysfs(l *printed.Link, c *card, devices []*printed.PCIDevice, interrupts map[int]procfs.Interrupt) {
	class := "sys/class/net/" + l.Name
	dir, device := s.place(l, *c)
	if dir != class {
		s.putLink(class, dir)
	}
	s.value(dir+"/ifindex", strconv.Itoa(l.Index))
	s.value(dir+"/address", l.MAC)
	s.value(dir+"/mtu", strconv.Itoa(l.MTUBytes))
	// sysfs names the lower interface of a VLAN or similar, and so does ip, unless that is in
	// another network namespace.
	if l.Peer != "" && !nl.IsPair(l.Kind) && namesInterface(l.Peer) && l.ParentIndex != 0 &&
		!strings.HasPrefix(l.Peer, "if"+strconv.Itoa(l.ParentIndex)) {
		s.putLink(dir+"/lower_"+l.Peer, "sys/class/net/"+l.Peer)
	}
	s.statistics(dir+"/statistics", l)
	if device == "" {
		return
	}
	if c.Driver == "" {
		s.nameless = append(s.nameless, l.Name)
	}
	s.putLink(dir+"/device", device)
	function, bus := device, ""
	switch base := path.Base(device); {
	case strings.HasPrefix(base, "virtio"):
		function, bus = path.Dir(device), "virtio"
	case isPCIAddress(base):
		bus = "pci"
	case strings.Contains(base, ":") && strings.Contains(base, "-"): // 1-1.2:1.0, an interface of a USB device
		bus = "usb"
	case strings.HasPrefix(path.Base(path.Dir(device)), "VMBUS:"): // Hyper-V: the device is a GUID
		bus = "vmbus"
	case strings.HasPrefix(base, "vif-"):
		bus = "xen"
	}
	if bus != "" {
		s.putLink(device+"/subsystem", "sys/bus/"+bus)
		// A reading of the counters takes the driver from here, which defines the names of ethtool
		// -S.
		if c.Driver != "" && !strings.ContainsAny(c.Driver, "/ ") {
			s.putLink(device+"/driver", "sys/bus/"+bus+"/drivers/"+c.Driver)
		}
	}
	if i := slices.IndexFunc(devices,
		func(d *printed.PCIDevice) bool { return d.Address == path.Base(function) }); i >= 0 && c.Card != nil {
		d := devices[i]
		c.Card.PayloadBytes, c.Card.PayloadSupportedBytes, c.Card.ReadRequestBytes, c.Card.ASPM = d.PayloadBytes,
			d.PayloadSupportedBytes, d.ReadRequestBytes, d.ASPM
	}
	s.queues(dir+"/queues/", *c)
	s.interrupts(l.Name, device, function, interrupts)
}

// statistics writes the totals of ip -s as in sysfs, and also those of /proc/net/dev with the same
// meaning.
func (s *source) statistics(dir string, l *printed.Link) {
	if len(l.Totals) == 0 || s.any(dir) {
		return
	}
	totals := maps.Clone(l.Totals)
	for name, n := range s.dev.OfInterface(l.Name) {
		// The last two are sums of what sysfs separates, and have names of their own; the first
		// includes rx_missed_errors.
		switch _, known := totals[name]; {
		case known, name == "rx_dropped", name == "rx_frame_all_errors", name == "tx_carrier_all_errors":
		default:
			totals[name] = n
		}
	}
	for _, name := range slices.Sorted(maps.Keys(totals)) {
		s.value(dir+"/"+name, strconv.FormatUint(totals[name], 10))
	}
}

// place returns the directories of an interface and of its device; an empty device: it is software.
func (s *source) place(l *printed.Link, c card) (dir, device string) {
	class := "sys/class/net/" + l.Name
	if real, ok := s.resolve(class); ok && strings.HasPrefix(real, "sys/devices/") &&
		path.Base(path.Dir(real)) == "net" {
		if strings.HasPrefix(real, "sys/devices/virtual/") {
			return real, ""
		}
		return real, path.Dir(path.Dir(real))
	}
	if !hardware(l, c) {
		if s.any(class) {
			return class, "" // copied as a directory, by versions of sos that did not keep links
		}
		return "sys/devices/virtual/net/" + l.Name, ""
	}
	// A card with no known place has its own name there, so that it has a device at all.
	bus := cmp.Or(c.Bus, l.ParentDev, l.Name)
	switch device = s.paths[bus]; {
	case device != "":
	case isPCIAddress(bus) && !strings.Contains(bus, "/"):
		device = "sys/devices/pci" + bus[:len(bus)-5] + "/" + bus
	default:
		// A bus about which the report has only the address.
		device = "sys/devices/platform/" + strings.ReplaceAll(bus, "/", "-")
	}
	// A virtio card is a device of its own on the PCI function that ethtool reports.
	if c.Driver == "virtio_net" && isPCIAddress(path.Base(device)) {
		name := "virtio"
		if strings.HasPrefix(l.ParentDev, "virtio") && !strings.Contains(l.ParentDev, "/") {
			name = l.ParentDev
		}
		device += "/" + name
	}
	if s.any(class) {
		return class, device
	}
	return device + "/net/" + l.Name, device
}

// hardware reports whether an interface without a link in sysfs is a card. ip names the kind of
// software, and nothing else has a bus, a ring or a medium.
func hardware(l *printed.Link, c card) bool {
	switch {
	case l.Kind != "":
		return false
	case c.Bus != "" || c.Rings != nil || l.ParentDev != "":
		return true
	case !l.Ethernet || l.Peer != "": // A VLAN reports the medium of the card below it.
		return false
	case c.Card != nil && c.Card.Modes != nil:
		return true
	}
	// Some drivers report no bus (hv_netvsc before Linux 5.19), and some kernels no kind of bridges
	// (before 3.0).
	return l.Detailed && !slices.Contains(software, c.Driver)
}

// software are the drivers of interfaces for which old kernels have no kind.
var software = []string{"bridge", "bonding", "dummy", "openvswitch", "team", "tun", "veth"}

// queues writes the directory of each queue. ethtool -l shows how many are used; a driver that does
// not support it may have counters for each.
func (s *source) queues(dir string, c card) {
	if s.any(strings.TrimSuffix(dir, "/")) {
		return
	}
	var names []string
	if ch := c.Channels; ch != nil {
		// 4096 is more than any card has; a report can claim four thousand million.
		for i := range min(ch.Combined+ch.Rx, 4096) {
			names = append(names, fmt.Sprintf("rx-%d", i))
		}
		for i := range min(ch.Combined+ch.Tx, 4096) {
			names = append(names, fmt.Sprintf("tx-%d", i))
		}
	} else {
		for name := range c.Statistics {
			if queue, _, ok := nicstat.Queue(name); ok {
				names = append(names, queue)
			}
		}
	}
	slices.Sort(names) // Drivers have several counters for each queue.
	for _, name := range slices.Compact(names) {
		s.made = append(s.made, hostfs.Entry{Name: dir + name, Directory: true})
	}
}

// interrupts writes the numbers of a card's interrupts as in sysfs (msi_irqs), found by their
// names: drivers name them after the interface, its PCI address or the virtio device. A shared line
// counts for each card on it.
func (s *source) interrupts(name, device, function string, table map[int]procfs.Interrupt) {
	if s.any(device+"/msi_irqs") || s.any(function+"/msi_irqs") {
		return
	}
	for _, irq := range slices.Sorted(maps.Keys(table)) {
		if i := table[irq]; named(i.Name, name) || named(i.Name, path.Base(device)) ||
			named(i.Name, path.Base(function)) {
			s.put(fmt.Sprintf("%s/msi_irqs/%d", function, irq), "")
		}
	}
}

// named reports whether a text contains a name as a whole word: eth1 in "i40e-eth1-TxRx-0", not in
// "eth10".
func named(text, name string) bool {
	alphanumeric := func(c byte) bool {
		return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
	}
	for from := 0; ; {
		i := strings.Index(text[from:], name)
		if i < 0 || name == "" {
			return false
		}
		// Both neighbours must be signs: "veth1" and "eth10" contain "eth1" too.
		i += from
		end := i + len(name)
		if (i == 0 || !alphanumeric(text[i-1])) && (end == len(text) || !alphanumeric(text[end])) {
			return true
		}
		from = i + 1
	}
}
