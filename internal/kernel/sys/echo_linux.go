package sys

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"

	"golang.org/x/sys/unix"
)

// OpenEcho opens a blocking socket that exchanges ICMP echo messages with one address, and with no
// other: it is connected. It tries the ping socket that unprivileged users get inside
// net.ipv4.ping_group_range, then a raw socket, which needs CAP_NET_RAW. When neither is allowed
// the error is fs.ErrPermission. Use [Read], [Write] and [Poll]; end with [Close].
func OpenEcho(to netip.Addr) (fd int, kind EchoKind, err error) {
	family, proto := unix.AF_INET, unix.IPPROTO_ICMP
	if !to.Unmap().Is4() {
		family, proto = unix.AF_INET6, unix.IPPROTO_ICMPV6
	}
	kind = EchoPing
	// A ping socket hands over answers to its own requests only; a raw one sees every ICMP message
	// of the host and has to sort.
	fd, pingErr := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, proto)
	if pingErr != nil {
		var rawErr error
		kind = EchoRaw
		if fd, rawErr = unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC, proto); rawErr != nil {
			return -1, "", echoError(pingErr, rawErr)
		}
	}
	// Port 0 lets a ping socket choose its identifier; for a raw socket the port means nothing.
	// Connected, so that the kernel drops what others send, and reports "host unreachable" as an
	// error of the next call.
	if err := unix.Connect(fd, sockaddr(netip.AddrPortFrom(to, 0))); err != nil {
		_ = unix.Close(fd) // nothing was sent on it
		return -1, "", fmt.Errorf("connect icmp socket to %s: %w", to, err)
	}
	return fd, kind, nil
}

// OpenUDP opens a blocking UDP socket that is connected to one address. Use [Read], [Write] and
// [Poll]; end with [Close].
func OpenUDP(to netip.AddrPort) (fd int, err error) {
	family := unix.AF_INET
	if !to.Addr().Unmap().Is4() {
		family = unix.AF_INET6
	}
	if fd, err = unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return -1, fmt.Errorf("open udp socket: %w", err)
	}
	if err := unix.Connect(fd, sockaddr(to)); err != nil {
		_ = unix.Close(fd) // nothing was sent on it
		return -1, fmt.Errorf("connect udp socket to %s: %w", to, err)
	}
	return fd, nil
}

func probeEcho() error {
	fd, _, err := OpenEcho(netip.AddrFrom4([4]byte{127, 0, 0, 1}))
	if err != nil {
		return err
	}
	return Close(fd)
}

// echoError tells both refusals. The raw one decides what kind of answer it is: EPERM is a matter
// of privilege, EPROTONOSUPPORT of the kernel.
func echoError(ping, raw error) error {
	if errors.Is(raw, unix.EPROTONOSUPPORT) || errors.Is(raw, unix.EAFNOSUPPORT) {
		return &UnsupportedError{Feature: "icmp sockets"}
	}
	err := fmt.Errorf("open icmp socket: %w (ping socket: %v)", raw, ping)
	if errors.Is(raw, fs.ErrPermission) {
		return echoRefused{err}
	}
	return err
}

// echoRefused is for users whom the kernel, or who set it up, does not let ping: its own default is
// nobody, and distributions differ.
type echoRefused struct{ error }

func (e echoRefused) Unwrap() error { return e.error }

// Hint is what to do next. The setting is that of IPv6 too.
func (echoRefused) Hint() string {
	return `let users ping: sysctl -w net.ipv4.ping_group_range="0 2147483647"`
}
