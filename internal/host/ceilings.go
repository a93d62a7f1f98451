package host

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/procfs"
	"github.com/linerate/linerate/internal/unit"
)

// WindowSide names the end of a flow whose buffer is asked for.
type WindowSide string

// The two ends of a flow: what this host can take in, and what it can have under way.
const (
	ReceiveWindow WindowSide = "receive"
	SendWindow    WindowSide = "send"
)

// ceilingRTTs are the round trips that Ceilings judges the buffers at: a building, a country, an ocean.
var ceilingRTTs = [...]time.Duration{time.Millisecond, 20 * time.Millisecond, 100 * time.Millisecond}

// The bytes that every frame costs outside its payload.
const (
	ethernetOverhead = 14 + 4 + 8 + 12 // header, check sequence, preamble, gap (IEEE 802.3)
	ethernetMinimum  = 46              // shorter payloads are padded
	ipv4Header       = 20              // RFC 791
	ipv6Header       = 40              // RFC 8200
	tcpHeader        = 20              // RFC 9293
	timestampOption  = 12              // RFC 7323, with its padding
)

// Shares of a bus's nominal rate that network cards get out of it. They are experience rounded down, not laws: cards differ by a tenth. What they
// have to be good for is the question whether a bus can be the bottleneck at all, and that is mostly a matter of factors of two.
const (
	// pciEfficiency is for conventional PCI: arbitration, address phases and wait states leave about 80 of 133 MB/s.
	pciEfficiency = 0.60
	// pcixEfficiency is for PCI-X, whose split transactions give the bus free while a target thinks.
	pcixEfficiency = 0.85
	// pcieEfficiency is for PCIe after line coding: packet headers at 256-byte payloads, acknowledgements, flow control, descriptors.
	pcieEfficiency = 0.85
	// usb2Efficiency is 13 bulk packets of 512 bytes in each of 8000 micro-frames per second, of 480 Mb/s (USB 2.0, table 5-10).
	usb2Efficiency = 13 * 512 * 8 * 8000 / 480e6
	// usb3Efficiency is about 400 of the 500 MB/s that 5 Gb/s carry after coding.
	usb3Efficiency = 0.80
)

// GoodputRatio is the share of an Ethernet link's bit rate that TCP payload gets when every packet is full: payload / (mtu + 38).
// 1500 with IPv4 and timestamps gives 1448/1538 = 0.9415. An MTU that has no room for payload gives 0.
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
	return float64(payload) / float64(max(mtu, ethernetMinimum)+ethernetOverhead)
}

// Ceilings gives the rates that this host cannot pass, by link, frame format, bus and socket buffers, in the order of the interfaces. An
// unknown fact gives no ceiling. It computes only; it reads nothing.
//
// Names: link:IF, goodput:IF, bus:IF, window:receive@20ms, window:send@20ms.
func Ceilings(s *Snapshot) []Ceiling {
	var all []Ceiling
	// By index: an Interface is a large value.
	for i := range s.Interfaces {
		dev := &s.Interfaces[i]
		if c, ok := linkCeiling(s, dev); ok {
			all = append(all, c)
			if g, ok := goodputCeiling(s, dev); ok {
				all = append(all, g)
			}
		}
		if c, ok := busCeiling(s, dev); ok {
			all = append(all, c)
		}
	}
	for _, side := range []WindowSide{ReceiveWindow, SendWindow} {
		for _, rtt := range ceilingRTTs {
			if c, ok := WindowCeiling(s, rtt, side); ok {
				all = append(all, c)
			}
		}
	}
	return all
}

// paravirtual drivers report a speed that the hypervisor or the guest's user typed.
var paravirtual = []string{"virtio_net", "vmxnet3", "hv_netvsc", "xen_netfront", "vif", "ena", "gve", "vmw_vmxnet3"}

// emulated drivers are for real cards of old, which in a virtual machine are nobody's hardware: they may pass their nominal rate.
var emulated = []string{"e1000", "e1000e", "igb", "8139cp", "8139too", "pcnet32", "ne2k-pci", "tulip", "sky2", "rtl8139"}

// nominalSpeed tells that the speed and the bus of dev bound nothing: they are what the hypervisor's imitation says of itself.
func nominalSpeed(s *Snapshot, dev *Interface) bool {
	return dev.Virtual || slices.Contains(paravirtual, dev.Driver) || dev.Bus != nil && dev.Bus.Kind == "virtio" ||
		s.VirtualMachine() && slices.Contains(emulated, dev.Driver)
}

