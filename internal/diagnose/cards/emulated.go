package cards

import (
	"fmt"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host"
)

// The drivers of NICs that hypervisors emulate. The NICs of oldImitated are so old that no virtual
// machine gets a physical one.
var (
	oldImitated = []string{"e1000", "8139cp", "8139too", "pcnet32", "ne2k-pci", "tulip", "rtl8139"}
	// costliest access several registers for each packet; later NICs share a ring in memory with the
	// driver and need one access for many packets.
	costliest   = []string{"8139cp", "8139too", "rtl8139", "ne2k-pci"}
	newImitated = []string{"e1000e", "igb"}
	// boards are the PCI subsystem numbers of emulated NICs: those of Red Hat for QEMU, of VMware,
	// of Oracle for VirtualBox, of Microsoft for Hyper-V; and Intel's board 0, which QEMU's e1000e
	// has and no physical NIC.
	boards = []string{"1af4:", "15ad:", "80ee:", "1414:", "8086:0000"}
)

const (
	// exitWork is the share of kernel time of a CPU that is typical for a NIC with a trap into the
	// hypervisor at each register access.
	exitWork = 0.5
	// poorPackets, in frames per second, is many times less than a current CPU handles with a
	// paravirtual NIC.
	poorPackets = 150_000
)

// emulatedNIC finds a virtual machine with an emulated NIC, where each register access is a trap
// into the hypervisor.
//
// The emulation is a fact. Whether it matters depends on the CPU: saturated, mostly with kernel
// time, at a rate that a paravirtual NIC reaches with a fraction of it. A machine with an emulated
// CPU (QEMU without hardware acceleration) is slow in everything, so nothing there counts against a
// NIC that needs few register accesses.
func emulatedNIC(s *evidence.Span) *evidence.Finding {
	if s.Host == nil || !s.Host.VirtualMachine() {
		return nil
	}
	return worst(cardsOf(s), imitation)
}

// imitation examines one NIC of a virtual machine.
func imitation(c card) *evidence.Finding {
	s := c.s
	isOld, isBoard := slices.Contains(oldImitated, c.Driver), c.hypervisorsBoard()
	// The newer drivers are as likely to drive a physical NIC that is passed through, and igb more
	// so: it provides virtual functions for that.
	unknownBoard := c.Driver == "e1000e" && (c.Card == nil || c.Card.Subsystem == "")
	if !isOld && !(slices.Contains(newImitated, c.Driver) && isBoard) && !unknownBoard {
		return nil
	}
	x := &evidence.Finding{
		Code: evidence.EmulatedNIC, Severity: evidence.Notice, Where: where(s),
		Title: fmt.Sprintf("NIC %s is emulated for the driver %s, in a virtual machine (%s).", c.Name,
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
			"Not measured: whether it is a physical NIC that is passed through; the board number does not show it.")
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
		case imitatedProcessor(s.Host) && !slices.Contains(costliest, c.Driver):
			x.Rejected = append(x.Rejected,
				fmt.Sprintf("Not shown to cost anything: the CPU of this machine is emulated too, "+
					"so its load of %s says nothing about the NIC.", evidence.Percent(cpu.Busy())))
		case cpu.Known && cpu.Busy() >= evidence.FullProcessor && kernel >= exitWork && frames > 1000 &&
			frames < poorPackets && !(s.Run != nil && !s.Loaded()):
			x.Severity = evidence.Warning
			x.Title += fmt.Sprintf(" CPU %d is saturated at %s frames per second.", cpu.CPU, evidence.Count(frames))
		default:
			x.Rejected = append(x.Rejected,
				fmt.Sprintf("Not shown to cost anything now: the busiest CPU was busy for %s of the time.",
					evidence.Percent(cpu.Busy())))
		}
	}
	x.Remedy.Text = "Give the machine a paravirtual NIC (virtio-net, vmxnet3, " +
		"netvsc) in the settings of the hypervisor, or pass through a physical one (SR-IOV). Plan for it: " +
		"the interface gets another name or address."
	x.Remedy.Proof = "Repeat the run with each NIC alternately: CPU time per gigabyte falls several times."
	return x
}

// hypervisorsBoard reports whether the board number is that of a hypervisor.
func (c card) hypervisorsBoard() bool {
	return c.Card != nil &&
		slices.ContainsFunc(boards, func(board string) bool { return strings.HasPrefix(c.Card.Subsystem, board) })
}

// imitatedProcessor reports whether the machine runs without hardware acceleration: QEMU that
// offers no KVM clock (package hypervisor).
func imitatedProcessor(h *host.Snapshot) bool {
	return h.Virtualization == "qemu" || h.Virtualization == "qemu+container"
}
