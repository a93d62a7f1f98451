package sys

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Capabilities returns the effective capabilities of the calling thread.
func Capabilities() (CapabilitySet, error) {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData // version 3 writes two blocks of 32 bits
	if err := unix.Capget(&head, &data[0]); err != nil {
		return 0, fmt.Errorf("read capabilities: %w", err)
	}
	return CapabilitySet(data[0].Effective) | CapabilitySet(data[1].Effective)<<32, nil
}

// BootID returns the kernel's identifier of this boot: a UUID that changes at every boot and at no
// other time.
func BootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read boot id: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}