// linkCeiling is the bit rate of the wire. Half duplex does not halve it: either direction may have all of it, only not both.
func linkCeiling(s *Snapshot, dev *Interface) (Ceiling, bool) {
	if dev.SpeedBitsPerSec <= 0 || nominalSpeed(s, dev) {
		return Ceiling{}, false
	}
	why := fmt.Sprintf("%s links at %s", dev.Name, unit.BitRate(dev.SpeedBitsPerSec))
	if dev.Duplex == "half" {
		why += ", half duplex: both directions share it"
	}
	return Ceiling{
		Name:       "link:" + dev.Name,
		BitsPerSec: dev.SpeedBitsPerSec,
		Why:        why + " (/sys/class/net/" + dev.Name + "/speed)",
	}, true
}

// goodputCeiling is what TCP can deliver of the wire's rate. Over IPv4, as the larger of the two: a ceiling has to hold whatever is used.
func goodputCeiling(s *Snapshot, dev *Interface) (Ceiling, bool) {
	timestamps := true
	if n, ok := s.sysctlNumber("net.ipv4.tcp_timestamps"); ok {
		timestamps = n != 0
	}
	ratio := GoodputRatio(dev.MTUBytes, false, timestamps)
	if ratio == 0 {
		return Ceiling{}, false
	}
	options, with := timestampOption, "with timestamps"
	if !timestamps {
		options, with = 0, "without timestamps"
	}
	return Ceiling{
		Name:       "goodput:" + dev.Name,
		BitsPerSec: dev.SpeedBitsPerSec * ratio,
		Why: fmt.Sprintf("TCP payload over IPv4 %s at MTU %d: %s × (%d − 20 − 20 − %d) / (%d + 38) = %s × %.4f (IEEE 802.3 frame, RFC 791, RFC 9293, RFC 7323)",
			with, dev.MTUBytes, unit.BitRate(dev.SpeedBitsPerSec), dev.MTUBytes, options, dev.MTUBytes, unit.BitRate(dev.SpeedBitsPerSec), ratio),
	}, true
}

// busCeiling is what a card gets out of its slot. The figure for PCIe is per direction, the others are for both together. A card that shares the
// bus is told about and not divided by: nobody knows what the neighbours do.
func busCeiling(s *Snapshot, dev *Interface) (Ceiling, bool) {
	b := dev.Bus
	if b == nil || b.CapacityBitsPerSec <= 0 || nominalSpeed(s, dev) {
		return Ceiling{}, false
	}
	c := Ceiling{Name: "bus:" + dev.Name}
	var share float64
	var because string
	switch b.Kind {
	case "pcie":
		share, because = pcieEfficiency, fmt.Sprintf("PCIe x%d at %g GT/s, each direction, less packet headers and flow control", b.Width, b.SpeedGigatransfers)
	case "pci":
		share, because = pciEfficiency, fmt.Sprintf("conventional PCI, %d bits wide, shared by both directions and all its cards, less arbitration and wait states", b.Width)
	case "pci-x":
		share, because = pcixEfficiency, fmt.Sprintf("PCI-X, %d bits wide, shared by both directions and all its cards", b.Width)
	case "usb":
		share, because = usb3Efficiency, "USB, bulk transfers"
		if b.CapacityBitsPerSec <= 480e6 {
			share = usb2Efficiency
		}
	default:
		return Ceiling{}, false
	}
	c.BitsPerSec = b.CapacityBitsPerSec * share
	c.Why = fmt.Sprintf("%s nominal × %.2f: %s", unit.BitRate(b.CapacityBitsPerSec), share, because)
	if b.LimitedBy != "" {
		c.Why += "; the narrowest link is above the card, at " + b.LimitedBy
	}
	if n := len(b.SharedWith); n > 0 {
		c.Why += "; shared with " + strings.Join(b.SharedWith, ", ")
	}
	return c, true
}

// maxUnscaled is the largest window in bytes that a TCP header can tell without the window scale option (RFC 7323 §2.3).
const maxUnscaled = 65535

// maxScaled is the largest window in bytes that it can tell with it: a shift of at most 14.
const maxScaled = maxUnscaled << 14

