package host

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/host/bus"
	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/procfs"
)

// readInterfaces joins what netlink and sysfs tell about each interface. Netlink follows the
// network namespace of the thread, so it says which interfaces there are; sysfs has queues, buses
// and all the statistics, and is used where it shows the same ones.
func readInterfaces(ctx context.Context, src *source, t *told, m bus.Machine, said *notes) ([]Interface, error) {
	said.add("interfaces by netlink", t.linksErr)
	said.add("addresses by netlink", t.addressesErr)
	links := t.links
	own := true
	if len(links) > 0 {
		own = sysfsIsOurs(src, links)
		if !own && src.Live() {
			// An interface that came or went between the two lists looks the same as another
			// namespace; the next look tells.
			if again, err := src.askLinks(); err == nil && sysfsIsOurs(src, again) {
				links, own = again, true
			}
		}
		if !own {
			said.say("/sys/class/net shows another network namespace than the one asked about: queues, bus and statistics of its interfaces are left out")
		}
	} else {
		links = linksFromSysfs(src, said)
	}
	// What all cards share is read once and up front: the table of interrupts has a line for each
	// of them and a column for each processor, and /proc/net/dev has the counters of those
	// interfaces of which sysfs shows nothing.
	table := readInterruptTable(src, said)
	counters := procfs.NewCounts(procfs.DevColumns * len(links))
	if b, err := src.Net("dev"); err == nil {
		_ = procfs.ParseDev(b, counters) // What it has is used; Counters reports a broken file.
	}
	var interfaces []Interface
	for _, l := range links {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		// Netlink first and sysfs on top of it: where both speak, the later one stays (model.go
		// says why).
		e := src.ethtool(l.Name)
		dev := fromTold(l, e)
		for _, a := range t.addresses {
			if a.Index == l.Index {
				dev.Addresses = append(dev.Addresses, a.CIDR)
			}
		}
		if own {
			fromSysfs(src, &dev)
		} else {
			// The driver says its bus, and software has none: all there is to tell hardware by when
			// sysfs is somebody else's.
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
			// Only cards on a bus are asked for counters of their own: see askStatistics. That
			// there are none is Counters' to say.
			var statistics map[string]uint64
			if !dev.Virtual {
				statistics, _ = src.driverStatistics(l.Name)
			}
			countQueues(dev.Queues, statistics)
			dev.Symptoms = readSymptoms(&dev, statistics)
		}
		if dev.Counters == nil {
			// Fewer columns than sysfs has, and those of this network namespace by all means.
			dev.Counters = counters.OfInterface(l.Name)
		}
		sayRefusals(&dev, e.refused, said)
		interfaces = append(interfaces, dev)
	}
	// A copy that somebody made with tar has no answers of netlink in it.
	// An archive without addresses.json: half of them are better than none.
	if len(t.addresses) == 0 {
		addFrom6(src, interfaces, said)
	}
	slices.SortStableFunc(interfaces, func(a, b Interface) int { return cmp.Compare(a.Index, b.Index) })
	readLayers(src, interfaces, links, own)
	return interfaces, nil
}

// sayRefusals reports what a driver did not answer. Software interfaces have no rings and no
// coalescing by nature, so only a lack of permission is worth a word for them, and only other
// answers than "not supported" for hardware's lesser facts.
func sayRefusals(dev *Interface, refused []refusal, said *notes) {
	for _, r := range refused {
		unsupported := errors.Is(r.err, nl.ErrNotSupported)
		if unsupported && (dev.Virtual || r.what == "speed") {
			continue
		}
		if errors.Is(r.err, fs.ErrNotExist) && dev.Virtual {
			continue // gone between two questions
		}
		said.add(r.what+" of "+dev.Name, r.err)
	}
}

// fromTold begins an interface with what netlink said of it.
func fromTold(l toldLink, e toldEthtool) Interface {
	dev := Interface{
		Name: l.Name, Index: l.Index, MAC: l.MAC, Up: l.Up, Carrier: l.Carrier, MTUBytes: l.MTUBytes,
		TxQueueLen: l.TxQueueLen,
		Qdisc:      l.Qdisc, Driver: e.Driver, SpeedBitsPerSec: e.SpeedBitsPerSec, Duplex: e.Duplex,
		Rings: e.Rings, Coalesce: e.Coalesce, Features: e.Features, Channels: e.Channels,
		// Without sysfs: a kind (veth, bridge, …) or the loopback is software.
		Virtual: l.Kind != "" || l.Name == "lo",
	}
	// A VLAN's driver calls itself "802.1Q VLAN Support"; the word that ip(8) has for it is the one
	// people know.
	if l.Kind != "" && (dev.Driver == "" || strings.Contains(dev.Driver, " ")) {
		dev.Driver = l.Kind
	}
	return dev
}

