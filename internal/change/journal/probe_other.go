//go:build !linux

package journal

func waitsForThaw(int) bool { return false }
