//go:build linux

package wire

import (
	"fmt"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// setUserTimeout lets the kernel end the connection when what was sent stays unacknowledged for d
// (TCP_USER_TIMEOUT, Linux ≥ 2.6.37). Heartbeats would find out as well; this one also frees a
// writer that waits for room. Hence best effort.
func setUserTimeout(conn *net.TCPConn, d time.Duration) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return
	}
	// Milliseconds (tcp(7)). It covers unacknowledged data only; an idle peer that vanished is
	// found by the heartbeats, which are such data.
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(d.Milliseconds()))
	})
}

const (
	// retransmitWithin bounds the wait between two retransmissions on a control channel, which else
	// doubles up to two minutes. It is the least that the kernel allows (TCP_RTO_MAX_MS, Linux ≥
	// 6.15).
	retransmitWithin = time.Second
	// controlPriority is TC_PRIO_INTERACTIVE of linux/pkt_sched.h. Priorities up to it need no
	// privilege (socket(7)).
	controlPriority = 6
)

// hurry lets the few packets of a control channel through beside a load: this host's own queue
// takes them before those of the load where it knows priorities (pfifo_fast, prio; nothing in the
// packet shows it), and what was lost on the path is sent again soon. Best effort: without it, more
// silence has to be borne.
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

// canRenew tells that a second listener can take over the port while the first one still has it.
const canRenew = true

// sharePort sets SO_REUSEPORT. It is on only while one listener takes over from another, so that a
// second process on the same port still meets "address already in use". The kernel looks at the
// flag when somebody binds, not when this socket was bound (inet_csk_bind_conflict, seen in Linux
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

// setListenOptions sets what accepted sockets inherit.
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

// socketDefaults is what a TCP socket has from this host's settings when it is made, and an
// accepted one from its listener: the second numbers of net.ipv4.tcp_rmem and tcp_wmem,
// net.core.busy_read, net.ipv4.ip_no_pmtu_disc. What else a sysctl decides, the kernel looks up per
// connection (seen in tcp_init_sock, sock_init_data and inet_create of Linux 6.x).
type socketDefaults struct {
	receiveBytes, sendBytes, busyReadMicros, mtuDiscover int
}

// defaultsOf reads a listening socket; what cannot be read is -1 and equal to itself.
func defaultsOf(l *net.TCPListener) socketDefaults {
	d := unknownDefaults
	if raw, err := l.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { d = readDefaults(int(fd)) })
	}
	return d
}

// freshDefaults gives what a listening socket at ip would have that was made now.
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

var unknownDefaults = socketDefaults{-1, -1, -1, -1}

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
	}
}
