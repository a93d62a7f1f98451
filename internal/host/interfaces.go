package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/host/bus"
	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/procfs"
)

// readInterfaces joins what netlink and sysfs report about each interface. Netlink follows the
// network namespace of the thread, so it decides which interfaces exist. sysfs has queues, buses
// and all the statistics; it is used where it shows the same interfaces.
func readInterfaces(ctx context.Context, src *source, t *facts, m bus.Machine, said *notes) ([]Interface, error) {
	said.add("interfaces by netlink", t.linksErr)
	said.add("addresses by netlink", t.addressesErr)
	links := t.links
	own := true
	if len(links) > 0 {
		own = sysfsIsOurs(src, links)
		if !own && src.Live() {
			// An interface that came or went between the two lists looks like another namespace, so
			// compare once more.
			if again, err := src.askLinks(); err == nil && sysfsIsOurs(src, again) {
				links, own = again, true
			}
		}
		if !own {
			said.sayWhyNotSysfs(src)
		}
	} else {
		links = linksFromSysfs(src, said)
	}
	// Of a host that is alive all are read: it is the kernel's own list.
	if len(links) > MaxInterfaces && !src.Live() {
		said.say(fmt.Sprintf("%d interfaces: only the first %d are read", len(links), MaxInterfaces))
		links = links[:MaxInterfaces]
	}
	addresses := make(map[int][]string, len(t.addresses))
	for _, a := range t.addresses {
		addresses[a.Index] = append(addresses[a.Index], a.CIDR)
	}
	// What all NICs share is read once and first: the table of interrupts has a line for each of
	// them and a column for each CPU, and /proc/net/dev has the counters of interfaces that sysfs
	// does not show.
	table := readInterruptTable(src, said)
	counters := procfs.NewCounts(procfs.DevColumns * len(links))
	if b, err := src.Net("dev"); err == nil {
		_ = procfs.ParseDev(b, counters) // A partial result is used; Counters reports a broken file.
	}
	var interfaces []Interface
	for _, l := range links {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		// Netlink first and sysfs after it: where both have a value, sysfs wins (for the reason see
		// model.go).
		e := src.ethtool(l.Name)
		dev := fromLinkFact(l, e)
		dev.Addresses = append(dev.Addresses, addresses[l.Index]...)
		if own {
			fromSysfs(src, &dev)
		} else {
			// The driver reports its bus, and software has none: the only evidence of hardware if
			// sysfs shows another namespace.
			dev.Virtual = e.Bus == ""
		}
		if !dev.Virtual {
			dev.Bus = readBus(src, m, l.Name, e.Bus, own)
			dev.Card = e.Card
		}
		if !dev.Virtual && own {
			device, _ := src.Resolve("sys/class/net/" + l.Name + "/device")
			dev.Card = readCard(src, m, device, e.Card)
			dev.Interrupts = readInterrupts(src, table, l.Name, device)
		}
		if own {
			// Only cards on a bus are asked for counters of their own: see askStatistics. Counters
			// reports missing ones.
			var statistics map[string]uint64
			if !dev.Virtual {
				statistics, _ = src.driverStatistics(l.Name)
			}
			countQueues(dev.Queues, statistics)
			dev.Symptoms = readSymptoms(&dev, statistics)
		}
		if dev.Counters == nil {
			// Fewer columns than sysfs has, but certainly those of this network namespace.
			dev.Counters = counters.OfInterface(l.Name)
		}
		sayRefusals(&dev, e.refused, said)
		interfaces = append(interfaces, dev)
	}
	// An archive without addresses.json, such as a copy made with tar: IPv6 addresses alone are
	// better than none.
	if len(t.addresses) == 0 {
		addFrom6(src, interfaces, said)
	}
	sorting.StableFunc(interfaces, func(a, b Interface) int { return cmp.Compare(a.Index, b.Index) })
	readLayers(src, interfaces, links, own)
	return interfaces, nil
}

// sayRefusals reports what a driver did not answer. Software interfaces have no rings and no
// coalescing, so for them only a lack of permission is reported. For lesser facts of hardware, "not
// supported" is not reported.
func sayRefusals(dev *Interface, refused []refusal, said *notes) {
	for _, r := range refused {
		unsupported := errors.Is(r.err, nl.ErrNotSupported)
		if unsupported && (dev.Virtual || r.what == "speed") {
			continue
		}
		if errors.Is(r.err, fs.ErrNotExist) && dev.Virtual {
			continue // the interface is gone
		}
		said.add(r.what+" of "+dev.Name, r.err)
	}
}

