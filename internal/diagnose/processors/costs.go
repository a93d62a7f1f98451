package processors

import (
	"fmt"
	"slices"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
)

// cost is a part of the busy time that a profile measures, and from which share on it is worth a
// notice and a warning. The lower end of the interval must reach them, so that few samples find
// nothing.
//
// The shares are of all busy time. Copies and buffers are a third of it on a sound host that moves
// bulk data at full speed; checksums, locks and programs of BPF are next to nothing there.
type cost struct {
	code          evidence.Code
	stages, work  []string
	notice, costs float64
	what          string // completes "The CPUs spend … of their busy time"
	remedy, proof string
}

var (
	copyCost = cost{code: evidence.CopyCost, work: []string{"copy"}, notice: 0.4, costs: 0.55,
		what: "on copying bytes between programs and the kernel",
		remedy: "Let programs avoid the copy: sendfile(2) or splice(2) for files, MSG_ZEROCOPY for large sends, " +
			"larger writes otherwise. A second flow on another CPU copies beside it.",
		proof: "`linerate measure --send sendfile` sends without the copy: the rate rises, and the copy leaves the profile."}
	checksumCost = cost{code: evidence.ChecksumInSoftware, work: []string{"checksum"}, notice: 0.05, costs: 0.12,
		what: "on checksums that a NIC can compute",
		remedy: "Switch the checksum offload of the NIC on. Where it is on, a tunnel, a bridge or a NIC without it " +
			"makes the kernel compute them.",
		proof: "Repeat the run with the offload on and off alternately: the share of checksums follows, other stages " +
			"do not."}
	driverCost = cost{code: evidence.DriverPollCost, stages: []string{"driver rx", "driver tx"}, notice: 0.35, costs: 0.5,
		what: "in the driver of a NIC",
		remedy: "Let the NIC hand over fewer, larger packets: receive and segmentation offloads, a larger MTU end to " +
			"end. Let more CPUs poll: more queues. In a virtual machine the device is emulated: use a virtio or a " +
			"passed-through NIC.",
		proof: "The share of the driver falls when packets get larger at the same rate, and not when the firewall is off."}
	allocationCost = cost{code: evidence.AllocationCost, work: []string{"packet buffers", "memory", "DMA"}, notice: 0.4,
		costs: 0.55,
		what:  "on allocating, mapping and freeing memory for packets",
		remedy: "Let packets stay on one CPU from the interrupt to the program (interrupt affinity, RFS), so that memory " +
			"is freed where it was allocated. Use a driver with page pools, and larger packets (GRO). An IOMMU in " +
			"translated mode maps each buffer: iommu.passthrough=1 ends that, with less protection.",
		proof: "Pin the program to the CPU of its queue: the share of memory falls, the others do not."}
	bpfCost = cost{code: evidence.BPFCost, stages: []string{"BPF", "XDP"}, notice: 0.15, costs: 0.35,
		what: "in BPF programs",
		remedy: "`bpftool prog` with kernel.bpf_stats_enabled=1 shows the run time of each program. Detach those that " +
			"have no user; ask the owner of the others (a container network, a monitor) for a cheaper one.",
		proof: "Detach the program for a few seconds: time per packet falls by its share."}
)

// rule returns the rule that reports a cost. It needs a profile, which is only taken where a CPU is
// the limit. Inside one machine a CPU always is, so that there only a host at its normal work
// counts.
func (c cost) rule() func(*evidence.Span) *evidence.Finding {
	return func(s *evidence.Span) *evidence.Finding {
		if s.Profile == nil || s.Run != nil && !realCard(s) {
			return nil
		}
		share := s.Profile.Share(c.stages...)
		if len(c.work) > 0 {
			share = s.Profile.WorkShare(c.work...)
		}
		if share.Low < c.notice {
			return nil
		}
		x := profiledFinding(s, c.code, share, c.costs)
		x.Title = fmt.Sprintf("The CPUs of the %s host spend %s of their busy time (%s to %s) %s.", s.Side,
			evidence.Percent(share.Share), evidence.Percent(share.Low), evidence.Percent(share.High), c.what)
		x.Remedy.Text, x.Remedy.Proof = c.remedy, c.proof
		if c.code == evidence.ChecksumInSoftware {
			checksumKnobs(s, x)
		}
		return x
	}
}

