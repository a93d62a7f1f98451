package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/nl"
)

// comeBack is how long cards may take to return from the namespace of a world that has ended: the kernel dissolves it in the background.
const comeBack = 10 * time.Second

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
	for i, card := range cards {
		names[i] = card.name
		if err := c.MoveToNetNS(card.name, int(spaces[i].Fd())); err != nil {
			return names, err
		}
	}
	return names, nil
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