// fromLinkFact starts an interface with what netlink reports.
func fromLinkFact(l linkFact, e ethtoolFacts) Interface {
	dev := Interface{
		Name: l.Name, Index: l.Index, MAC: l.MAC, Up: l.Up, Carrier: l.Carrier, MTUBytes: l.MTUBytes,
		TxQueueLen: l.TxQueueLen,
		Qdisc:      l.Qdisc, Driver: e.Driver, SpeedBitsPerSec: e.SpeedBitsPerSec, Duplex: e.Duplex,
		Rings: e.Rings, Coalesce: e.Coalesce, Features: e.Features, Channels: e.Channels,
		// Without sysfs: an interface with a kind (veth, bridge, …) and the loopback are software.
		Virtual: l.Kind != "" || l.Name == "lo",
	}
	// A VLAN's driver has the name "802.1Q VLAN Support"; users know the word that ip(8) has for
	// it.
	if l.Kind != "" && (dev.Driver == "" || strings.Contains(dev.Driver, " ")) {
		dev.Driver = l.Kind
	}
	return dev
}

// MaxInterfaces bounds what is read of a host that is not this one: a switch with every VLAN has
// some 4,200, a host with a thousand containers some 2,000. An archive may claim any number.
const MaxInterfaces = 8192

// sysfsIsOurs reports whether /sys/class/net shows the same interfaces as netlink. sysfs shows the
// network namespace in which it was mounted, and a container's eth0 with index 2 looks much like
// its host's.
func sysfsIsOurs(src *source, links []linkFact) bool {
	names, err := src.List("sys/class/net")
	if err != nil {
		return false
	}
	// Every name, index and hardware address must agree, in both directions. Indexes are small
	// numbers that begin at 1 in each namespace; in practice the random address of a veth
	// distinguishes two namespaces. The count catches a namespace whose interfaces are a subset of
	// ours.
	seen := 0
	byName := make(map[string]linkFact, len(links))
	for _, l := range links {
		if _, twice := byName[l.Name]; !twice {
			byName[l.Name] = l
		}
	}
	for _, name := range names {
		if !src.Exists("sys/class/net/" + name + "/ifindex") {
			continue // bonding_masters is a file among the interfaces
		}
		seen++
		l, known := byName[name]
		if !known {
			return false
		}
		index, ok := src.Number("sys/class/net/" + name + "/ifindex")
		if !ok || int(index) != l.Index {
			return false
		}
		if mac := src.Optional("sys/class/net/" + name + "/address"); l.MAC != "" && mac != "" && mac != l.MAC {
			return false
		}
	}
	return seen == len(links)
}

// sayWhyNotSysfs says why nothing is read from /sys/class/net: it is hidden, as in some containers,
// or it belongs to another network namespace.
func (n *notes) sayWhyNotSysfs(src *source) {
	const what = "queues, bus and statistics of the interfaces"
	names, err := src.List("sys/class/net")
	switch {
	case err != nil:
		n.add(what, err)
	case len(names) == 0:
		n.say(what + ": not there: /sys/class/net is empty")
	default:
		n.say("/sys/class/net shows another network namespace than the calling thread's: " +
			"queues, bus and statistics of its interfaces are left out")
	}
}

// sysfsShows reports the same for one interface, which costs less on a host with many: number and
// hardware address are those that the calling thread's namespace has under that name.
func (src *source) sysfsShows(name string) bool {
	if !src.Live() {
		return true
	}
	link, err := src.askLink(name)
	if err != nil {
		return false
	}
	index, ok := src.Number("sys/class/net/" + name + "/ifindex")
	return ok && int(index) == link.Index && src.Optional("sys/class/net/"+name+"/address") == link.MAC
}

// linksFromSysfs replaces netlink for an archive without links.json, such as a plain copy of /sys
// made with cp or tar. It does not know the queueing discipline.
func linksFromSysfs(src *source, said *notes) []linkFact {
	names, err := src.List("sys/class/net")
	if err != nil {
		said.add("interfaces", err)
		return nil
	}
	var links []linkFact
	for _, name := range names {
		dir := "sys/class/net/" + name + "/"
		index, ok := src.Number(dir + "ifindex")
		if !ok {
			continue
		}
		l := linkFact{Index: int(index), Name: name, MAC: src.Optional(dir + "address")}
		if mtu, ok := src.Number(dir + "mtu"); ok {
			l.MTUBytes = int(mtu)
		}
		if n, ok := src.Number(dir + "tx_queue_len"); ok {
			l.TxQueueLen = int(n)
		}
		if flags, ok := src.Number(dir + "flags"); ok {
			l.Up = flags&1 != 0 // IFF_UP
		}
		l.Carrier = src.Optional(dir+"carrier") == "1"
		l.Kind = ueventKind(src.Optional(dir + "uevent"))
		links = append(links, l)
	}
	return links
}

