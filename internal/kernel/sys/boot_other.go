//go:build !linux && !freebsd && !solaris && !windows

package sys

// BootID returns an error: this system has no boot identifier.
func BootID() (string, error) { return "", &UnsupportedError{Feature: "boot id"} }
