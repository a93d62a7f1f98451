package host

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/kernel/hostfs"
	"github.com/linerate/linerate/internal/kernel/procfs"
)

// readInterruptTable reads /proc/interrupts once for all NICs. The kernel takes long to print it on
// large hosts (a line for each interrupt, a column for each CPU), so readings of the counters do
// not include it.
func readInterruptTable(src *source, said *notes) map[int]procfs.Interrupt {
	b, err := src.Read("proc/interrupts")
	if err != nil {
		if src.Live() {
			said.add("interrupts", err)
		}
		return nil
	}
	table, err := procfs.ParseInterrupts(b)
	said.add("interrupts", err)
	return table
}

// readInterrupts returns the interrupts of one card, by number. The numbers come from msi_irqs of
// its PCI function (sysfs-bus-pci, since Linux 3.2), for a virtio card one directory up; without
// it, from the one line of its slot; on buses without either, from the lines that bear its name.
func readInterrupts(src *source, table map[int]procfs.Interrupt, name, device string) []Interrupt {
	if len(table) == 0 || device == "" {
		return nil
	}
	// The device decides, not the names of the lines: drivers name their interrupts after the
	// interface as it was named when the driver was loaded, after the bus, or after nothing.
	var numbers []int
	for _, dir := range []string{device, path.Dir(device)} {
		names, _ := src.List(dir + "/msi_irqs")
		for _, n := range names {
			if irq, err := strconv.Atoi(n); err == nil {
				numbers = append(numbers, irq)
			}
		}
		if len(numbers) > 0 || !strings.HasPrefix(dir[strings.LastIndexByte(dir, '/')+1:], "virtio") {
			break
		}
	}
	// A card without message-signalled interrupts has the one line of its slot, possibly shared; 0
	// means no line.
	if line, ok := src.Number(device + "/irq"); ok && line > 0 && len(numbers) == 0 {
		numbers = append(numbers, int(line))
	}
	if len(numbers) == 0 {
		for irq, i := range table {
			if slices.ContainsFunc(strings.Split(i.Name, ", "),
				func(action string) bool { return belongs(action, name) }) {
				numbers = append(numbers, irq)
			}
		}
	}
	slices.Sort(numbers)
	var found []Interrupt
	for _, irq := range numbers {
		// A card allocates more vectors than it uses; those without a line have no handler.
		line, ok := table[irq]
		if !ok {
			continue
		}
		// Two files for each interrupt: 256 on a host with two cards of 64 queues. So only those of
		// cards are read.
		dir := fmt.Sprintf("proc/irq/%d/", irq)
		i := Interrupt{Number: irq, Name: line.Name, Affinity: src.Optional(dir + "smp_affinity_list"),
			EffectiveAffinity: src.Optional(dir + "effective_affinity_list")}
		for _, c := range line.Counts {
			i.Counts = append(i.Counts, CPUCount{CPU: c.CPU, Total: c.Count})
		}
		found = append(found, i)
	}
	return found
}

// belongs reports whether an interrupt named after interfaces belongs to this one: eth1 has eth1
// and eth1-rx-0, but not eth10.
func belongs(action, name string) bool {
	rest, ok := strings.CutPrefix(action, name)
	return ok && (rest == "" || rest[0] == '-' || rest[0] == ':')
}

// readNAPI reads how an interface polls (sysfs-class-net: napi_defer_hard_irqs, gro_flush_timeout
// in nanoseconds, threaded). Nil: the interface has no such settings, or the kernel is older than
// 5.9, which had only the timeout.
func readNAPI(src *source, dir string) *NAPI {
	rounds, ok := src.Number(dir + "napi_defer_hard_irqs")
	if !ok {
		return nil
	}
	n := &NAPI{DeferHardIRQs: uint64(max(rounds, 0)), Threaded: src.Optional(dir+"threaded") == "1"}
	if ns, ok := src.Number(dir + "gro_flush_timeout"); ok {
		n.GROFlushTimeoutSeconds = float64(ns) / 1e9
	}
	return n
}

// CardInterrupts holds the interrupts of one NIC.
type CardInterrupts struct {
	Interface  string
	Interrupts []Interrupt // by number, counts since boot
}

// CardInterrupts reads the interrupts of the NICs by CPU. It is a reading like [Root.Counters], but
// separate, because the kernel prints the interrupts of all devices for it. Interfaces that are
// functions of one device (representors of a switch) may have the same interrupts. On systems other
// than Linux a live root returns errors.ErrUnsupported.
func (r Root) CardInterrupts() ([]CardInterrupts, error) {
	if r.live() && !hostfs.LiveSupported {
		return nil, fmt.Errorf("read interrupts: %w", errors.ErrUnsupported)
	}
	src, err := r.open()
	if err != nil {
		return nil, err
	}
	defer src.close()
	var said notes
	table := readInterruptTable(src, &said)
	names, err := src.List("sys/class/net")
	if err = errors.Join(append(said.causes, err)...); err != nil {
		return nil, fmt.Errorf("read interrupts: %w", err)
	}
	var cards []CardInterrupts
	for _, name := range names {
		device, ok := src.Resolve("sys/class/net/" + name + "/device")
		if !ok || !src.sysfsShows(name) {
			continue
		}
		if found := readInterrupts(src, table, name, device); len(found) > 0 {
			cards = append(cards, CardInterrupts{Interface: name, Interrupts: found})
		}
	}
	return cards, nil
}