// ueventKind reads DEVTYPE, which bridges, bonds, VLANs and similar interfaces have. So do wireless
// cards and modems, which are hardware; a kind would make them software.
func ueventKind(text string) string {
	for line := range strings.Lines(text) {
		if kind, ok := strings.CutPrefix(strings.TrimSpace(line), "DEVTYPE="); ok && kind != "wlan" && kind != "wwan" {
			return kind
		}
	}
	return ""
}

// fromSysfs adds what /sys/class/net/NAME shows (Documentation/ABI/testing/sysfs-class-net).
// Reading speed and duplex returns EINVAL while the link is down or the device has neither.
func fromSysfs(src *source, dev *Interface) {
	dir := "sys/class/net/" + dev.Name + "/"
	device, hasDevice := src.Resolve(dir + "device")
	// The test uses a file that every interface has: an archive without this one's directory says
	// nothing about its hardware.
	if _, isLink := src.Resolve(dir + "ifindex"); isLink {
		dev.Virtual = !hasDevice
	}
	if hasDevice {
		if driver, ok := src.Link(device + "/driver"); ok {
			dev.Driver = driver[strings.LastIndexByte(driver, '/')+1:]
		}
		// -1 means that the machine has only one node.
		if node, ok := src.Number(device + "/numa_node"); ok && node >= 0 {
			n := int(node)
			dev.NUMANode = &n
		}
	}
	dev.NAPI = readNAPI(src, dir)
	dev.Asleep = hasDevice && src.suspended(device)
	// In Mb/s. -1 and 65535 (before Linux 3.1 the field had 16 bits) both mean unknown.
	// Both files ask the driver, which must not happen to a sleeping card.
	if !dev.Asleep {
		if mbps, ok := src.Number(dir + "speed"); ok && mbps > 0 && mbps != 65535 && mbps != 1<<32-1 {
			dev.SpeedBitsPerSec = float64(mbps) * 1e6
		}
		if duplex := src.Optional(dir + "duplex"); duplex == "full" || duplex == "half" {
			dev.Duplex = duplex
		}
	}
	dev.Queues = readQueues(src, dir+"queues")
	// All files in the directory: kernels add statistics, and a reader may know one that this
	// program does not.
	if stats, err := src.List(dir + "statistics"); err == nil {
		dev.Counters = make(map[string]uint64, len(stats))
		for _, name := range stats {
			if n, ok := procfs.ParseUint([]byte(src.Optional(dir + "statistics/" + name))); ok {
				dev.Counters[name] = n
			}
		}
	}
}

// readQueues reads the steering of each queue (networking/scaling.rst), receive before transmit.
// xps_cpus returns ENOENT for a device with one queue.
func readQueues(src *source, dir string) []Queue {
	names, err := src.List(dir)
	if err != nil {
		return nil
	}
	var queues []Queue
	for _, name := range names {
		q := Queue{Name: name}
		switch {
		case strings.HasPrefix(name, "rx-"):
			q.RPSCPUs = src.Optional(dir + "/" + name + "/rps_cpus")
			if n, ok := src.Number(dir + "/" + name + "/rps_flow_cnt"); ok && n > 0 && n <= math.MaxUint32 {
				q.RFSEntries = uint32(n)
			}
		case strings.HasPrefix(name, "tx-"):
			q.XPSCPUs = src.Optional(dir + "/" + name + "/xps_cpus")
			q.XPSRxQueues = src.Optional(dir + "/" + name + "/xps_rxqs")
		default:
			continue
		}
		queues = append(queues, q)
	}
	// By number, so that tx-10 follows tx-9.
	number := func(name string) int {
		n, _ := strconv.Atoi(name[3:]) // The kernel numbers its queues.
		return n
	}
	sorting.StableFunc(queues, func(a, b Queue) int {
		return cmp.Or(strings.Compare(a.Name[:3], b.Name[:3]), cmp.Compare(number(a.Name), number(b.Name)))
	})
	return queues
}

// addFrom6 reads the IPv6 addresses from /proc/net/if_inet6. No file of /proc has IPv4 addresses
// with their prefix.
func addFrom6(src *source, interfaces []Interface, said *notes) {
	b, err := src.Net("if_inet6")
	if err != nil {
		return // The kernel lacks IPv6, or the file is not archived.
	}
	addresses, err := procfs.ParseIfInet6(b)
	said.add("IPv6 addresses", err)
	for i := range interfaces {
		for _, a := range addresses[interfaces[i].Name] {
			interfaces[i].Addresses = append(interfaces[i].Addresses, a.String())
		}
	}
}