// sysfsIsOurs tells whether /sys/class/net shows the same interfaces as netlink: sysfs shows the
// network namespace that it was mounted in, and a container's eth0 with index 2 looks much like its
// host's.
func sysfsIsOurs(src *source, links []toldLink) bool {
	names, err := src.List("sys/class/net")
	if err != nil {
		return false
	}
	// Every name, index and hardware address has to agree, in both directions: indexes are small
	// numbers that begin at 1 in each namespace, and a veth's address is random, so it is the
	// address that tells two namespaces apart in practice. Counted, because a namespace whose
	// interfaces are a part of ours would agree name by name.
	seen := 0
	for _, name := range names {
		if !src.Exists("sys/class/net/" + name + "/ifindex") {
			continue // bonding_masters is a file among the interfaces
		}
		seen++
		i := slices.IndexFunc(links, func(l toldLink) bool { return l.Name == name })
		if i < 0 {
			return false
		}
		index, ok := src.Number("sys/class/net/" + name + "/ifindex")
		if !ok || int(index) != links[i].Index {
			return false
		}
		if mac := src.Optional("sys/class/net/" + name + "/address"); links[i].MAC != "" && mac != "" &&
			mac != links[i].MAC {
			return false
		}
	}
	return seen == len(links)
}

// sysfsShows tells the same of one interface, which is cheaper on a host with many: number and
// hardware address are those that the calling thread's own namespace has under that name.
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

// linksFromSysfs stands in for netlink where an archive has no links.json: a plain copy of /sys,
// made with cp or tar, is worth reading. The queueing discipline is not in it.
func linksFromSysfs(src *source, said *notes) []toldLink {
	names, err := src.List("sys/class/net")
	if err != nil {
		said.add("interfaces", err)
		return nil
	}
	var links []toldLink
	for _, name := range names {
		dir := "sys/class/net/" + name + "/"
		index, ok := src.Number(dir + "ifindex")
		if !ok {
			continue
		}
		l := toldLink{Index: int(index), Name: name, MAC: src.Optional(dir + "address")}
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

// ueventKind reads DEVTYPE, which bridges, bonds, VLANs and their like have. So do wireless cards
// and modems, which are hardware; a kind would make software of them.
func ueventKind(text string) string {
	for line := range strings.Lines(text) {
		if kind, ok := strings.CutPrefix(strings.TrimSpace(line), "DEVTYPE="); ok && kind != "wlan" && kind != "wwan" {
			return kind
		}
	}
	return ""
}

// fromSysfs adds what /sys/class/net/NAME tells (Documentation/ABI/testing/sysfs-class-net).
// Reading speed and duplex answers EINVAL while the link is down or the device has no such thing.
func fromSysfs(src *source, dev *Interface) {
	dir := "sys/class/net/" + dev.Name + "/"
	device, hasDevice := src.Resolve(dir + "device")
	// Asked of a file that every interface has: an archive without this one's directory says
	// nothing about its hardware.
	if _, isLink := src.Resolve(dir + "ifindex"); isLink {
		dev.Virtual = !hasDevice
	}
	if hasDevice {
		if driver, ok := src.Link(device + "/driver"); ok {
			dev.Driver = driver[strings.LastIndexByte(driver, '/')+1:]
		}
		// -1 says that the machine has one node only.
		if node, ok := src.Number(device + "/numa_node"); ok && node >= 0 {
			n := int(node)
			dev.NUMANode = &n
		}
	}
	dev.NAPI = readNAPI(src, dir)
	dev.Asleep = hasDevice && src.suspended(device)
	// In Mb/s. -1 and 65535 (before Linux 3.1 the field had 16 bits) both say unknown.
	// Both are asked of the driver, which a sleeping card must be spared.
	if !dev.Asleep {
		if mbps, ok := src.Number(dir + "speed"); ok && mbps > 0 && mbps != 65535 && mbps != 1<<32-1 {
			dev.SpeedBitsPerSec = float64(mbps) * 1e6
		}
		if duplex := src.Optional(dir + "duplex"); duplex == "full" || duplex == "half" {
			dev.Duplex = duplex
		}
	}
	dev.Queues = readQueues(src, dir+"queues")
	// Whatever is in the directory: kernels add statistics, and one that nobody here knows yet is
	// still one that a person may.
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
// xps_cpus answers ENOENT for a device with one queue.
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
	// By number, so that tx-10 is behind tx-9.
	number := func(name string) int {
		n, _ := strconv.Atoi(name[3:]) // The kernel numbers its queues.
		return n
	}
	slices.SortStableFunc(queues, func(a, b Queue) int {
		return cmp.Or(strings.Compare(a.Name[:3], b.Name[:3]), cmp.Compare(number(a.Name), number(b.Name)))
	})
	return queues
}

// addFrom6 reads the IPv6 addresses from /proc/net/if_inet6; IPv4 addresses with their prefix are
// in no file of /proc.
func addFrom6(src *source, interfaces []Interface, said *notes) {
	b, err := src.Net("if_inet6")
	if err != nil {
		return // No IPv6 in this kernel, or not archived.
	}
	addresses, err := procfs.ParseIfInet6(b)
	said.add("IPv6 addresses", err)
	for i := range interfaces {
		for _, a := range addresses[interfaces[i].Name] {
			interfaces[i].Addresses = append(interfaces[i].Addresses, a.String())
		}
	}
}
