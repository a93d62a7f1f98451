package lab

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/base/standstill"
	"github.com/linerate/linerate/internal/kernel/procfs"
)

const (
	// foreignCPUs is how much of one CPU other programs may use while a scenario plays: beside half a
	// CPU two of eight scenarios gave other findings than alone.
	foreignCPUs = 0.25
	// stolenShare of the machine's time is what the hypervisor may take.
	stolenShare = 0.05
	// stopped is how long this program may be without a processor while a scenario plays. TCP takes a
	// silence of 200 ms for a loss (its shortest retransmission timeout), and queues fill sooner.
	stopped = 100 * time.Millisecond
	// glance is the time between two looks at the clock, and short compared with stopped.
	glance = 10 * time.Millisecond
	// ticksPerSecond is USER_HZ, in which the kernel reports times to programs.
	ticksPerSecond = 100
)

// Watch begins to watch the machine, for a play whose figures need it. Disturbed, which is called
// once, ends that and returns what took the machine from the programs that this process started, as
// the end of a sentence: other programs, the hypervisor, or a stop of this process; empty: nothing
// that matters.
func Watch() (disturbed func() string) {
	before, known := readUsage()
	end := standstill.Watch(glance, nil)
	return func() string {
		gap := end()
		after, ok := readUsage()
		if ok && known {
			if what := disturbance(before, after, runtime.NumCPU()); what != "" {
				return what
			}
		}
		return stop(gap)
	}
}

// stop says that this process was stopped, if that matters, as the end of a sentence.
func stop(gap time.Duration) string {
	if gap <= stopped {
		return ""
	}
	return fmt.Sprintf("this machine stopped the programs for %.1f s meanwhile", gap.Seconds())
}

// usage is CPU time of the machine since its start, in seconds.
type usage struct {
	all, idle float64
	stolen    float64 // by the hypervisor
	programs  float64 // of all programs, in user mode and in the kernel
	own       float64 // of this process and of all that it started
}

// readUsage reads the CPU time of the machine; false where /proc does not show it.
func readUsage() (u usage, ok bool) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return u, false
	}
	lines, err := procfs.ParseStat(b, procfs.NewCounts(256))
	if err != nil || len(lines) == 0 {
		return u, false
	}
	c := lines[0] // the sum over all CPUs
	u = usage{all: c.User + c.System + c.IRQ + c.SoftIRQ + c.Steal + c.Idle, idle: c.Idle, stolen: c.Steal,
		programs: c.User + c.System}
	u.own = treeOf(os.Getpid(), readProcesses())
	return u, true
}

// process is one line of /proc/PID/stat: CPU time of the process, and of its children that ended,
// in seconds.
type process struct {
	parent int
	used   float64
}

// readProcesses reads all processes by number. One that ends meanwhile is left out; its time is
// that of its parent then.
func readProcesses() map[int]process {
	all := make(map[int]process)
	names, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return all
	}
	for _, name := range names {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err != nil {
			continue
		}
		if b, err := os.ReadFile(name); err == nil {
			if p, ok := parseProcess(b); ok {
				all[pid] = p
			}
		}
	}
	return all
}

// parseProcess reads /proc/PID/stat (proc_pid_stat(5)). The second field is the name in
// parentheses, which may contain any character.
func parseProcess(b []byte) (p process, ok bool) {
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	const parent, first = 1, 11 // of the fields after the name; then utime, stime, cutime, cstime
	if len(fields) < first+4 {
		return p, false
	}
	n, err := strconv.Atoi(fields[parent])
	if err != nil {
		return p, false
	}
	p.parent = n
	for _, text := range fields[first : first+4] {
		ticks, err := strconv.ParseUint(text, 10, 63)
		if err != nil {
			return p, false
		}
		p.used += float64(ticks) / ticksPerSecond
	}
	return p, true
}

// treeOf adds up the time of a process and of all below it.
func treeOf(root int, all map[int]process) float64 {
	var sum float64
	for pid := range all {
		// A process that changes its parent meanwhile cannot make a circle longer than the table.
		for at, steps := pid, 0; at > 0 && steps <= len(all); at, steps = all[at].parent, steps+1 {
			if at == root {
				sum += all[pid].used
				break
			}
		}
	}
	return sum
}

// disturbance says what else used the machine between two readings, as the end of a sentence;
// empty: nothing that matters. CPUs is the number of CPUs.
func disturbance(before, after usage, cpus int) string {
	all := after.all - before.all
	if all <= 0 || cpus <= 0 {
		return ""
	}
	elapsed := all / float64(cpus)
	if stolen := (after.stolen - before.stolen) / all; stolen > stolenShare {
		return fmt.Sprintf("the hypervisor took %.0f %% of the CPU time of this machine", 100*stolen)
	}
	foreign := (after.programs - before.programs) - (after.own - before.own)
	if used := foreign / elapsed; used > foreignCPUs {
		return fmt.Sprintf("other programs used %.1f of the %d CPUs of this machine meanwhile", used, cpus)
	}
	return ""
}
