//go:build !linux

package cgroup

// Own has no counterpart here: a session of its own is what a process can have.
func Own(string) (leave func(), told string) { return func() {}, "" }
