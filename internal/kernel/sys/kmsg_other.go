//go:build !linux

package sys

// KernelLog returns an error: this system's kernel has no such log.
func KernelLog(int, func([]byte)) error { return &UnsupportedError{Feature: "kernel log"} }
