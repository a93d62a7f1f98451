package ceiling

import (
	"fmt"
	"slices"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/moderation"
)

// Rate is a rate that this host cannot exceed, with the formula and its source in Why. A rate named
// window:… is per flow. window:receive is what a new flow can rely on; since Linux 6.6 a flow of
// well-filled packets may get up to twice as much. The part after @ is the condition: ring:eth0@8ms
// holds while the ring is not emptied for 8 ms, interrupts:eth0@64B for frames of 64 bytes. [All]
// lists the names.
type Rate struct {
	Name       string  `json:"name"` // link:eth0, ring:eth0@8ms, window:receive@20ms, …; see All
	BitsPerSec float64 `json:"bits_per_second"`
	Why        string  `json:"why"`
}

// The bytes of each segment's headers inside the payload of its frame.
const (
	ipv4Header      = 20 // RFC 791
	ipv6Header      = 40 // RFC 8200
	tcpHeader       = 20 // RFC 9293
	timestampOption = 12 // RFC 7323, with its padding
)

// GoodputRatio returns the share of an Ethernet link's bit rate that is TCP payload when every
// packet is full: payload / (mtu + 38). 1500 with IPv4 and timestamps gives 1448/1538 = 0.9415. It
// returns 0 for an MTU without room for payload.
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

// All returns the rates that this host cannot exceed, by link, frame format, bus, interrupts, rings
// and socket buffers, in the order of the interfaces. An unknown fact gives no ceiling. All only
// computes; it reads nothing.
//
// Names, with their condition after an @:
//
//	link:IF              bit rate of the wire; lower ones and other kinds follow
//	goodput:IF           TCP payload that the wire carries in full frames
//	bus:IF               the rate that a card gets in its slot
//	interrupts:IF        the fixed interrupt rate × the frames that the receive rings hold,
//	                     on the wire
//	polling:IF           the fixed interrupt rate × netdev_budget, on the wire;
//	                     a later round takes the rest
//	ring:IF@8ms          what a receive ring takes, on the wire, while it is not emptied
//	interrupts:IF@64B    the same in the smallest frames, if full ones do not reach it; also polling
//	window:receive@20ms  what the socket buffers carry in one flow over a path of that round trip;
//	                     also window:send
//
// The ceilings of packets are absent if the link is full before they are reached: they appear only
// on hosts where they can bind. The estimate of [Core] needs a measurement and is not included.
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

// paravirtual drivers report a speed that the hypervisor or the guest's administrator set.
var paravirtual = []string{"virtio_net", "vmxnet3", "hv_netvsc", "xen_netfront", "vif", "ena", "gve", "vmw_vmxnet3"}

// emulated drivers serve old cards that a virtual machine emulates: they may exceed their nominal
// rate.
var emulated = []string{"e1000", "e1000e", "igb", "8139cp", "8139too", "pcnet32", "ne2k-pci", "tulip",
	"sky2", "rtl8139"}

// NominalSpeed reports whether the speed and the bus of dev bound nothing, because a hypervisor
// emulates them.
func NominalSpeed(s *host.Snapshot, dev *host.Interface) bool {
	return dev.Virtual || slices.Contains(paravirtual, dev.Driver) || dev.Bus != nil && dev.Bus.Kind == "virtio" ||
		s.VirtualMachine() && slices.Contains(emulated, dev.Driver)
}

// ofLink returns the bit rate of the wire. Half duplex does not halve it: either direction may use
// all of it, but not both at once.
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

// goodput returns what TCP can deliver of the wire's rate. It assumes IPv4, which gives more than
// IPv6: a ceiling must hold for both.
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
		Why: fmt.Sprintf("TCP payload over IPv4 %s at MTU %d: %s × (%d − 20 − 20 − %d) / (%d + 38) = "+
			"%s × %.4f (IEEE 802.3 frame, RFC 791, RFC 9293, RFC 7323)",
			with, dev.MTUBytes, unit.BitRate(dev.SpeedBitsPerSec), dev.MTUBytes, options, dev.MTUBytes,
			unit.BitRate(dev.SpeedBitsPerSec), ratio),
	}, true
}
