package ceiling

import (
	"fmt"
	"slices"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/moderation"
)

// Rate is a rate that this host cannot pass, with the formula and its source in Why. Those named
// window:… are per flow; window:receive is what a new flow can count on, and since Linux 6.6 a flow
// of well-filled packets may get up to twice as much. What stands behind an @ is the condition:
// ring:eth0@8ms holds while nobody empties the ring for 8 ms, interrupts:eth0@64B for frames of 64
// bytes. [All] has the names.
type Rate struct {
	Name       string  `json:"name"` // link:eth0, goodput:eth0, bus:eth0, interrupts:eth0, polling:eth0, ring:eth0@8ms, window:receive@20ms, …
	BitsPerSec float64 `json:"bits_per_second"`
	Why        string  `json:"why"`
}

// The bytes that every segment costs inside the payload of its frame.
const (
	ipv4Header      = 20 // RFC 791
	ipv6Header      = 40 // RFC 8200
	tcpHeader       = 20 // RFC 9293
	timestampOption = 12 // RFC 7323, with its padding
)

// GoodputRatio is the share of an Ethernet link's bit rate that TCP payload gets when every packet
// is full: payload / (mtu + 38). 1500 with IPv4 and timestamps gives 1448/1538 = 0.9415. An MTU
// that has no room for payload gives 0.
func GoodputRatio(mtu int, ipv6, timestamps bool) float64 {
	payload := mtu - ipv4Header - tcpHeader
	if ipv6 {
		payload = mtu - ipv6Header - tcpHeader
	}
	if timestamps {
		payload -= timestampOption
	}
	if payload <= 0 {
		return 0
	}
	return float64(payload) / float64(moderation.WireBytes(mtu))
}

// All gives the rates that this host cannot pass, by link, frame format, bus, interrupts, rings and
// socket buffers, in the order of the interfaces. An unknown fact gives no ceiling. It computes
// only; it reads nothing.
//
// Names, with the condition under which they hold behind an @:
//
//	link:IF              bit rate of the wire; the ones below it are shown where they stay under it or are of another kind
//	goodput:IF           TCP payload that the wire carries in full frames
//	bus:IF               what a card gets out of its slot
//	interrupts:IF        the fixed interrupt rate × the frames that the receive rings hold, on the wire
//	polling:IF           the fixed interrupt rate × netdev_budget, on the wire: more is put off to a later round
//	ring:IF@8ms          what one receive ring takes in, on the wire, while nobody empties it for as long as one round of the kernel may last
//	interrupts:IF@64B    the same in frames of the smallest size, where full ones do not reach it; polling alike
//	window:receive@20ms  what the socket buffers carry in one flow over a path of that round trip; window:send alike
//
// Those of packets are absent where the link is full before they are reached: they are limits only
// of hosts on which they can bind. The estimate of [Core] needs a measurement and is not among
// them.
func All(s *host.Snapshot) []Rate {
	var all []Rate
	// By index: an Interface is a large value.
	for i := range s.Interfaces {
		dev := &s.Interfaces[i]
		if c, ok := ofLink(s, dev); ok {
			all = append(all, c)
			if g, ok := goodput(s, dev); ok {
				all = append(all, g)
			}
		}
		if c, ok := ofBus(s, dev); ok {
			all = append(all, c)
		}
		all = append(all, ofPackets(s, dev)...)
	}
	for _, side := range []Side{Receive, Send} {
		for _, rtt := range judgedRTTs {
			if c, ok := Window(s, rtt, side); ok {
				all = append(all, c)
			}
		}
	}
	return all
}

// paravirtual drivers report a speed that the hypervisor or the guest's user typed.
var paravirtual = []string{"virtio_net", "vmxnet3", "hv_netvsc", "xen_netfront", "vif", "ena", "gve", "vmw_vmxnet3"}

// emulated drivers are for real cards of old, which in a virtual machine are nobody's hardware:
// they may pass their nominal rate.
var emulated = []string{"e1000", "e1000e", "igb", "8139cp", "8139too", "pcnet32", "ne2k-pci", "tulip",
	"sky2", "rtl8139"}

// NominalSpeed tells that the speed and the bus of dev bound nothing: they are what the
// hypervisor's imitation says of itself.
func NominalSpeed(s *host.Snapshot, dev *host.Interface) bool {
	return dev.Virtual || slices.Contains(paravirtual, dev.Driver) || dev.Bus != nil && dev.Bus.Kind == "virtio" ||
		s.VirtualMachine() && slices.Contains(emulated, dev.Driver)
}

// ofLink is the bit rate of the wire. Half duplex does not halve it: either direction may have all
// of it, only not both.
func ofLink(s *host.Snapshot, dev *host.Interface) (Rate, bool) {
	if dev.SpeedBitsPerSec <= 0 || NominalSpeed(s, dev) {
		return Rate{}, false
	}
	why := fmt.Sprintf("%s links at %s", dev.Name, unit.BitRate(dev.SpeedBitsPerSec))
	if dev.Duplex == "half" {
		why += ", half duplex: both directions share it"
	}
	return Rate{
		Name:       "link:" + dev.Name,
		BitsPerSec: dev.SpeedBitsPerSec,
		Why:        why + " (/sys/class/net/" + dev.Name + "/speed)",
	}, true
}

// goodput is what TCP can deliver of the wire's rate. Over IPv4, as the larger of the two: a
// ceiling has to hold whatever is used.
func goodput(s *host.Snapshot, dev *host.Interface) (Rate, bool) {
	timestamps := true
	if n, ok := s.SysctlNumber("net.ipv4.tcp_timestamps"); ok {
		timestamps = n != 0
	}
	ratio := GoodputRatio(dev.MTUBytes, false, timestamps)
	if ratio == 0 {
		return Rate{}, false
	}
	options, with := timestampOption, "with timestamps"
	if !timestamps {
		options, with = 0, "without timestamps"
	}
	return Rate{
		Name:       "goodput:" + dev.Name,
		BitsPerSec: dev.SpeedBitsPerSec * ratio,
		Why: fmt.Sprintf("TCP payload over IPv4 %s at MTU %d: %s × (%d − 20 − 20 − %d) / (%d + 38) = %s × %.4f (IEEE 802.3 frame, RFC 791, RFC 9293, RFC 7323)",
			with, dev.MTUBytes, unit.BitRate(dev.SpeedBitsPerSec), dev.MTUBytes, options, dev.MTUBytes,
			unit.BitRate(dev.SpeedBitsPerSec), ratio),
	}, true
}
