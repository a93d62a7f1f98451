//go:build !linux

package top

// canSuspend is not known on this system, and a view that cannot be stopped is better than one that
// cannot be continued.
func canSuspend() bool { return false }
