//go:build !linux

package top

// canSuspend is not known here, and a view that cannot be stopped is better than one that cannot go
// on.
func canSuspend() bool { return false }
