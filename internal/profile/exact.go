package profile

import "strings"

// Exact is what the kernel counted without sampling, in a window of its own after the samples.
type Exact struct {
	Duration float64       `json:"duration_seconds"`
	SoftIRQs []SoftIRQTime `json:"softirqs"`
	// Locks reports that the kernel can count waits for locks (Linux 5.19).
	Locks bool       `json:"locks"`
	Waits []LockWait `json:"lock_waits"`
	// RunQueue are the threads that waited longest for a CPU; those that the kernel runs for packets
	// first.
	RunQueue []ThreadWait `json:"run_queue,omitempty"`
	// CostSeconds is the processor time of the counting itself; absent: not known.
	CostSeconds float64 `json:"cost_seconds,omitempty"`
}

// SoftIRQTime is the time that one softirq ran on one CPU.
type SoftIRQTime struct {
	CPU     int     `json:"cpu"`
	Name    string  `json:"name"` // as /proc/softirqs has it
	Runs    uint64  `json:"runs_total"`
	Seconds float64 `json:"seconds"`
	Ratio   float64 `json:"time_ratio"` // of the time of this CPU
	// Delay is the mean time from raising the softirq to its run; absent: not counted.
	Delay float64 `json:"delay_seconds,omitempty"`
}

// ThreadWait is the time that a thread could run and had no CPU.
type ThreadWait struct {
	Name    string  `json:"name"`
	Runs    uint64  `json:"runs_total"`
	Seconds float64 `json:"wait_seconds"`
	Ratio   float64 `json:"time_ratio"` // of the window
}

// LockWait is waiting for locks of one kind in one function.
type LockWait struct {
	Kind      string  `json:"kind"`     // spinlock, mutex, rwsem write
	Function  string  `json:"function"` // that waits
	Callers   string  `json:"callers"`  // the nearest first
	Stage     string  `json:"stage"`
	Waits     uint64  `json:"waits_total"`
	PerSecond float64 `json:"waits_per_second"`
	Seconds   float64 `json:"seconds"`    // of waiting, over all tasks
	Ratio     float64 `json:"time_ratio"` // of the window; more than 1 when several tasks wait
}

// lockPaths are the beginnings of functions that implement locks and the tracing of them: who waits
// is the first function that is none.
var lockPaths = []string{"bpf_", "__bpf_", "__traceiter_", "trace_", "__pv_queued_", "native_queued_", "queued_",
	"_raw_", "__raw_", "do_raw_", "mutex_", "__mutex_", "rwsem_", "__rwsem", "down_", "__down_", "up_", "percpu_",
	"__percpu_", "rt_mutex", "rt_spin", "osq_", "lock_release", "lock_acquire", "kvm_wait", "pv_"}

// LockPlace removes from a stack of names, leaf first, what belongs to the lock itself.
func LockPlace(names []string) []string {
	for len(names) > 1 && hasAnyPrefix(names[0], lockPaths) {
		names = names[1:]
	}
	return names
}

func hasAnyPrefix(s string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

// StageOfPath returns the nearest stage of the network path in a stack of names, leaf first, or
// what the leaf is.
func StageOfPath(names []string) string {
	for _, n := range names {
		if s := StageOf(n); onPath(s) {
			return s
		}
	}
	if len(names) == 0 {
		return StageUnknown
	}
	return StageOf(names[0])
}
