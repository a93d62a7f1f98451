package host

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/kernel/procfs"
)

// readCPUs reads the online CPUs: /proc/cpuinfo for number, model and clock, sysfs for node,
// governor and limits. Where cpuinfo does not name the model (arm64), the implementer and part
// numbers replace it.
func readCPUs(src *source, said *notes) []CPU {
	b, err := src.Read("proc/cpuinfo")
	if err != nil {
		said.add("processors", err)
		return nil
	}
	processors := procfs.ParseCPUInfo(b)
	nodes, steal := readNodes(src), readSteal(src)
	var cpus []CPU
	for _, p := range processors {
		c := CPU{ID: p.Number, Model: p.Model, CurrentMHz: p.MHz, NUMANode: nodes[p.Number]}
		dir := fmt.Sprintf("sys/devices/system/cpu/cpu%d/cpufreq/", c.ID)
		c.Governor = src.Optional(dir + "scaling_governor")
		// cpufreq counts in kilohertz. Its files are absent where no driver changes the clock, as
		// in most virtual machines.
		if khz, ok := src.Number(dir + "cpuinfo_max_freq"); ok {
			c.MaxMHz = int(khz / 1000)
		}
		if khz, ok := src.Number(dir + "scaling_cur_freq"); ok {
			c.CurrentMHz = int(khz / 1000)
		}
		if khz, ok := src.Number(dir + "scaling_max_freq"); ok {
			c.LimitMHz = int(khz / 1000)
		}
		c.FrequencyDriver = src.Optional(dir + "scaling_driver")
		c.StealRatio = steal[c.ID]
		cpus = append(cpus, c)
	}
	return cpus
}

// readSteal returns for each CPU the share of the time since boot that the hypervisor kept it from
// running, from /proc/stat. Shares below one in a thousand are left out.
func readSteal(src *source) map[int]float64 {
	ratios := make(map[int]float64)
	b, err := src.Read("proc/stat")
	if err != nil {
		return ratios // Counters reports the error.
	}
	times, _ := procfs.ParseStat(b, procfs.NewCounts(0)) // A partial result is used.
	for _, t := range times {
		if total := CPUTimes(t).Total(); total > 0 && t.Steal >= total/1000 {
			ratios[t.CPU] = math.Round(t.Steal/total*1e4) / 1e4
		}
	}
	return ratios
}

// readNodes returns the NUMA node of each CPU, from /sys/devices/system/node/node*/cpulist.
func readNodes(src *source) map[int]int {
	nodes := make(map[int]int)
	names, _ := src.List("sys/devices/system/node") // A kernel without NUMA lacks the directory; all is node 0.
	for _, name := range names {
		number, isNode := strings.CutPrefix(name, "node")
		node, err := strconv.Atoi(number)
		if !isNode || err != nil {
			continue
		}
		for _, cpu := range procfs.ParseCPUList(src.Optional("sys/devices/system/node/" + name + "/cpulist")) {
			nodes[cpu] = node
		}
	}
	return nodes
}
