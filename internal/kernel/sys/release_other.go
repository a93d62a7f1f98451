//go:build (!unix && !windows) || aix

package sys

// Release is not supported on this system.
func Release() (string, error) { return "", &UnsupportedError{Feature: "the release of the system"} }
