package sys

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Address is a socket address in the kernel's form, so that loops that connect repeatedly allocate
// nothing.
type Address struct {
	raw    [unix.SizeofSockaddrInet6]byte
	length uint32
}

// AddressOf converts an address to the kernel's form.
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

// AddrPort converts the address back. It returns the zero value for an unknown address family.
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

// OpenStream opens a blocking, unconnected TCP socket of the family of an address.
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

// Connect connects a blocking socket. It returns [ErrTimeout] if the connection was not established
// within the time of [SetTimeout]; the kernel continues to try, and another call continues to wait.
func Connect(fd int, to *Address) error {
	for {
		_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&to.raw)), uintptr(to.length))
		switch errno {
		case 0, unix.EISCONN: // a signal interrupted the call, and the kernel completed the connect
			return nil
		case unix.EINTR:
		// SO_SNDTIMEO has expired: in this call, or again in a later call that continued to wait
		// (inet_stream_connect).
		case unix.EINPROGRESS, unix.EALREADY:
			return ErrTimeout
		default:
			return errno
		}
	}
}

// Disconnect returns a connected socket to its state before [Connect], by a reset if the connection
// still existed (connect(2) with AF_UNSPEC). Its options remain, and its port is released. It never
// sleeps, so the Go scheduler is not notified.
func Disconnect(fd int) error {
	var none [unix.SizeofSockaddrInet4]byte // AF_UNSPEC is zero
	if _, _, errno := unix.RawSyscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&none)),
		uintptr(len(none))); errno != 0 {
		return errno
	}
	return nil
}

// Listen makes a blocking TCP socket accept connections at an address. With port 0 the kernel
// chooses a port, see [LocalPort]. The unspecified address of IPv6 accepts IPv4 too.
func Listen(fd int, at netip.AddrPort, backlog int) error {
	if at.Addr() == netip.IPv6Unspecified() {
		// The host's default may differ (net.ipv6.bindv6only).
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

// LocalPort returns the port that a socket is bound to.
func LocalPort(fd int) (uint16, error) {
	sa, err := unix.Getsockname(fd)
	if err != nil {
		return 0, fmt.Errorf("read local address: %w", err)
	}
	return addrPort(sa).Port(), nil
}

// Accept accepts the next connection of a listening socket. It returns a blocking descriptor with
// close-on-exec, and stores the peer's address in from. It returns [ErrTimeout] after the time of
// [SetTimeout]. The connection inherits the options of the listening socket, including its
// timeouts.
func Accept(fd int, from *Address) (int, error) {
	for {
		from.length = uint32(len(from.raw))
		conn, _, errno := unix.Syscall6(unix.SYS_ACCEPT4, uintptr(fd), uintptr(unsafe.Pointer(&from.raw)),
			uintptr(unsafe.Pointer(&from.length)), unix.SOCK_CLOEXEC, 0, 0)
		switch errno {
		case 0:
			return int(conn), nil
		// The connection was reset while it waited; continue with the next one (accept(2)).
		case unix.EINTR, unix.ECONNABORTED:
		case unix.EAGAIN:
			return -1, ErrTimeout
		default:
			return -1, errno
		}
	}
}
