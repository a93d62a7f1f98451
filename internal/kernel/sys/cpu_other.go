//go:build !linux

package sys

import "time"

// Pin returns an error: a thread cannot be bound to a CPU on this system.
func Pin(int) error { return &UnsupportedError{Feature: "cpu pinning"} }

// AllowedCPUs returns an error: the CPUs have no numbers here for [Pin].
func AllowedCPUs() ([]int, error) { return nil, &UnsupportedError{Feature: "list of allowed cpus"} }

// OnlineCPUs returns an error: the CPUs have no numbers here for [Pin]. runtime.NumCPU counts them.
func OnlineCPUs() ([]int, error) { return nil, &UnsupportedError{Feature: "list of online cpus"} }

// ProcessTimes returns zeros.
func ProcessTimes() (user, system time.Duration) { return 0, 0 }

// ThreadID returns 0: the number of a thread is not known here.
func ThreadID() int { return 0 }

// ThreadTime returns false: the CPU time of a thread is not known here.
func ThreadTime(int) (time.Duration, bool) { return 0, false }
