package processors

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host"
)

// busyRemote is how busy a CPU far from the NIC must be for the distance to matter: below that, it
// has time to wait for memory.
const busyRemote = 0.80

// numaMisplaced finds interrupts of the NIC, or readers of its data, on another node than the
// NIC's.
//
// Every packet then crosses the link between the sockets, at worst twice. On a host with one node
// the kernel reports −1.
func numaMisplaced(s *evidence.Span) *evidence.Finding {
	if s.Host == nil || s.End == nil || s.End.Card == nil || s.End.Card.NUMANode == nil || *s.End.Card.NUMANode < 0 {
		return nil
	}
	card, home := s.End.Card, *s.End.Card.NUMANode
	nodes := make(map[int]int)
	var local []int
	for _, c := range s.Host.CPUs {
		nodes[c.ID] = c.NUMANode
		if c.NUMANode == home {
			local = append(local, c.ID)
		}
	}
	if len(local) == 0 || len(local) == len(s.Host.CPUs) {
		return nil
	}
	var remote []host.Interrupt
	var served []int
	for _, irq := range card.Interrupts {
		for _, cpu := range cpuList(irq.EffectiveAffinity) {
			// An interrupt that did not occur in the span costs nothing.
			if node, ok := nodes[cpu]; ok && node != home && s.Count("irq."+strconv.Itoa(irq.Number)) > 0 {
				remote, served = append(remote, irq), append(served, cpu)
				break
			}
		}
	}
	var workers []int
	for _, p := range s.End.Run.Placement {
		if node, ok := nodes[p.CPU]; ok && node != home {
			workers = append(workers, p.CPU)
		}
	}
	if len(remote) == 0 && len(workers) == 0 {
		return nil
	}
	x := &evidence.Finding{
		Code: evidence.NUMAMisplaced, Severity: evidence.Notice, Where: s.Side, Confidence: 0.6,
		Title: fmt.Sprintf("%s of the %s host is on node %d, but %d of its interrupts and %d threads of the test "+
			"run on other nodes.",
			card.Name, s.Side, home, len(remote), len(workers)),
		Evidence: []evidence.Evidence{
			{Name: "node of " + card.Name, Value: float64(home),
				Source: s.Source("/sys/class/net/" + card.Name + "/device/numa_node")},
			{Name: "interrupts served on other nodes", Value: float64(len(remote)), Unit: "interrupts",
				Source: s.Source("/proc/irq/*/effective_affinity_list")},
			{Name: "threads of the test on other nodes", Value: float64(len(workers)), Unit: "threads",
				Source: s.Source("placement of the run")},
		},
	}
	for _, c := range judged(s) {
		if c.Busy() >= busyRemote && (slices.Contains(served, c.CPU) || slices.Contains(workers, c.CPU)) {
			x.Severity, x.Confidence = evidence.Warning, 0.75
			x.Evidence = append(x.Evidence, classes(s, c)...)
			break
		}
	}
	if x.Severity == evidence.Notice {
		x.Rejected = append(x.Rejected,
			fmt.Sprintf("Not shown to cost anything: no CPU away from the NIC was busier than %s.",
				evidence.Percent(busyRemote)))
	} else {
		x.Rejected = append(x.Rejected, fmt.Sprintf("Not too few CPUs near the NIC: node %d has %d.", home,
			len(local)))
	}
	x.Remedy.Text = fmt.Sprintf(
		"Serve the interrupts of %s on the CPUs of node %d, and run its programs there (numactl "+
			"--cpunodebind=%d).", card.Name, home, home)
	x.Remedy.Proof = "Pin interrupts and threads to the NIC's node and away from it, alternately: " +
		"the difference grows with the rate and vanishes at a tenth of it."
	for i, irq := range remote[:min(len(remote), 5)] {
		x.Remedy.Add(evidence.Candidate{Knob: knob.ID("irq:" + strconv.Itoa(irq.Number) + "/affinity"), Side: s.Side,
			Levels: []knob.Value{knob.Value(strconv.Itoa(local[i%len(local)]))},
			Why:    "memory of the NIC's node is local to this CPU"})
	}
	return x
}

// cpuList parses a list of CPUs as the kernel prints it: "0-3,8". It ignores invalid parts and cuts
// a range at 1024.
func cpuList(text string) (cpus []int) {
	for part := range strings.SplitSeq(text, ",") {
		low, high, ranged := strings.Cut(strings.TrimSpace(part), "-")
		a, err := strconv.Atoi(low)
		if err != nil {
			continue
		}
		b := a
		if ranged {
			if b, err = strconv.Atoi(high); err != nil {
				continue
			}
		}
		for c := a; c <= min(b, a+1023); c++ {
			cpus = append(cpus, c)
		}
	}
	return cpus
}
