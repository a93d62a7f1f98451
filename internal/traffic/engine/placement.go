package engine

import (
	"fmt"
	"slices"

	"github.com/linerate/linerate/internal/kernel/sys"
)

// This many streams per CPU have threads of their own; more share them, if they can, see Multiplex.
// A thread that sends on several streams in turn is as fast as one thread for each; receivers
// gather more when each sleeps on its own.
const (
	sendersPerThread   = 2
	receiversPerThread = 4
)

// CPUOf returns the CPU of a worker among those that this process may use. Senders count from the
// first CPU on and receivers from the last, so that two ends on one machine, as in a practice
// world, copy on different CPUs. The two ends of a transaction never run at the same time, so there
// they share a CPU: waking an idle one costs an interrupt between CPUs, in a virtual machine 30 µs
// and more. -1: do not pin.
func CPUOf(cpus []int, r Role, index int) int {
	if len(cpus) < 2 {
		return -1
	}
	i := index % len(cpus)
	if r == Receiver {
		i = len(cpus) - 1 - i
	}
	return cpus[i]
}

// Place is [CPUOf] for this worker: the responder of a busy-polling pair goes to the other end of
// the list, because two ends that spin on one CPU only wait for each other.
func (w *Worker) Place(cpus []int, index int) int {
	r := w.Role
	if w.Spins && r == Responder {
		r = Receiver
	}
	return CPUOf(cpus, r, index)
}

// Unusable returns the reason, one plain sentence, why workers cannot be pinned to all of cpus on
// this host; "": they can.
func Unusable(cpus []int) string {
	if len(cpus) == 0 {
		return ""
	}
	allowed, err := sys.AllowedCPUs()
	if err != nil {
		return fmt.Sprintf("processors cannot be chosen on this host: %v", err)
	}
	for _, cpu := range cpus {
		if !slices.Contains(allowed, cpu) {
			return fmt.Sprintf("linerate may not use processor %d of this host, only %v", cpu, allowed)
		}
	}
	return ""
}
