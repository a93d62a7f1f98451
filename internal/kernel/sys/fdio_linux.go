package sys

import (
	"io"
	"net"
	"net/netip"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Read is read(2) on a blocking descriptor, repeated after each signal. It returns io.EOF at the
// end of a stream, [ErrTimeout] after the time of [SetTimeout], and otherwise the bare errno. It
// never allocates.
func Read(fd int, p []byte) (int, error) {
	for {
		n, err := unix.Read(fd, p)
		switch {
		// Zero bytes mean the end of a stream, unless zero were requested. An empty datagram looks
		// the same; a pinger ignores it as noise.
		case err == nil && n == 0 && len(p) > 0:
			return 0, io.EOF
		case err == nil:
			return n, nil
		case err == unix.EINTR:
		case err == unix.EAGAIN: // SO_RCVTIMEO has expired; a blocking descriptor returns it for no other reason
			return 0, ErrTimeout
		default:
			return 0, err
		}
	}
}

// Write is write(2) on a blocking descriptor, repeated after each signal. It may write only a part
// of p, also when the time of [SetTimeout] expires. [ErrTimeout] means that no byte was written.
func Write(fd int, p []byte) (int, error) {
	for {
		n, err := unix.Write(fd, p)
		switch err {
		case nil:
			return n, nil
		case unix.EINTR:
		case unix.EAGAIN:
			return 0, ErrTimeout
		default:
			return 0, err
		}
	}
}

// Poll waits until fd is readable, at most for d, and reports whether it is. A pending error of the
// socket counts as readable: the next read returns it. A signal, such as the SIGURG by which the
// runtime preempts threads, does not shorten the wait.
func Poll(fd int, d time.Duration) (bool, error) {
	// ppoll(2) counts nanoseconds where poll(2) counts milliseconds, which is too coarse for a ping
	// on a LAN.
	fds := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	left := unix.NsecToTimespec(max(d, 0).Nanoseconds())
	for {
		// The bare system call leaves in left what remains of the wait (poll_select_finish).
		n, err := unix.Ppoll(fds[:], &left, nil)
		if err != unix.EINTR {
			return n > 0, err
		}
	}
}

// SendTo sends one datagram, repeated after each signal.
func SendTo(fd int, p []byte, to netip.AddrPort) error {
	sa := sockaddr(to)
	for {
		if err := unix.Sendto(fd, p, 0, sa); err != unix.EINTR {
			return err
		}
	}
}

// Shutdown ends both directions of a stream and wakes every thread that sleeps in a read or write
// on it.
func Shutdown(fd int) error { return unix.Shutdown(fd, unix.SHUT_RDWR) }

// Close closes a descriptor. It is not repeated after a signal, because Linux has released the
// descriptor by then.
func Close(fd int) error { return unix.Close(fd) }

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	ip := a.Addr().Unmap()
	if ip.Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: ip.As4()}
	}
	sa := &unix.SockaddrInet6{Port: int(a.Port()), Addr: ip.As16()}
	sa.ZoneId = zoneIndex(ip.Zone())
	return sa
}

func addrPort(sa unix.Sockaddr) netip.AddrPort {
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(sa.Addr).Unmap(), uint16(sa.Port))
	}
	return netip.AddrPort{}
}

// zoneIndex converts the zone of a link-local address to an interface index; zero means no zone.
func zoneIndex(zone string) uint32 {
	if zone == "" {
		return 0
	}
	if n, err := strconv.ParseUint(zone, 10, 32); err == nil {
		return uint32(n)
	}
	ifi, err := net.InterfaceByName(zone)
	if err != nil {
		return 0 // connect(2) then reports that the address needs one
	}
	return uint32(ifi.Index)
}
