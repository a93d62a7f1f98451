//go:build !linux

package sys

import "os"

// IsRoot reports whether the effective user is 0. On Windows it is always false.
func IsRoot() bool { return os.Geteuid() == 0 }

// Capabilities returns an error: this system has no capabilities.
func Capabilities() (CapabilitySet, error) {
	return 0, &UnsupportedError{Feature: "capabilities"}
}
