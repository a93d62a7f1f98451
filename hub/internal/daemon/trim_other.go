//go:build !linux

package daemon

// trim does nothing here.
func trim() error { return nil }
