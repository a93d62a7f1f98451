package record

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/linerate/linerate/internal/kernel/procfs"
	"github.com/linerate/linerate/internal/profile"
)

// counters is one reading of what figures per packet divide by.
type counters struct {
	values     map[string]uint64
	interfaces []string
	cpus       []procfs.CPUTimes
}

// readCounters reads the tables of this thread's network namespace, and if asked the times of all
// CPUs, which cost more than those tables: the kernel adds up every interrupt.
func readCounters(times bool) (*counters, error) {
	set := procfs.NewCounts(256)
	c := &counters{}
	for _, f := range []struct {
		name     string
		parse    func([]byte, *procfs.Counts) error
		optional bool
	}{
		{"thread-self/net/dev", procfs.ParseDev, false}, {"thread-self/net/snmp", procfs.ParseSNMP, true},
		{"thread-self/net/snmp6", procfs.ParseSNMP6, true},
	} {
		b, err := os.ReadFile("/proc/" + f.name)
		if err == nil {
			err = f.parse(b, set)
		}
		if err != nil && !f.optional {
			return nil, fmt.Errorf("read packet counters: %w", err)
		}
	}
	c.values, c.interfaces = set.Values, set.Interfaces
	if !times {
		return c, nil
	}
	if b, err := os.ReadFile("/proc/stat"); err == nil {
		c.cpus, err = procfs.ParseStat(b, procfs.NewCounts(64))
		if err != nil {
			return nil, fmt.Errorf("read processor time: %w", err)
		}
	}
	return c, nil
}

// packets returns what was counted from the first to the last reading, and fills the slices of the
// window. It returns nil where no interface can count.
func (r *recording) packets(readings []*counters, w *profile.Window) *profile.Packets {
	first, last := readings[0], readings[len(readings)-1]
	names := r.o.Interfaces
	if len(names) == 0 {
		names = bottom(last.interfaces)
		if total := counted(first, last, names); total.Received+total.Sent == 0 && slices.Contains(last.interfaces, "lo") {
			names = []string{"lo"}
		}
	}
	if len(names) == 0 {
		return nil
	}
	for i := range len(readings) - 1 {
		p := counted(readings[i], readings[i+1], names)
		w.PacketsBySlice = append(w.PacketsBySlice, float64(p.Handled()))
		w.BytesBySlice = append(w.BytesBySlice, float64(p.ReceivedBytes+p.SentBytes))
	}
	p := counted(first, last, names)
	return &p
}

// bottom returns the interfaces that stand on no other one, without lo.
func bottom(names []string) []string {
	var all []string
	for _, name := range names {
		lower, _ := filepath.Glob("/sys/class/net/" + name + "/lower_*")
		if name != "lo" && len(lower) == 0 {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// counted is the difference of two readings over some interfaces.
func counted(before, after *counters, names []string) profile.Packets {
	moved := func(name string) uint64 {
		return procfs.Difference(name, before.values[name], after.values[name])
	}
	p := profile.Packets{Interfaces: names}
	for _, n := range names {
		p.Received += moved("nic." + n + ".rx_packets")
		p.Sent += moved("nic." + n + ".tx_packets")
		p.ReceivedBytes += moved("nic." + n + ".rx_bytes")
		p.SentBytes += moved("nic." + n + ".tx_bytes")
	}
	// IP counts what GRO has merged, interfaces count what the wire carried: the share of forwarded
	// ones is the same, their number is not.
	in := moved("Ip.InReceives") + moved("Ip6.InReceives")
	through := moved("Ip.ForwDatagrams") + moved("Ip6.OutForwDatagrams")
	if in > 0 {
		p.Forwarded = min(uint64(float64(p.Received)*min(1, float64(through)/float64(in))+0.5), p.Received, p.Sent)
	}
	return p
}

// busySeconds is the time that the kernel accounted to work on some CPUs.
func busySeconds(before, after *counters, cpus []int) float64 {
	total := func(c *counters) float64 {
		sum := 0.0
		for _, t := range c.cpus {
			if slices.Contains(cpus, t.CPU) {
				sum += t.User + t.System + t.IRQ + t.SoftIRQ
			}
		}
		return sum
	}
	return max(0, total(after)-total(before))
}

// steal warns where the hypervisor ran others for more than 1 % of the time: what ran then seems
// longer.
func steal(before, after *counters) []string {
	all := func(c *counters) (steal float64, cpus int) {
		for _, t := range c.cpus {
			if t.CPU >= 0 {
				steal += t.Steal
				cpus++
			}
		}
		return steal, cpus
	}
	was, _ := all(before)
	is, _ := all(after)
	busy := busySeconds(before, after, allCPUs(after))
	if busy > 0 && (is-was)/busy > 0.01 {
		return []string{fmt.Sprintf("the hypervisor ran others for %.1f %% of the busy time (steal): "+
			"what ran then seems longer", 100*(is-was)/busy)}
	}
	return nil
}

func allCPUs(c *counters) []int {
	var all []int
	for _, t := range c.cpus {
		if t.CPU >= 0 {
			all = append(all, t.CPU)
		}
	}
	return all
}
