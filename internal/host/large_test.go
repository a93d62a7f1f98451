package host_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/host"
)

// large is a host with two cards of 64 queues in a bond, forty VLANs and 64 processors.
func large(t testing.TB) host.Root {
	const cpus, queues, vlans = 64, 64, 40
	files := stack(vlans)
	var interrupts, cpuinfo strings.Builder
	for cpu := range cpus {
		fmt.Fprintf(&interrupts, "       CPU%d", cpu)
		fmt.Fprintf(&cpuinfo, "processor\t: %d\nmodel name\t: Some Server CPU\ncpu MHz\t\t: 2000.0\n\n", cpu)
		dir := fmt.Sprintf("sys/devices/system/cpu/cpu%d/", cpu)
		files[dir+"cpufreq/scaling_governor"], files[dir+"cpufreq/cpuinfo_max_freq"],
			files[dir+"cpufreq/scaling_cur_freq"] = "performance", "3500000", "2000000"
		for n, name := range []string{"POLL", "C1", "C1E", "C6"} {
			state := fmt.Sprintf("%scpuidle/state%d/", dir, n)
			files[state+"name"], files[state+"latency"], files[state+"disable"] = name, fmt.Sprint(n*10), "0"
		}
	}
	for card := range 2 {
		at := fmt.Sprintf("sys/devices/pci0000:00/0000:03:00.%d", card)
		dir := fmt.Sprintf("%s/net/eth%d", at, card)
		for q := range queues {
			irq := 100 + card*queues + q
			files[fmt.Sprintf("%s/msi_irqs/%d", at, irq)] = "msix"
			files[fmt.Sprintf("proc/irq/%d/smp_affinity_list", irq)] = fmt.Sprint(q)
			files[fmt.Sprintf("proc/irq/%d/effective_affinity_list", irq)] = fmt.Sprint(q)
			files[fmt.Sprintf("%s/queues/rx-%d/rps_cpus", dir, q)],
				files[fmt.Sprintf("%s/queues/rx-%d/rps_flow_cnt", dir, q)] = "00000000,00000000", "0"
			files[fmt.Sprintf("%s/queues/tx-%d/xps_cpus", dir, q)],
				files[fmt.Sprintf("%s/queues/tx-%d/xps_rxqs", dir, q)] = "00000000,00000001", "0"
			fmt.Fprintf(&interrupts, "\n%4d:%s   PCI-MSIX-0000:03:00.%d   %d-edge      eth%d-TxRx-%d", irq,
				strings.Repeat("     123456", cpus), card, q, card, q)
		}
	}
	files["proc/interrupts"], files["proc/cpuinfo"] = interrupts.String(), cpuinfo.String()
	return tree(t, files)
}

// TestLarge: nothing of a large host is left out, and the layers of forty VLANs come down to two
// cards.
func TestLarge(t *testing.T) {
	s, err := large(t).Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Interfaces) != 44 || len(s.CPUs) != 64 || s.Idle == nil || len(s.Idle.States) != 4 {
		t.Errorf("%d interfaces, %d CPUs, idle %+v", len(s.Interfaces), len(s.CPUs), s.Idle)
	}
	for _, i := range s.Interfaces {
		switch i.Kind {
		case "physical":
			if len(i.Interrupts) != 64 || len(i.Queues) != 128 || len(i.Interrupts[63].Counts) != 64 ||
				i.Interrupts[63].EffectiveAffinity != "63" {
				t.Errorf("%s: %d interrupts, %d queues", i.Name, len(i.Interrupts), len(i.Queues))
			}
		default:
			if len(i.Carriers) != 2 {
				t.Errorf("%s is carried by %v", i.Name, i.Carriers)
			}
		}
	}
}

// TestLargeInterrupts: every CPU that served an interrupt is listed, and only for cards.
func TestLargeInterrupts(t *testing.T) {
	cards, err := large(t).CardInterrupts()
	if err != nil {
		t.Fatal(err)
	}
	if len(cards) != 2 || cards[1].Interface != "eth1" || len(cards[1].Interrupts) != 64 ||
		len(cards[1].Interrupts[63].Counts) != 64 {
		t.Errorf("%d cards: %+v", len(cards), cards)
	}
}

func BenchmarkLargeInterrupts(b *testing.B) {
	root := large(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := root.CardInterrupts(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLarge(b *testing.B) {
	root := large(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := root.Snapshot(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
