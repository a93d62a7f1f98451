package record

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/profile"
)

// Bounds of looking at threads.
const (
	mostThreads = 4096
	// threadsShown is how many threads that waited a profile keeps, beside those of the kernel.
	threadsShown = 8
)

// packetThreads are the beginnings of names of threads that the kernel runs for packets: softirqs
// that are too many, NAPI in threads, interrupts in threads.
var packetThreads = []string{"ksoftirqd/", "napi/", "irq/"}

// queued is how long a thread waited for a CPU and how often it ran since it began.
type queued struct {
	name       string
	wait, runs uint64
}

// readThreads reads /proc/PID/task/TID/schedstat of at most mostThreads threads. A kernel without
// these files (CONFIG_SCHED_INFO) gives none.
func readThreads(packetsOnly bool) map[string]queued {
	all := make(map[string]queued)
	files, _ := filepath.Glob("/proc/[0-9]*/task/[0-9]*/schedstat") // the pattern is valid
	for _, file := range files[:min(mostThreads, len(files))] {
		dir := filepath.Dir(file)
		comm, err := os.ReadFile(dir + "/comm")
		if err != nil {
			continue // it has ended
		}
		name := strings.TrimSpace(string(comm))
		if packetsOnly && !forPackets(name) {
			continue
		}
		b, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		// Time on a CPU, time waiting for one, number of turns.
		f := strings.Fields(string(b))
		if len(f) < 3 {
			continue
		}
		wait, err1 := strconv.ParseUint(f[1], 10, 64)
		runs, err2 := strconv.ParseUint(f[2], 10, 64)
		if err1 == nil && err2 == nil {
			all[filepath.Base(dir)] = queued{name, wait, runs}
		}
	}
	return all
}

func forPackets(name string) bool {
	return slices.ContainsFunc(packetThreads, func(p string) bool { return strings.HasPrefix(name, p) })
}

// waited returns the threads that waited between two readings: those for packets first, then the
// longest.
func waited(before, after map[string]queued, took float64) []profile.ThreadWait {
	var all []profile.ThreadWait
	for id, now := range after {
		was, known := before[id]
		if !known || now.name != was.name || now.wait <= was.wait || now.runs < was.runs {
			continue
		}
		seconds := float64(now.wait-was.wait) / 1e9
		all = append(all, profile.ThreadWait{Name: now.name, Runs: now.runs - was.runs, Seconds: seconds,
			Ratio: seconds / took})
	}
	sorting.Func(all, func(x, y profile.ThreadWait) int {
		if a, b := forPackets(x.Name), forPackets(y.Name); a != b {
			if a {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(y.Seconds, x.Seconds), cmp.Compare(x.Name, y.Name))
	})
	first := 0
	for first < len(all) && forPackets(all[first].Name) {
		first++
	}
	return all[:min(len(all), min(first, threadsShown)+threadsShown)]
}
