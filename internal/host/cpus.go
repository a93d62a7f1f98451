package host

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxCPUs bounds CPU numbers in bad input; Linux's own limit is 8192.
const maxCPUs = 1 << 16

// readCPUs reads the online processors: /proc/cpuinfo for number, model and clock, sysfs for node, governor and limits. Where
// cpuinfo does not name the model (arm64), the implementer and part numbers stand in for it.
func readCPUs(src *source, said *notes) []CPU {
	b, err := src.read("proc/cpuinfo")
	if err != nil {
		said.add("processors", err)
		return nil
	}
	cpus := parseCPUInfo(string(b))
	nodes := readNodes(src)
	for i := range cpus {
		c := &cpus[i]
		c.NUMANode = nodes[c.ID]
		dir := fmt.Sprintf("sys/devices/system/cpu/cpu%d/cpufreq/", c.ID)
		c.Governor = src.optional(dir + "scaling_governor")
		if khz, ok := src.number(dir + "cpuinfo_max_freq"); ok {
			c.MaxMHz = int(khz / 1000)
		}
		if khz, ok := src.number(dir + "scaling_cur_freq"); ok {
			c.CurrentMHz = int(khz / 1000)
		}
	}
	return cpus
}

// readNodes gives the NUMA node of each CPU, from /sys/devices/system/node/node*/cpulist.
func readNodes(src *source) map[int]int {
	nodes := make(map[int]int)
	names, _ := src.list("sys/devices/system/node") // A kernel without NUMA has no such directory; all is node 0.
	for _, name := range names {
		number, isNode := strings.CutPrefix(name, "node")
		node, err := strconv.Atoi(number)
		if !isNode || err != nil {
			continue
		}
		for _, cpu := range parseCPUList(src.optional("sys/devices/system/node/" + name + "/cpulist")) {
			nodes[cpu] = node
		}
	}
	return nodes
}

// parseCPUList reads "0-3,8,10-11". What is not a list gives what was good so far.
func parseCPUList(text string) []int {
	var cpus []int
	for part := range strings.SplitSeq(strings.TrimSpace(text), ",") {
		from, to, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(from)
		if err != nil || first < 0 || first > maxCPUs {
			return cpus
		}
		last := first
		if isRange {
			if last, err = strconv.Atoi(to); err != nil || last < first || last > maxCPUs {
				return cpus
			}
		}
		for cpu := first; cpu <= last; cpu++ {
			cpus = append(cpus, cpu)
		}
	}
	return cpus
}

// parseCPUInfo reads /proc/cpuinfo. Its keys differ by architecture: "processor" starts a CPU everywhere but on s390, where each is one line.
func parseCPUInfo(text string) []CPU {
	var cpus []CPU
	var implementer string
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if key == "processor" {
			if id, err := strconv.Atoi(value); err == nil && id >= 0 && id <= maxCPUs {
				cpus = append(cpus, CPU{ID: id})
			}
			continue
		}
		if len(cpus) == 0 {
			continue
		}
		c := &cpus[len(cpus)-1]
		switch key {
		case "model name", "cpu model", "cpu":
			c.Model = value
		case "cpu MHz":
			if mhz, err := strconv.ParseFloat(value, 64); err == nil && mhz > 0 && mhz < 1e6 {
				c.CurrentMHz = int(mhz)
			}
		case "CPU implementer":
			implementer = value
		case "CPU part":
			if c.Model == "" {
				c.Model = "implementer " + implementer + " part " + value
			}
		}
	}
	slices.SortFunc(cpus, func(a, b CPU) int { return a.ID - b.ID })
	return cpus
}
