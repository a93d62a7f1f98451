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
	// the driver's name for it, "eth0-TxRx-3"; the names of several drivers that share it are
	// joined by ", "; empty: no driver requested it
	Name string
	// Counts are those above zero, in the order of the CPUs. On a large host, thousands of pairs of
	// interrupt and CPU have zero.
	Counts []CPUCount
}

// CPUCount is the count on one CPU since boot.
type CPUCount struct {
	CPU   int
	Count uint64
}

// ParseInterrupts reads the numbered lines of /proc/interrupts (show_interrupts in
// kernel/irq/proc.c), by number. Lines with letters (NMI, LOC, …) belong to the architecture and
// not to a NIC. The columns are the online CPUs, named in the first line; their numbers have gaps
// for offline CPUs.
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

// actions returns the drivers' names from the end of a line. Before them are the interrupt's
// controller, its number there and its trigger type, in a form that depends on the controller. The
// kernel puts two blanks before the first name and one after each comma.
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
