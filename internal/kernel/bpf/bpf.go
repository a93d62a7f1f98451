package bpf

import "errors"

// ErrNotSupported reports a kernel without the tracepoints, or a system without BPF.
var ErrNotSupported = errors.New("not supported here")

// SoftIRQ is the work of one softirq on one CPU.
type SoftIRQ struct {
	CPU   int
	Name  string // as /proc/softirqs has it
	Nanos uint64
	Runs  uint64
	// DelayNanos is the time from raising to running, over the runs that were raised meanwhile.
	DelayNanos, Delayed uint64
}

// Wait is waiting for locks at one place.
type Wait struct {
	Kind  string   // spin, read, write, mutex and others; "lock" where the kernel does not say
	Stack []uint64 // leaf first; empty: the kernel had no room for it
	Nanos uint64
	Waits uint64
}

// Counts are what the programs have counted.
type Counts struct {
	SoftIRQs []SoftIRQ
	Waits    []Wait
	// RunNanos is the processor time of the programs and Runs how often they ran; 0: not permitted to
	// know.
	RunNanos, Runs uint64
}

// softIRQNames are the softirqs by number, of include/linux/interrupt.h.
var softIRQNames = [...]string{"HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET",
	"SCHED", "HRTIMER", "RCU"}

// kindOf names the kind of a lock by the flags of the tracepoint, of include/trace/events/lock.h.
func kindOf(flags uint32) string {
	const (
		spin  = 1
		read  = 2
		write = 4
		rt    = 8
		cpu   = 16
		mutex = 32
	)
	switch {
	case flags&mutex != 0:
		return "mutex"
	case flags&cpu != 0:
		return "percpu rwsem"
	case flags&rt != 0:
		return "rt mutex"
	case flags&read != 0 && flags&spin != 0:
		return "rwlock read"
	case flags&write != 0 && flags&spin != 0:
		return "rwlock write"
	case flags&spin != 0:
		return "spinlock"
	case flags&read != 0:
		return "rwsem read"
	case flags&write != 0:
		return "rwsem write"
	}
	return "lock"
}
