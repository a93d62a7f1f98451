package sys

import (
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Check returns how many descriptors are ready now, see [Poller.Ready]. The Go scheduler is not
// notified of the call, which takes less than a microsecond.
func (p *Poller) Check() (int, error) {
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.fd),
		uintptr(unsafe.Pointer(unsafe.SliceData(p.events))), uintptr(len(p.events)), 0, 0, 0)
	switch errno {
	case 0:
		return int(n), nil
	case unix.EINTR:
		return 0, nil
	}
	return 0, fmt.Errorf("check descriptors: %w", errno)
}

// Await waits until a descriptor is ready, for d at most, and reports whether one is. Unlike
// [Poller.Wait] it counts nanoseconds: it waits for the epoll descriptor itself with ppoll(2),
// which older kernels than epoll_pwait2 (Linux 5.11) have too.
func (p *Poller) Await(d time.Duration) (bool, error) {
	ready, err := Poll(p.fd, d)
	if err != nil {
		return false, fmt.Errorf("wait for descriptors: %w", err)
	}
	return ready, nil
}