// profiledFinding has what the findings of a profile share: the functions that take most, and what
// is ruled out by their shares.
func profiledFinding(s *evidence.Span, code evidence.Code, share evidence.StageShare, costs float64) *evidence.Finding {
	p := s.Profile
	source := fmt.Sprintf("%d samples of %s (%s)", p.Samples, p.Event, s.Side)
	x := &evidence.Finding{Code: code, Severity: evidence.Notice, Where: s.Side,
		Evidence: []evidence.Evidence{
			{Name: "share of the busy time", Value: share.Share, Unit: "ratio", Source: source},
			{Name: "its lower end at 95 %", Value: share.Low, Unit: "ratio", Source: source}},
		Confidence: evidence.Combine(0.6, evidence.When(p.Samples >= 1000, 0.4), evidence.When(s.Loaded(), 0.3))}
	if share.Low >= costs {
		x.Severity = evidence.Warning
	}
	for _, f := range p.Functions[:min(3, len(p.Functions))] {
		x.Evidence = append(x.Evidence, evidence.Evidence{Name: fmt.Sprintf("share of %s (%s)", f.Name, f.Stage),
			Value: f.Share, Unit: "ratio", Source: source})
	}
	for _, other := range p.Stages[:min(2, len(p.Stages))] {
		x.Rejected = append(x.Rejected, fmt.Sprintf("The stage %s takes %s (%s to %s) of the busy time.", other.Name,
			evidence.Percent(other.Share), evidence.Percent(other.Low), evidence.Percent(other.High)))
	}
	return x
}

// checksumKnobs proposes the checksum offloads that are off and may be on.
func checksumKnobs(s *evidence.Span, x *evidence.Finding) {
	if s.Host == nil {
		return
	}
	for _, card := range s.Host.Interfaces {
		for _, feature := range []string{"rx-checksum", "tx-checksum-ip-generic", "tx-checksum-ipv4", "tx-checksum-ipv6"} {
			if f, known := card.Features[feature]; known && !f.On && !f.Fixed && !card.Virtual {
				x.Evidence = append(x.Evidence, evidence.Evidence{Name: feature + " of " + card.Name,
					Value: "off, may be changed", Source: "ethtool features (" + s.Side + ")"})
				x.Remedy.Add(evidence.Candidate{Knob: knob.ID("ethtool:" + card.Name + "/feature." + feature), Side: s.Side,
					Levels: []knob.Value{"on"}, Why: "the NIC computes checksums that the CPU computes now"})
			}
		}
	}
}

// Shares of the time from which on waiting for locks is worth a notice and a warning. A sound host
// at full speed waits for 1 % of its time.
const (
	waitsNotice = 0.05
	waitsCost   = 0.15
)

// spinning are the kinds of locks whose waiters keep a CPU.
var spinning = []string{"spinlock", "rwlock read", "rwlock write"}

// lockContention finds CPUs that wait for each other. Waits are counted exactly where the kernel
// can (Linux 5.19); samples in the slow paths of locks show the same elsewhere, except in a guest
// whose waiters halt. A share of _raw_spin_lock is no evidence: that is a free lock, or a timer's
// sample.
func lockContention(s *evidence.Span) *evidence.Finding {
	p := s.Profile
	if p == nil || s.Run != nil && !realCard(s) {
		return nil
	}
	waits, busy := 0.0, 0.0
	for _, c := range judged(s) {
		busy += c.Busy()
	}
	for _, w := range p.Waits {
		if slices.Contains(spinning, w.Kind) {
			waits += w.Ratio
		}
	}
	var share evidence.StageShare
	if p.Spinning != nil {
		share = *p.Spinning
	}
	counted := busy > 0 && waits/busy > share.Low
	if counted { // exact: its interval is a point
		share.Share, share.Low, share.High = waits/busy, waits/busy, waits/busy
	}
	if share.Low < waitsNotice {
		return nil
	}
	x := profiledFinding(s, evidence.LockContention, share, waitsCost)
	x.Title = fmt.Sprintf("The CPUs of the %s host spend %s of their busy time waiting for locks", s.Side,
		evidence.Percent(share.Share))
	for i, w := range p.Waits[:min(3, len(p.Waits))] {
		if i == 0 {
			x.Title += fmt.Sprintf(", most of it in %s (%s, called by %s)", w.Function, w.Stage, w.Callers)
		}
		x.Evidence = append(x.Evidence,
			evidence.Evidence{Name: fmt.Sprintf("waits for a %s in %s < %s", w.Kind, w.Function, w.Callers),
				Value: w.PerSecond, Unit: "waits_per_second", Source: "tracepoint lock:contention_begin (" + s.Side + ")"},
			evidence.Evidence{Name: "time of these waits, of one CPU", Value: w.Ratio, Unit: "ratio",
				Source: "tracepoint lock:contention_end (" + s.Side + ")"})
	}
	x.Title += "."
	x.Remedy.Text = "Give each CPU what the lock protects: a socket for each thread (SO_REUSEPORT) instead of one for " +
		"all, a queue of the NIC and of the qdisc for each CPU (mq instead of one root qdisc), conntrack off where " +
		"nothing needs it. Fewer threads on one socket wait less."
	x.Remedy.Proof = "Halve the threads on the named place: waits per second fall more than by half, and the rate " +
		"hardly falls."
	return x
}
