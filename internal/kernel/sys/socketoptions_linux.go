package sys

import (
	"fmt"
	"math"
	"time"

	"golang.org/x/sys/unix"
)

// SetMaxSegmentBytes bounds the payload of one segment, in both directions: it is what the
// handshake announces, so it must be set before connect or on the listening socket. The kernel
// takes 88 to 32767.
func SetMaxSegmentBytes(fd, bytes int) error {
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_MAXSEG, bytes); err != nil {
		return fmt.Errorf("set tcp_maxseg to %d bytes: %w", bytes, err)
	}
	return nil
}

// SetMaxPacingRate bounds what TCP sends, in payload bytes per second; the kernel spaces the
// segments (SO_MAX_PACING_RATE, TCP without the fq qdisc since Linux 4.13). Zero and infinity are
// no bound.
func SetMaxPacingRate(fd int, bytesPerSecond float64) error {
	rate := ^uint64(0) // SK_PACING_RATE ~0 is "unlimited" to the kernel
	if bytesPerSecond > 0 && bytesPerSecond < math.MaxInt64 {
		rate = uint64(math.Ceil(bytesPerSecond))
	}
	// Eight bytes since Linux 4.20; older kernels read the lower four, which are the first ones on
	// little endian machines.
	if err := unix.SetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, rate); err != nil {
		return fmt.Errorf("set so_max_pacing_rate to %.0f bytes/s: %w", bytesPerSecond, err)
	}
	return nil
}

// SetReuseAddress lets a port be bound that an earlier connection still holds in TIME_WAIT
// (SO_REUSEADDR).
func SetReuseAddress(fd int) error {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return fmt.Errorf("set so_reuseaddr: %w", err)
	}
	return nil
}

// BindPort gives a socket that is not connected yet a port of its own, on every address of the
// host.
func BindPort(fd, port int) error {
	family, err := sockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN, "so_domain")
	if err != nil {
		return err
	}
	var sa unix.Sockaddr = &unix.SockaddrInet4{Port: port}
	if family == unix.AF_INET6 {
		sa = &unix.SockaddrInet6{Port: port}
	}
	if err := unix.Bind(fd, sa); err != nil {
		return fmt.Errorf("bind port %d: %w", port, err)
	}
	return nil
}

// SetUnsentLowWater keeps writers from queueing more than about this many bytes that were not sent
// yet (TCP_NOTSENT_LOWAT, Linux 3.12), so that what a paced sender has counted is what has left.
func SetUnsentLowWater(fd, bytes int) error {
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, bytes); err != nil {
		return fmt.Errorf("set tcp_notsent_lowat to %d bytes: %w", bytes, err)
	}
	return nil
}

// SetReceiveLowWater lets a reader sleep until this many bytes have come (SO_RCVLOWAT), so that one
// wakeup pays for many segments.
func SetReceiveLowWater(fd, bytes int) error {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVLOWAT, bytes); err != nil {
		return fmt.Errorf("set so_rcvlowat to %d bytes: %w", bytes, err)
	}
	return nil
}

// SetDeferAccept lets accept return a connection only when its first bytes are there
// (TCP_DEFER_ACCEPT): one wakeup instead of two. d is how long the kernel waits for them, counted
// in retransmissions of its SYN-ACK.
func SetDeferAccept(fd int, d time.Duration) error {
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_DEFER_ACCEPT,
		int(max(d, time.Second)/time.Second)); err != nil {
		return fmt.Errorf("set tcp_defer_accept to %v: %w", d, err)
	}
	return nil
}
