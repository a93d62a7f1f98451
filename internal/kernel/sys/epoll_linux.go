package sys

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Poller watches many descriptors for one thread (epoll(7)), level-triggered: what is ready is told
// again until it is no more.
type Poller struct {
	fd     int
	events []unix.EpollEvent
}

// NewPoller makes a poller that tells of up to n descriptors at a time.
func NewPoller(n int) (*Poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("open epoll: %w", err)
	}
	return &Poller{fd: fd, events: make([]unix.EpollEvent, n)}, nil
}

// Add watches a descriptor for room to write (true) or something to read; token comes back from
// [Poller.Ready]. Errors of the socket always count.
func (p *Poller) Add(fd int, write bool, token int) error {
	e := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(token)} // the field is ours to fill, despite its name
	if write {
		e.Events = unix.EPOLLOUT
	}
	if err := unix.EpollCtl(p.fd, unix.EPOLL_CTL_ADD, fd, &e); err != nil {
		return fmt.Errorf("watch descriptor: %w", err)
	}
	return nil
}

// Remove watches a descriptor no longer.
func (p *Poller) Remove(fd int) error {
	if err := unix.EpollCtl(p.fd, unix.EPOLL_CTL_DEL, fd, nil); err != nil {
		return fmt.Errorf("stop watching descriptor: %w", err)
	}
	return nil
}

// Wait sleeps until something is ready, for d at most, and tells how many are; none after a signal.
func (p *Poller) Wait(d time.Duration) (int, error) {
	// Not by package unix, whose call is the same, only because epoll_wait does not exist on every
	// architecture.
	n, _, errno := unix.Syscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.fd),
		uintptr(unsafe.Pointer(unsafe.SliceData(p.events))), uintptr(len(p.events)), uintptr(d.Milliseconds()), 0, 0)
	switch errno {
	case 0:
		return int(n), nil
	case unix.EINTR:
		return 0, nil
	}
	return 0, fmt.Errorf("wait for descriptors: %w", errno)
}

// Ready is the token of the i-th descriptor that the last [Poller.Wait] found.
func (p *Poller) Ready(i int) int { return int(p.events[i].Fd) }

// Close gives up the poller, not what it watched.
func (p *Poller) Close() { _ = unix.Close(p.fd) } // it holds nothing that could fail to be written

// SetBlocking makes calls on a descriptor sleep (true) or return [ErrTimeout] at once.
func SetBlocking(fd int, on bool) error {
	if err := unix.SetNonblock(fd, !on); err != nil && !errors.Is(err, unix.EINTR) {
		return fmt.Errorf("set blocking mode: %w", err)
	}
	return nil
}
