package sys

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"

	"golang.org/x/sys/unix"
)

// OpenEcho opens a blocking socket, connected to one address, that exchanges ICMP echo messages
// with that address only. It tries the ping socket that unprivileged users get inside
// net.ipv4.ping_group_range, then a raw socket, which needs CAP_NET_RAW. If neither is allowed, the
// error is fs.ErrPermission. Use [Read], [Write] and [Poll]; end with [Close].
func OpenEcho(from, to netip.Addr) (fd int, kind EchoKind, err error) {
	family, proto := unix.AF_INET, unix.IPPROTO_ICMP
	if !to.Unmap().Is4() {
		family, proto = unix.AF_INET6, unix.IPPROTO_ICMPV6
	}
	kind = EchoPing
	// A ping socket returns replies to its own requests only; a raw one receives every ICMP message
	// of the host and must filter.
	fd, pingErr := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, proto)
	if pingErr != nil {
		var rawErr error
		kind = EchoRaw
		if fd, rawErr = unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC, proto); rawErr != nil {
			return -1, "", echoError(pingErr, rawErr)
		}
	}
	// With port 0 a ping socket chooses its identifier; for a raw socket the port has no meaning.
	// The socket is connected, so that the kernel drops messages of other senders, and reports
	// "host unreachable" as an error of the next call.
	if from.IsValid() {
		if err := unix.Bind(fd, sockaddrIn(family, netip.AddrPortFrom(from, 0))); err != nil {
			_ = unix.Close(fd) // nothing was sent on it
			return -1, "", fmt.Errorf("bind icmp socket to %s: %w", from, err)
		}
	}
	if err := unix.Connect(fd, sockaddr(netip.AddrPortFrom(to, 0))); err != nil {
		_ = unix.Close(fd) // nothing was sent on it
		return -1, "", fmt.Errorf("connect icmp socket to %s: %w", to, err)
	}
	return fd, kind, nil
}

// OpenUDP opens a blocking UDP socket connected to one address. Use [Read], [Write] and [Poll]; end
// with [Close].
func OpenUDP(from netip.Addr, to netip.AddrPort) (fd int, err error) {
	family := unix.AF_INET
	if !to.Addr().Unmap().Is4() {
		family = unix.AF_INET6
	}
	if fd, err = unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return -1, fmt.Errorf("open udp socket: %w", err)
	}
	if from.IsValid() {
		if err := unix.Bind(fd, sockaddrIn(family, netip.AddrPortFrom(from, 0))); err != nil {
			_ = unix.Close(fd) // nothing was sent on it
			return -1, fmt.Errorf("bind udp socket to %s: %w", from, err)
		}
	}
	if err := unix.Connect(fd, sockaddr(to)); err != nil {
		_ = unix.Close(fd) // nothing was sent on it
		return -1, fmt.Errorf("connect udp socket to %s: %w", to, err)
	}
	return fd, nil
}

func probeEcho() error {
	fd, _, err := OpenEcho(netip.Addr{}, netip.AddrFrom4([4]byte{127, 0, 0, 1}))
	if err != nil {
		return err
	}
	return Close(fd)
}

// echoError reports both refusals. The raw one determines the kind of error: EPERM is a missing
// privilege, EPROTONOSUPPORT a missing ability of the kernel.
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

// echoRefused is the error for users who may not ping because of the kernel's settings: by the
// kernel's own default no user may, and distributions differ.
type echoRefused struct{ error }

func (e echoRefused) Unwrap() error { return e.error }

// Hint returns the next step for the user. The setting applies to IPv6 too.
func (echoRefused) Hint() string {
	return `let users ping: sysctl -w net.ipv4.ping_group_range="0 2147483647"`
}
