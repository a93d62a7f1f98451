package cards

import (
	"fmt"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host"
)

// imitated are the drivers of cards of which hypervisors have imitations. The first are for cards
// so old that nobody hands a real one to a virtual machine.
var (
	oldImitated = []string{"e1000", "8139cp", "8139too", "pcnet32", "ne2k-pci", "tulip", "rtl8139"}
	// dearest are those that touch several registers for each packet; later cards share a ring in
	// memory with the driver and touch one for many.
	dearest     = []string{"8139cp", "8139too", "rtl8139", "ne2k-pci"}
	newImitated = []string{"e1000e", "igb"}
	// boards are the numbers that hypervisors put on their imitations (PCI subsystem): those of Red
	// Hat for QEMU, of VMware, of Oracle for VirtualBox, of Microsoft for Hyper-V; and the board 0
	// of Intel, which QEMU's e1000e is and no real one.
	boards = []string{"1af4:", "15ad:", "80ee:", "1414:", "8086:0000"}
)

const (
	// exitWork is the part of a processor's time in the kernel that goes with a card each of whose
	// registers is a trap into the hypervisor.
	exitWork = 0.5
	// poorPackets is what a processor of today handles many times over with a paravirtual card, in
	// frames per second.
	poorPackets = 150_000
)

// emulatedNIC: a virtual machine drives an imitation of a real card, of which each touch of a
// register is a trap into the hypervisor.
//
// The imitation is a fact. Whether it matters shows the processor: full, mostly of kernel time, at
// a rate that a paravirtual card passes with a fraction of it. A machine whose processor is
// imitated as well (QEMU without hardware acceleration) is slow in everything, so nothing there
// speaks against a card that is cheap to drive.
func emulatedNIC(s *evidence.Span) *evidence.Finding {
	if s.Host == nil || !s.Host.VirtualMachine() {
		return nil
	}
	return worst(cardsOf(s), imitation)
}

// imitation looks at one card of a virtual machine.
func imitation(c card) *evidence.Finding {
	s := c.s
	isOld, isBoard := slices.Contains(oldImitated, c.Driver), c.hypervisorsBoard()
	// Of the newer ones a real card that was handed over is as likely, of igb more so: it makes
	// parts of itself for that.
	unsaid := c.Driver == "e1000e" && (c.Card == nil || c.Card.Subsystem == "")
	if !isOld && !(slices.Contains(newImitated, c.Driver) && isBoard) && !unsaid {
		return nil
	}
	x := &evidence.Finding{
		Code: evidence.EmulatedNIC, Severity: evidence.Notice, Where: where(s),
		Title: fmt.Sprintf("Card %s is an imitation of one for the driver %s, in a virtual machine (%s).", c.Name,
			c.Driver, s.Host.Virtualization),
		Evidence: []evidence.Evidence{
			{Name: "driver", Value: c.Driver, Source: c.source("ethtool -i")},
			{Name: "virtual machine", Value: s.Host.Virtualization, Source: "DMI, CPUID (" + s.Side + ")"},
		},
		Confidence: evidence.Combine(0.5, evidence.When(isOld, 0.6), evidence.When(isBoard, 0.7)),
	}
	if isBoard {
		x.Evidence = append(x.Evidence,
			evidence.Evidence{Name: "board", Value: c.Card.Subsystem, Source: c.source("PCI subsystem")})
	} else if !isOld {
		x.Rejected = append(x.Rejected,
			"Not measured: whether it is a real card that was handed to this machine; the board does not say.")
	}
	// By the driver's count and not by bytes: a bundle that goes down in one piece costs one trap.
	frames := s.PerSecond(c.count("rx_packets") + c.count("tx_packets"))
	if !s.SinceBoot && s.Seconds > 0 {
		cpu := busiest(s)
		kernel := cpu.System + cpu.IRQ + cpu.SoftIRQ
		x.Evidence = append(x.Evidence, evidence.Evidence{Name: "frames per second, both directions", Value: frames,
			Unit:   "packets_per_second",
			Source: c.source("rx_packets + tx_packets")})
		if cpu.Known {
			x.Evidence = append(x.Evidence,
				evidence.Evidence{Name: fmt.Sprintf("kernel time of the busiest processor, CPU %d", cpu.CPU),
					Value: kernel, Unit: "ratio",
					Source: "/proc/stat (" + s.Side + ")"})
		}
		switch {
		case imitatedProcessor(s.Host) && !slices.Contains(dearest, c.Driver):
			x.Rejected = append(x.Rejected,
				fmt.Sprintf("Not shown to cost anything: the processor of this machine is imitated too, so that %s of its time say nothing of "+
					"the card.", evidence.Percent(cpu.Busy())))
		case cpu.Known && cpu.Busy() >= evidence.FullProcessor && kernel >= exitWork && frames > 1000 &&
			frames < poorPackets && !(s.Run != nil && !s.Loaded()):
			x.Severity = evidence.Warning
			x.Title += fmt.Sprintf(" CPU %d is full at %s frames per second.", cpu.CPU, evidence.Count(frames))
		default:
			x.Rejected = append(x.Rejected,
				fmt.Sprintf("Not shown to cost anything now: the busiest processor worked %s of the time.",
					evidence.Percent(cpu.Busy())))
		}
	}
	x.Remedy.Text = "Give the machine a paravirtual card (virtio-net, vmxnet3, netvsc) in the hypervisor's settings, or hand it a real one (SR-IOV). The interface " +
		"gets another name or address, so plan for it."
	x.Remedy.Proof = "The same run with both cards in the machine by turns: processor time for each gigabyte falls by several times."
	return x
}

// hypervisorsBoard tells that the board says who made it: a hypervisor.
func (c card) hypervisorsBoard() bool {
	return c.Card != nil &&
		slices.ContainsFunc(boards, func(board string) bool { return strings.HasPrefix(c.Card.Subsystem, board) })
}

// imitatedProcessor tells a machine without hardware acceleration: QEMU that offers no clock of KVM
// (package hypervisor).
func imitatedProcessor(h *host.Snapshot) bool {
	return h.Virtualization == "qemu" || h.Virtualization == "qemu+container"
}
