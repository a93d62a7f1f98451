//go:build !linux

package sys

// Capabilities returns an error: this system has no capabilities.
func Capabilities() (CapabilitySet, error) {
	return 0, &UnsupportedError{Feature: "capabilities"}
}
