package sys

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Poller watches many descriptors for one thread (epoll(7)). It is level-triggered: a ready
// descriptor is reported until it is no longer ready.
type Poller struct {
	fd     int
	events []unix.EpollEvent
}

// NewPoller returns a poller that reports up to n descriptors at a time.
func NewPoller(n int) (*Poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("open epoll: %w", err)
	}
	return &Poller{fd: fd, events: make([]unix.EpollEvent, n)}, nil
}

// Add watches a descriptor for room to write (true) or for data to read (false). [Poller.Ready]
// returns the token. Errors of the socket always count as ready.
func (p *Poller) Add(fd int, write bool, token int) error {
	e := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(token)} // despite its name, the field is free for the caller
	if write {
		e.Events = unix.EPOLLOUT
	}
	if err := unix.EpollCtl(p.fd, unix.EPOLL_CTL_ADD, fd, &e); err != nil {
		return fmt.Errorf("watch descriptor: %w", err)
	}
	return nil
}

// Remove stops watching a descriptor.
func (p *Poller) Remove(fd int) error {
	if err := unix.EpollCtl(p.fd, unix.EPOLL_CTL_DEL, fd, nil); err != nil {
		return fmt.Errorf("stop watching descriptor: %w", err)
	}
	return nil
}

// Wait sleeps until a descriptor is ready, at most for d, and returns how many are. A signal ends
// it with none.
func (p *Poller) Wait(d time.Duration) (int, error) {
	// A bare call, because epoll_wait, which package unix uses, does not exist on every
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

// Ready returns the token of the i-th descriptor that the last [Poller.Wait] found.
func (p *Poller) Ready(i int) int { return int(p.events[i].Fd) }

// Events reports whether the i-th descriptor that the last [Poller.Wait] found has data to read,
// and whether it has an error or a report in its error queue.
func (p *Poller) Events(i int) (readable, failed bool) {
	e := p.events[i].Events
	return e&unix.EPOLLIN != 0, e&unix.EPOLLERR != 0
}

// Close closes the poller, but not the watched descriptors.
func (p *Poller) Close() { _ = unix.Close(p.fd) } // it has no unwritten data

// SetBlocking makes calls on a descriptor sleep (true) or return [ErrTimeout] at once (false).
func SetBlocking(fd int, on bool) error {
	if err := unix.SetNonblock(fd, !on); err != nil && !errors.Is(err, unix.EINTR) {
		return fmt.Errorf("set blocking mode: %w", err)
	}
	return nil
}
