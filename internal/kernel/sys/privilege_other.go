//go:build !linux

package sys

import "os"

// IsRoot tells whether the effective user is 0. On Windows it is always false: there is no such
// user.
func IsRoot() bool { return os.Geteuid() == 0 }

// Capabilities says that this system has none.
func Capabilities() (CapabilitySet, error) {
	return 0, &UnsupportedError{Feature: "capabilities"}
}

// BootID says that this system gives its boots no name.
func BootID() (string, error) { return "", &UnsupportedError{Feature: "boot id"} }
