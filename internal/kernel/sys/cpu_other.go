//go:build !linux

package sys

import "time"

// Pin says that a thread cannot be bound to a CPU here.
func Pin(int) error { return &UnsupportedError{Feature: "cpu pinning"} }

// AllowedCPUs says that the CPUs have no numbers here that [Pin] would understand.
func AllowedCPUs() ([]int, error) { return nil, &UnsupportedError{Feature: "list of allowed cpus"} }

// OnlineCPUs says that the CPUs have no numbers here that [Pin] would understand; runtime.NumCPU
// counts them.
func OnlineCPUs() ([]int, error) { return nil, &UnsupportedError{Feature: "list of online cpus"} }

// ProcessTimes knows nothing here.
func ProcessTimes() (user, system time.Duration) { return 0, 0 }
