package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/nl"
)

// comeBack is how long cards may take to return from the namespace of a world that has ended: the kernel dissolves it in the background.
const comeBack = 10 * time.Second

// comeUp is how long a card may take to get its link; negotiation is given up after some five seconds by drivers and by nobody's watchdog later.
const comeUp = 30 * time.Second

// moveCards puts the two cards of a driver into two network namespaces, the one with the lower bus address into the first, and gives their
// names. By driver and address and not by name: a card that comes back from a world may find its name taken and get another.
func moveCards(ctx context.Context, driver string, spaces ...*os.File) (names [2]string, err error) {
	c, err := nl.Dial()
	if err != nil {
		return names, err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, comeBack)
	defer cancel()
	type card struct{ name, bus string }
	var cards []card
	for {
		links, err := c.Links()
		if err != nil {
			return names, err
		}
		cards = cards[:0]
		for _, l := range links {
			// A device without a driver (lo) is none of ours.
			if d, err := c.Driver(l.Name); err == nil && d.Driver == driver {
				cards = append(cards, card{l.Name, d.Bus})
			}
		}
		if len(cards) == len(names) {
			break
		}
		select {
		case <-ctx.Done():
			return names, fmt.Errorf("%w: it has %d cards of the driver %s, want %d", ErrLacks, len(cards), driver, len(names))
		case <-time.After(50 * time.Millisecond):
		}
	}
	slices.SortFunc(cards, func(a, b card) int { return cmp.Compare(a.bus, b.bus) })
	for i := range cards {
		if cards[i].name, err = renew(cards[i].bus); err != nil {
			return names, err
		}
	}
	for i, card := range cards {
		// By a name that no host has: it may have another device by the kernel's.
		names[i] = "card" + strconv.Itoa(i)
		if err := rename(card.name, names[i]); err != nil {
			return names, err
		}
		if err := c.MoveToNetNS(names[i], int(spaces[i].Fd())); err != nil {
			return names, err
		}
	}
	return names, nil
}

// carriers waits until the cards of the world have a link: drivers start theirs again for many a setting, and a link of copper takes seconds.
func (r *Running) carriers(ctx context.Context) error {
	if r.World.Card == "" {
		return nil
	}
	plan, err := r.World.plan()
	if err != nil {
		return err
	}
	for _, hop := range plan.hops {
		if !hop.link {
			continue
		}
		for _, e := range hop.ends {
			if _, _, err := r.Host(e.host).agent.call(ctx, request{Configure: &configureRequest{Await: []string{e.device}}}); err != nil {
				return wrapHost(e.host, err)
			}
		}
	}
	return nil
}

// awaitCarrier runs in the agent of a host.
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

// renew takes a driver off its card and puts it back, so that nothing is left of what the last world set, and gives the new device's name. bus is the PCI
// address; a virtio card is named by that of the device that carries it. The drivers here probe before the write returns.
func renew(bus string) (name string, err error) {
	device := filepath.Join("/sys/bus/pci/devices", bus)
	driver, err := filepath.EvalSymlinks(filepath.Join(device, "driver"))
	if err != nil {
		return "", fmt.Errorf("renew card %s: %w", bus, err)
	}
	for _, verb := range []string{"unbind", "bind"} {
		if err := os.WriteFile(filepath.Join(driver, verb), []byte(bus), 0); err != nil {
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

// rename gives a device of this namespace that is down another name (netdevice(7), SIOCSIFNAME).
func rename(old, name string) error {
	if len(old) >= unix.IFNAMSIZ || len(name) >= unix.IFNAMSIZ {
		return fmt.Errorf("rename %s to %s: %w", old, name, errors.New("a name is too long"))
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("rename %s: %w", old, err)
	}
	defer unix.Close(fd)
	// struct ifreq is 40 bytes on 64-bit systems and 32 on others; a larger one does no harm.
	var request struct {
		old, name [unix.IFNAMSIZ]byte
		_         [8]byte
	}
	copy(request.old[:], old)
	copy(request.name[:], name)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCSIFNAME, uintptr(unsafe.Pointer(&request))); errno != 0 {
		return fmt.Errorf("rename %s to %s: %w", old, name, errno)
	}
	return nil
}
