package procfs

import (
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/base/sorting"
)

// maxCPUs limits CPU numbers in bad input, where "0-4000000000" would otherwise produce a list of
// that length. Linux's own limit is 8192 (CONFIG_NR_CPUS on amd64).
const maxCPUs = 1 << 16

// Processor is one online logical processor of /proc/cpuinfo. Numbers have gaps for offline CPUs.
type Processor struct {
	Number int
	Model  string // empty: not reported
	MHz    int    // the clock when the file was read, in megahertz; 0: not reported (arm64)
}

// ParseCPUInfo reads /proc/cpuinfo (show_cpuinfo of each architecture), sorted by number. Its keys
// depend on the architecture. "processor" starts a CPU everywhere except on s390, where each CPU is
// one line and none is found. If the file does not name the model (arm64), the implementer and part
// numbers of the main id register replace it.
func ParseCPUInfo(b []byte) []Processor {
	var cpus []Processor
	var implementer string
	for line := range strings.Lines(string(b)) {
		key, value, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if key == "processor" {
			if id, err := strconv.Atoi(value); err == nil && id >= 0 && id <= maxCPUs {
				cpus = append(cpus, Processor{Number: id})
			}
			continue
		}
		if len(cpus) == 0 {
			continue
		}
		c := &cpus[len(cpus)-1]
		switch key {
		case "model name", "cpu model", "cpu": // x86 and arm, mips, powerpc
			c.Model = value
		// x86: the present clock if the kernel knows it (since 4.13 from APERF and MPERF),
		// otherwise the nominal clock.
		case "cpu MHz":
			if mhz, err := strconv.ParseFloat(value, 64); err == nil && mhz > 0 && mhz < 1e6 {
				c.MHz = int(mhz)
			}
		case "CPU implementer":
			implementer = value
		case "CPU part":
			if c.Model == "" {
				c.Model = "implementer " + implementer + " part " + value
			}
		}
	}
	sorting.Func(cpus, func(a, b Processor) int { return a.Number - b.Number })
	return cpus
}

// ParseCPUList reads "0-3,8,10-11", the list format of CPU and node sets (bitmap_print_to_pagebuf;
// the files named …_list and cpulist, in /proc and /sys). For invalid text it returns the valid
// part before the error; for empty text it returns nil.
func ParseCPUList(text string) []int {
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

// FormatCPUList writes ascending numbers as the kernel does: "0-3,8". It is the inverse of
// [ParseCPUList].
func FormatCPUList(cpus []int) string {
	var b strings.Builder
	for i := 0; i < len(cpus); {
		last := i
		for last+1 < len(cpus) && cpus[last+1] == cpus[last]+1 {
			last++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(cpus[i]))
		if last > i {
			b.WriteByte('-')
			b.WriteString(strconv.Itoa(cpus[last]))
		}
		i = last + 1
	}
	return b.String()
}

// ParseMemTotal reads the memory of the machine in bytes from /proc/meminfo, "MemTotal: 4046084
// kB", where kB are 1024 bytes. Firmware and the kernel's own image are not included, so it is less
// than the installed memory.
func ParseMemTotal(b []byte) (int64, error) {
	for line := range strings.Lines(string(b)) {
		fields := strings.Fields(line)
		if len(fields) >= 2 && fields[0] == "MemTotal:" {
			kib, err := strconv.ParseInt(fields[1], 10, 64)
			// A larger number of bytes would not fit 63 bits.
			if err != nil || kib < 0 || kib > 1<<52 {
				return 0, ErrFormat
			}
			return kib << 10, nil
		}
	}
	return 0, ErrFormat
}
