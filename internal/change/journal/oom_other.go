//go:build unix && !linux

package journal

// spareFromOOM has no counterpart here.
func spareFromOOM() {}
