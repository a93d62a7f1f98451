package sys

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Address is a socket address ready for the kernel, so that loops that connect again and again
// allocate nothing.
type Address struct {
	raw    [unix.SizeofSockaddrInet6]byte
	length uint32
}

// AddressOf prepares an address.
func AddressOf(a netip.AddrPort) Address {
	var out Address
	ip := a.Addr().Unmap()
	if ip.Is4() {
		binary.NativeEndian.PutUint16(out.raw[0:], unix.AF_INET)
		binary.BigEndian.PutUint16(out.raw[2:], a.Port())
		v4 := ip.As4()
		copy(out.raw[4:], v4[:])
		out.length = unix.SizeofSockaddrInet4
		return out
	}
	binary.NativeEndian.PutUint16(out.raw[0:], unix.AF_INET6)
	binary.BigEndian.PutUint16(out.raw[2:], a.Port())
	v6 := ip.As16()
	copy(out.raw[8:], v6[:])
	binary.NativeEndian.PutUint32(out.raw[24:], zoneIndex(ip.Zone()))
	out.length = unix.SizeofSockaddrInet6
	return out
}

// AddrPort is the address in words; it is the zero value when the address is of no family that this
// package knows.
func (a *Address) AddrPort() netip.AddrPort {
	port := binary.BigEndian.Uint16(a.raw[2:])
	switch binary.NativeEndian.Uint16(a.raw[0:]) {
	case unix.AF_INET:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(a.raw[4:8])), port)
	case unix.AF_INET6:
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(a.raw[8:24])).Unmap(), port)
	}
	return netip.AddrPort{}
}

// OpenStream opens a blocking TCP socket of the family of an address; it is not connected yet.
func OpenStream(to netip.Addr) (fd int, err error) {
	family := unix.AF_INET6
	if to.Unmap().Is4() {
		family = unix.AF_INET
	}
	fd, err = unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if errors.Is(err, unix.EAFNOSUPPORT) {
		return -1, &UnsupportedError{Feature: "tcp to " + to.String()}
	}
	if err != nil {
		return -1, fmt.Errorf("open tcp socket: %w", err)
	}
	return fd, nil
}

// Connect connects a blocking socket. [ErrTimeout] is a connection that did not come about within
// the time of [SetTimeout]; the kernel goes on trying, and another call waits on.
func Connect(fd int, to *Address) error {
	for {
		_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&to.raw)), uintptr(to.length))
		switch errno {
		case 0, unix.EISCONN: // a signal had interrupted a connect that went on without us
			return nil
		case unix.EINTR:
		// SO_SNDTIMEO has passed: in this call, or once more in a later one that went on waiting
		// (inet_stream_connect).
		case unix.EINPROGRESS, unix.EALREADY:
			return ErrTimeout
		default:
			return errno
		}
	}
}

// Disconnect takes a connected socket back to where it was before [Connect], by a reset if the
// connection still stood (connect(2) with AF_UNSPEC). Its options stay, its port is given back. It
// never sleeps, so the scheduler of Go does not hear of it.
func Disconnect(fd int) error {
	var none [unix.SizeofSockaddrInet4]byte // AF_UNSPEC is zero
	if _, _, errno := unix.RawSyscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&none)),
		uintptr(len(none))); errno != 0 {
		return errno
	}
	return nil
}

// Listen makes a blocking TCP socket accept connections at an address; port 0 lets the kernel
// choose, see [LocalPort]. The unspecified address of IPv6 takes IPv4 as well.
func Listen(fd int, at netip.AddrPort, backlog int) error {
	if at.Addr() == netip.IPv6Unspecified() {
		// A host may have it otherwise (net.ipv6.bindv6only).
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0); err != nil {
			return fmt.Errorf("clear ipv6_v6only: %w", err)
		}
	}
	if err := unix.Bind(fd, sockaddr(at)); err != nil {
		return fmt.Errorf("bind %s: %w", at, err)
	}
	if err := unix.Listen(fd, backlog); err != nil {
		return fmt.Errorf("listen on %s: %w", at, err)
	}
	return nil
}

// LocalPort is the port that a socket is bound to.
func LocalPort(fd int) (uint16, error) {
	sa, err := unix.Getsockname(fd)
	if err != nil {
		return 0, fmt.Errorf("read local address: %w", err)
	}
	return addrPort(sa).Port(), nil
}

// Accept takes the next connection of a listening socket as a blocking descriptor that is closed on
// exec and tells who it is. [ErrTimeout] after the time of [SetTimeout]; options of the listening
// socket, its timeouts among them, hold for the connection as well.
func Accept(fd int, from *Address) (int, error) {
	for {
		from.length = uint32(len(from.raw))
		conn, _, errno := unix.Syscall6(unix.SYS_ACCEPT4, uintptr(fd), uintptr(unsafe.Pointer(&from.raw)),
			uintptr(unsafe.Pointer(&from.length)), unix.SOCK_CLOEXEC, 0, 0)
		switch errno {
		case 0:
			return int(conn), nil
		// The connection was reset while it waited; the next one is as good (accept(2)).
		case unix.EINTR, unix.ECONNABORTED:
		case unix.EAGAIN:
			return -1, ErrTimeout
		default:
			return -1, errno
		}
	}
}
