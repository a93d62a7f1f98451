//go:build linux

package wire

import (
	"fmt"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// setUserTimeout makes the kernel end the connection when sent data remains unacknowledged for d
// (TCP_USER_TIMEOUT, Linux ≥ 2.6.37). Heartbeats would detect this too, but the timeout also frees
// a writer that waits for room. Hence best effort.
func setUserTimeout(conn *net.TCPConn, d time.Duration) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return
	}
	// Milliseconds (tcp(7)). It covers unacknowledged data only; for an idle peer that vanished,
	// the heartbeats are such data.
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(d.Milliseconds()))
	})
}

const (
	// retransmitWithin limits the wait between two retransmissions on a control channel, which
	// otherwise doubles up to two minutes. It is the minimum that the kernel allows
	// (TCP_RTO_MAX_MS, Linux ≥ 6.15).
	retransmitWithin = time.Second
	// controlPriority is TC_PRIO_INTERACTIVE of linux/pkt_sched.h. Priorities up to it need no
	// privilege (socket(7)).
	controlPriority = 6
)

// hurry gives the few packets of a control channel precedence over a load. This host's own queue
// sends them first if it supports priorities (pfifo_fast, prio; the packet itself shows no sign of
// it), and lost segments are retransmitted soon. Best effort: without it, the channel must tolerate
// more silence.
func hurry(conn *net.TCPConn) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PRIORITY, controlPriority)
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_RTO_MAX_MS, int(retransmitWithin.Milliseconds()))
	})
}

// canRenew reports that a second listener can take over the port while the first one still has it.
const canRenew = true

// sharePort sets SO_REUSEPORT. It is on only while one listener takes over from another, so that a
// second process on the same port still fails with "address already in use". The kernel checks the
// flag when another socket binds, not when this one did (inet_csk_bind_conflict, seen in Linux
// 6.x).
func sharePort(raw syscall.RawConn, on int) error {
	var opErr error
	if err := raw.Control(func(fd uintptr) {
		opErr = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, on)
	}); err != nil {
		return err
	}
	if opErr != nil {
		return fmt.Errorf("set SO_REUSEPORT: %w", opErr)
	}
	return nil
}

// setListenOptions sets options that accepted sockets inherit.
func setListenOptions(raw syscall.RawConn, o ListenOptions) error {
	var opErr error
	set := func(fd uintptr, level, name, value int, what string) {
		if value == 0 || opErr != nil {
			return
		}
		if err := unix.SetsockoptInt(int(fd), level, name, value); err != nil {
			opErr = fmt.Errorf("set %s to %d: %w", what, value, err)
		}
	}
	if err := raw.Control(func(fd uintptr) {
		set(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, o.WindowBytes, "SO_RCVBUF")
		set(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, o.WindowBytes, "SO_SNDBUF")
		set(fd, unix.IPPROTO_TCP, unix.TCP_MAXSEG, o.MSSBytes, "TCP_MAXSEG")
	}); err != nil {
		return err
	}
	return opErr
}

// socketDefaults are the values that a TCP socket gets from this host's settings at its creation,
// and an accepted one from its listener: the second numbers of net.ipv4.tcp_rmem and tcp_wmem,
// net.core.busy_read, net.ipv4.ip_no_pmtu_disc. The kernel looks up all other sysctls per
// connection (seen in tcp_init_sock, sock_init_data and inet_create of Linux 6.x).
type socketDefaults struct {
	receiveBytes, sendBytes, busyReadMicros, mtuDiscover int
	locked                                               int // SO_BUF_LOCK: buffers that do not grow
}

// setDefaults gives a listening socket these values and removes what setListenOptions has set. Best
// effort: a buffer above net.core.rmem_max and more busy polling need CAP_NET_ADMIN, and unlocking
// a buffer needs Linux 5.14; the caller reads the socket back.
func setDefaults(raw syscall.RawConn, d socketDefaults) {
	_ = raw.Control(func(f uintptr) {
		fd := int(f)
		buffer := func(force, name, bytes int) {
			// The kernel doubles what is requested (socket(7)).
			if unix.SetsockoptInt(fd, unix.SOL_SOCKET, force, bytes/2) != nil {
				_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, name, bytes/2)
			}
		}
		buffer(unix.SO_RCVBUFFORCE, unix.SO_RCVBUF, d.receiveBytes)
		buffer(unix.SO_SNDBUFFORCE, unix.SO_SNDBUF, d.sendBytes)
		// A buffer that was set does not grow; 0 lets it grow again.
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BUF_LOCK, 0)
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BUSY_POLL, d.busyReadMicros)
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, d.mtuDiscover)
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_MAXSEG, 0)
	})
}

// multipath reports a listening socket of Multipath TCP (SO_PROTOCOL, Linux 2.6.32).
func multipath(l *net.TCPListener) bool {
	protocol := 0
	if raw, err := l.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { protocol, _ = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PROTOCOL) })
	}
	return protocol == unix.IPPROTO_MPTCP
}

// restorable reports that a socket with changed buffers can have growing ones again.
func (d socketDefaults) restorable() bool { return d.locked >= 0 }

// like reports that d is what setDefaults makes of other: the kernel doubles requested sizes, so an
// odd one is a byte less.
func (d socketDefaults) like(other socketDefaults) bool {
	d.receiveBytes, d.sendBytes = d.receiveBytes|1, d.sendBytes|1
	other.receiveBytes, other.sendBytes = other.receiveBytes|1, other.sendBytes|1
	return d == other
}

// defaultsOf reads a listening socket. A value that cannot be read is -1, which equals itself.
func defaultsOf(l *net.TCPListener) socketDefaults {
	d := unknownDefaults
	if raw, err := l.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { d = readDefaults(int(fd)) })
	}
	return d
}

// freshDefaults returns the values of a new listening socket at ip.
func freshDefaults(ip net.IP) socketDefaults {
	family := unix.AF_INET6
	if ip.To4() != nil {
		family = unix.AF_INET
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		// Without IPv6 an unspecified address listens on IPv4.
		if fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
			return unknownDefaults
		}
	}
	defer unix.Close(fd)
	return readDefaults(fd)
}

var unknownDefaults = socketDefaults{-1, -1, -1, -1, -1}

func readDefaults(fd int) socketDefaults {
	get := func(level, name int) int {
		v, err := unix.GetsockoptInt(fd, level, name)
		if err != nil {
			return -1
		}
		return v
	}
	return socketDefaults{
		get(unix.SOL_SOCKET, unix.SO_RCVBUF), get(unix.SOL_SOCKET, unix.SO_SNDBUF),
		get(unix.SOL_SOCKET, unix.SO_BUSY_POLL), get(unix.IPPROTO_IP, unix.IP_MTU_DISCOVER),
		get(unix.SOL_SOCKET, unix.SO_BUF_LOCK),
	}
}
