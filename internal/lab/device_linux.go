package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// comeUp is how long a NIC may take to get its link. Drivers give up negotiation after some five
// seconds; the rest is for busy emulators.
const comeUp = 2 * time.Minute

// awaitCarrier waits until a device of this namespace has a link.
func awaitCarrier(device string) error {
	file := filepath.Join("/sys/class/net", device, "carrier")
	for deadline := time.Now().Add(comeUp); ; time.Sleep(20 * time.Millisecond) {
		b, err := os.ReadFile(file)
		if err == nil && strings.TrimSpace(string(b)) == "1" {
			return nil
		}
		if time.Now().After(deadline) {
			return errors.Join(fmt.Errorf("%s has no carrier after %v", device, comeUp), err)
		}
	}
}

// renewCard detaches the driver from a card, resets the card and attaches the driver again, so that
// nothing of the last world remains. It returns the new device's name. bus is the PCI address; for
// a virtio card that is the address of the device that carries it. The drivers here probe before
// the write returns.
func renewCard(bus string) (name string, err error) {
	device := filepath.Join("/sys/bus/pci/devices", bus)
	driver, err := filepath.EvalSymlinks(filepath.Join(device, "driver"))
	if err != nil {
		return "", fmt.Errorf("renew card %s: %w", bus, err)
	}
	// A driver's own reset leaves counters in QEMU's cards; a reset of the bus leaves nothing.
	for _, step := range [][2]string{{filepath.Join(driver, "unbind"), bus}, {filepath.Join(device, "reset"), "1"},
		{filepath.Join(driver, "bind"), bus}} {
		if err := os.WriteFile(step[0], []byte(step[1]), 0); err != nil {
			return "", fmt.Errorf("renew card %s: %w", bus, err)
		}
	}
	found, err := filepath.Glob(filepath.Join(device, "net/*"))
	if err == nil && len(found) == 0 {
		found, err = filepath.Glob(filepath.Join(device, "virtio*/net/*"))
	}
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("renew card %s: %d interfaces: %w", bus, len(found), errors.Join(err, os.ErrNotExist))
	}
	return filepath.Base(found[0]), nil
}

// renameDevice renames a device of this namespace that is down (netdevice(7), SIOCSIFNAME).
func renameDevice(old, name string) error {
	if len(old) >= unix.IFNAMSIZ || len(name) >= unix.IFNAMSIZ {
		return fmt.Errorf("rename %s to %s: %w", old, name, errors.New("a name is too long"))
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("rename %s: %w", old, err)
	}
	defer unix.Close(fd)
	// struct ifreq has 40 bytes on 64-bit systems and 32 on other systems; a larger one does no
	// harm.
	var request struct {
		old, name [unix.IFNAMSIZ]byte
		_         [8]byte
	}
	copy(request.old[:], old)
	copy(request.name[:], name)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCSIFNAME,
		uintptr(unsafe.Pointer(&request))); errno != 0 {
		return fmt.Errorf("rename %s to %s: %w", old, name, errno)
	}
	return nil
}