// UsableWindow is how many bytes of payload one flow can have under way by this host's buffer limits, for sockets that leave sizing to the
// kernel: of tcp_rmem when it receives, of tcp_wmem when it sends. Why gives the formula. False: the setting is not known.
//
// For sending and for a receiver without window scaling it is a bound. For a receiver it is what a new flow gets: since Linux 6.6 the share is
// measured as payload per memory of the packets that arrive, and ends between 0.6 (single 1500-byte frames) and 0.9 (packets merged by GRO; seen
// on a veth with Linux 6.18). A route's window clamp and SO_RCVBUF/SO_SNDBUF of a program come on top and are not looked at here.
func UsableWindow(s *Snapshot, side WindowSide) (bytes int64, why string, ok bool) {
	switch side {
	case ReceiveWindow:
		bytes, why, ok = receiveWindow(s)
	case SendWindow:
		bytes, why, ok = sendWindow(s)
	}
	if !ok || bytes <= 0 {
		return 0, "", false
	}
	// Window scaling is agreed by both ends, so a host without it neither offers nor uses more than the 16 bits of the header.
	if n, known := s.sysctlNumber("net.ipv4.tcp_window_scaling"); known && n == 0 && bytes > maxUnscaled {
		return maxUnscaled, "tcp_window_scaling=0 leaves the 16-bit window of the TCP header, 65535 bytes (RFC 7323)", true
	}
	if bytes > maxScaled {
		return maxScaled, why + ", of which the header can tell 1 GiB (RFC 7323)", true
	}
	return bytes, why, true
}

// receiveWindow is UsableWindow of a receiver, before the bounds of the header.
func receiveWindow(s *Snapshot) (int64, string, bool) {
	value, ok := s.Setting("sysctl:net.ipv4.tcp_rmem")
	if !ok {
		return 0, "", false
	}
	_, def, space, ok := Triple(value)
	if !ok {
		return 0, "", false
	}
	what := "tcp_rmem maximum"
	// Without moderation the kernel never grows a buffer past the default (tcp_rcv_space_adjust).
	if n, known := s.sysctlNumber("net.ipv4.tcp_moderate_rcvbuf"); known && n == 0 {
		space, what = def, "tcp_rmem default (tcp_moderate_rcvbuf=0)"
	}
	if space <= 0 {
		return 0, "", false
	}
	// Linux 6.6 replaced tcp_adv_win_scale by a ratio measured per socket; it starts at one half (TCP_DEFAULT_SCALING_RATIO).
	if procfs.KernelAtLeast(s.Kernel, 6, 6) {
		return space / 2, fmt.Sprintf("%s %s, half of it payload until the kernel has measured more (tcp_scaling_ratio, Linux ≥ 6.6)", what, unit.Bytes(space)), true
	}
	scale := int64(1)
	if !procfs.KernelAtLeast(s.Kernel, 3, 4) {
		scale = 2 // the default until then
	}
	if n, known := s.sysctlNumber("net.ipv4.tcp_adv_win_scale"); known && n >= -31 && n <= 31 {
		scale = n
	}
	// tcp_win_from_space of Linux < 6.6.
	var window int64
	if scale > 0 {
		window = space - space>>scale
	} else {
		window = space >> -scale
	}
	return window, fmt.Sprintf("%s %s, tcp_adv_win_scale=%d leaves %s of it for payload (ip-sysctl.rst)", what, unit.Bytes(space), scale, unit.Bytes(window)), true
}

// sendWindow is UsableWindow of a sender, before the bounds of the header. The overhead of the kernel is in the space as well (sk_wmem_queued counts
// whole buffers), but with segmentation offload it is a few percent, so the maximum stands as the bound that it is.
func sendWindow(s *Snapshot) (int64, string, bool) {
	value, ok := s.Setting("sysctl:net.ipv4.tcp_wmem")
	if !ok {
		return 0, "", false
	}
	_, _, space, ok := Triple(value)
	if !ok || space <= 0 {
		return 0, "", false
	}
	return space, fmt.Sprintf("tcp_wmem maximum %s holds everything sent and not yet acknowledged", unit.Bytes(space)), true
}

// WindowCeiling is the rate that this host's socket buffers carry over a path of that round trip: usable window / RTT. False: the
// setting is not known, or rtt is not positive.
func WindowCeiling(s *Snapshot, rtt time.Duration, side WindowSide) (Ceiling, bool) {
	window, why, ok := UsableWindow(s, side)
	if !ok || rtt <= 0 {
		return Ceiling{}, false
	}
	// A window per round trip, in bits: the sender has to wait for the acknowledgement before the next one.
	rate := float64(window) * 8 / rtt.Seconds()
	if math.IsInf(rate, 0) {
		return Ceiling{}, false
	}
	return Ceiling{
		Name:       fmt.Sprintf("window:%s@%s", side, rtt),
		BitsPerSec: rate,
		Why:        fmt.Sprintf("%s: %s per %s round trip", why, unit.Bytes(window), unit.FormatSeconds(rtt.Seconds())),
	}, true
}
