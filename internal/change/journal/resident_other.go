//go:build !linux

package journal

// stayResident is for Linux only so far.
func stayResident() string { return "" }
