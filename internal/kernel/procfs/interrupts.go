package procfs

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// Interrupt is one numbered line of /proc/interrupts.
type Interrupt struct {
	Number int
	// what the drivers call it, "eth0-TxRx-3"; several that share it are joined by ", "; empty:
	// nobody has asked for it
	Name string
	// Counts are those above zero, in the order of the CPUs. A large host has thousands of pairs of
	// an interrupt and a CPU that never met.
	Counts []CPUCount
}

// CPUCount is what was counted on one CPU since boot.
type CPUCount struct {
	CPU   int
	Count uint64
}

// ParseInterrupts reads the numbered lines of /proc/interrupts (show_interrupts in
// kernel/irq/proc.c), by number. Those with letters (NMI, LOC, …) belong to the architecture and to
// no card. The columns are the CPUs that are online, named in the first line: their numbers have
// gaps where one is offline.
func ParseInterrupts(b []byte) (map[int]Interrupt, error) {
	head, b := cutLine(b)
	var cpus []int
	for len(bytes.TrimSpace(head)) > 0 {
		var column []byte
		column, head = word(head)
		n, ok := ParseUint(bytes.TrimPrefix(column, []byte("CPU")))
		if !ok || n > maxCPUs {
			return nil, fmt.Errorf("column %.20q: %w", column, ErrFormat)
		}
		cpus = append(cpus, int(n))
	}
	if len(cpus) == 0 {
		return nil, fmt.Errorf("no columns: %w", ErrFormat)
	}
	found := make(map[int]Interrupt)
	for len(b) > 0 {
		var line []byte
		line, b = cutLine(b)
		label, rest := word(line)
		number, ok := ParseUint(bytes.TrimSuffix(label, []byte(":")))
		if !ok || number > 1<<31-1 {
			continue
		}
		i := Interrupt{Number: int(number)}
		for _, cpu := range cpus {
			var column []byte
			column, rest = word(rest)
			n, ok := ParseUint(column)
			if !ok {
				return found, fmt.Errorf("interrupt %d has fewer columns than there are CPUs: %w", number, ErrFormat)
			}
			if n > 0 {
				i.Counts = append(i.Counts, CPUCount{cpu, n})
			}
		}
		i.Name = actions(string(rest))
		found[i.Number] = i
	}
	return found, nil
}

// actions cuts the drivers' names off the end of a line. In front of them are the interrupt's
// controller, its number there and how it is signalled, which every controller prints in its own
// way; the kernel puts two blanks before the first name and one after each comma.
func actions(text string) string {
	text = strings.TrimSpace(text)
	i := strings.LastIndex(text, "  ")
	if i < 0 {
		return ""
	}
	name := strings.TrimSpace(text[i:])
	for _, signal := range []string{"-edge", "-level", "-fasteoi", "Edge", "Level"} {
		if strings.HasSuffix(name, signal) {
			return ""
		}
	}
	if _, err := strconv.Atoi(name); err == nil {
		return ""
	}
	return name
}
