package sys

import (
	"fmt"
	"math"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// SetMaxSegmentBytes limits the payload of one segment in both directions. The handshake announces
// it, so it must be set before connect or on the listening socket. The kernel accepts 88 to 32767.
func SetMaxSegmentBytes(fd, bytes int) error {
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_MAXSEG, bytes); err != nil {
		return fmt.Errorf("set tcp_maxseg to %d bytes: %w", bytes, err)
	}
	return nil
}

// SetMaxPacingRate limits the sending rate of TCP, in payload bytes per second; the kernel spaces
// the segments (SO_MAX_PACING_RATE, TCP without the fq qdisc since Linux 4.13). Zero and infinity
// mean no limit.
func SetMaxPacingRate(fd int, bytesPerSecond float64) error {
	rate := ^uint64(0) // SK_PACING_RATE ~0 is "unlimited" to the kernel
	if bytesPerSecond > 0 && bytesPerSecond < math.MaxInt64 {
		rate = uint64(math.Ceil(bytesPerSecond))
	}
	// Eight bytes since Linux 4.20; older kernels read the lower four, which are the first ones on
	// little-endian machines.
	if err := unix.SetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, rate); err != nil {
		return fmt.Errorf("set so_max_pacing_rate to %.0f bytes/s: %w", bytesPerSecond, err)
	}
	return nil
}

// SetReuseAddress allows binding a port that an earlier connection still holds in TIME_WAIT
// (SO_REUSEADDR).
func SetReuseAddress(fd int) error {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return fmt.Errorf("set so_reuseaddr: %w", err)
	}
	return nil
}

// BindLocal binds an unconnected socket to an address and a port. The zero address is every address
// of the host; port 0 leaves the choice to the kernel.
func BindLocal(fd int, from netip.Addr, port int) error {
	family, err := sockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN, "so_domain")
	if err != nil {
		return err
	}
	if !from.IsValid() {
		from = netip.IPv4Unspecified() // sockaddrIn makes it the one of the family
	}
	at := netip.AddrPortFrom(from, uint16(port))
	if port == 0 {
		// The port is then chosen by connect, which knows the other end: a source port may serve
		// connections to several hosts (IP_BIND_ADDRESS_NO_PORT, Linux 4.2). Best effort.
		_ = unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1)
	}
	if err := unix.Bind(fd, sockaddrIn(family, at)); err != nil {
		return fmt.Errorf("bind %s: %w", at, err)
	}
	return nil
}

// SetUnsentLowWater keeps writers from queueing more than about this many unsent bytes
// (TCP_NOTSENT_LOWAT, Linux 3.12), so that the bytes a paced sender has counted have left the host.
func SetUnsentLowWater(fd, bytes int) error {
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, bytes); err != nil {
		return fmt.Errorf("set tcp_notsent_lowat to %d bytes: %w", bytes, err)
	}
	return nil
}

// SetReceiveLowWater lets a reader sleep until this many bytes have arrived (SO_RCVLOWAT), so that
// one wakeup serves many segments.
func SetReceiveLowWater(fd, bytes int) error {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVLOWAT, bytes); err != nil {
		return fmt.Errorf("set so_rcvlowat to %d bytes: %w", bytes, err)
	}
	return nil
}

// SetDeferAccept lets accept return a connection only when its first bytes have arrived
// (TCP_DEFER_ACCEPT): one wakeup instead of two. d is how long the kernel waits for them, counted
// in retransmissions of its SYN-ACK.
func SetDeferAccept(fd int, d time.Duration) error {
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_DEFER_ACCEPT,
		int(max(d, time.Second)/time.Second)); err != nil {
		return fmt.Errorf("set tcp_defer_accept to %v: %w", d, err)
	}
	return nil
}
