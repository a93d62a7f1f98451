package sys

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// TakeOver makes a descriptor of our own out of a connection of package net: blocking, closed on
// exec, known to no poller. The connection is closed in any case, the socket under it lives on in
// the descriptor, which the caller closes with [Close].
func TakeOver(conn *net.TCPConn) (fd int, err error) {
	fd = -1
	defer func() {
		// Closing the original cannot hurt the duplicate; it takes the socket out of the runtime's
		// epoll set.
		if cerr := conn.Close(); cerr != nil && err == nil && !errors.Is(cerr, net.ErrClosed) {
			err = fmt.Errorf("release connection: %w", cerr)
		}
		if err != nil && fd >= 0 {
			_ = unix.Close(fd) // the first error is the one that tells
			fd = -1
		}
	}()
	raw, err := conn.SyscallConn()
	if err != nil {
		return fd, fmt.Errorf("take over connection: %w", err)
	}
	var dup error
	if err := raw.Control(func(orig uintptr) {
		// At least 3: a SIGPIPE on descriptors 1 and 2 kills a Go program, on all others it is
		// EPIPE.
		fd, dup = unix.FcntlInt(orig, unix.F_DUPFD_CLOEXEC, 3)
	}); err != nil {
		return fd, fmt.Errorf("take over connection: %w", err)
	}
	if dup != nil {
		return -1, fmt.Errorf("duplicate descriptor: %w", dup)
	}
	// O_NONBLOCK belongs to the open file, which both descriptors share; the original is closed
	// before anybody could miss it.
	if err := unix.SetNonblock(fd, false); err != nil {
		return fd, fmt.Errorf("make descriptor blocking: %w", err)
	}
	return fd, nil
}

// SetTimeout bounds how long one blocking read and one blocking write may sleep; they then return
// [ErrTimeout], or the bytes that went through so far. The kernel counts in jiffies, so 4 ms are as
// fine as it gets with HZ=250. Zero is for ever.
func SetTimeout(fd int, d time.Duration) error {
	// Both are of the socket and not of the call, so they cost nothing in the loop; socket(7) gives
	// EAGAIN when they pass.
	tv := unix.NsecToTimeval(d.Nanoseconds())
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv); err != nil {
		return fmt.Errorf("set receive timeout: %w", err)
	}
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &tv); err != nil {
		return fmt.Errorf("set send timeout: %w", err)
	}
	return nil
}

// SetNoDelay switches Nagle's algorithm off (true) or on.
func SetNoDelay(fd int, on bool) error {
	v := 0
	if on {
		v = 1
	}
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, v); err != nil {
		return fmt.Errorf("set tcp_nodelay: %w", err)
	}
	return nil
}

// SetAbortOnClose makes [Close] drop what is still queued and send a reset (SO_LINGER of zero).
// Without it megabytes that nobody wants any more keep the link busy after a test.
func SetAbortOnClose(fd int) error {
	// On with zero seconds is the one setting that resets; on with more makes close(2) wait, off
	// lets the kernel send on behind our back.
	if err := unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}); err != nil {
		return fmt.Errorf("set linger: %w", err)
	}
	return nil
}

// SendBufferBytes is SO_SNDBUF as the kernel keeps it: twice what was asked for, because it also
// pays for its own bookkeeping.
func SendBufferBytes(fd int) (int, error) {
	return sockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, "so_sndbuf")
}

// ReceiveBufferBytes is SO_RCVBUF as the kernel keeps it, see [SendBufferBytes].
func ReceiveBufferBytes(fd int) (int, error) {
	return sockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, "so_rcvbuf")
}

// SetSendBufferBytes asks for a send buffer and thereby ends its automatic tuning. The kernel
// doubles the value and caps it at net.core.wmem_max.
func SetSendBufferBytes(fd, bytes int) error {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, bytes); err != nil {
		return fmt.Errorf("set so_sndbuf to %d bytes: %w", bytes, err)
	}
	return nil
}

// SetReceiveBufferBytes asks for a receive buffer and thereby ends its automatic tuning. The kernel
// doubles the value and caps it at net.core.rmem_max.
func SetReceiveBufferBytes(fd, bytes int) error {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, bytes); err != nil {
		return fmt.Errorf("set so_rcvbuf to %d bytes: %w", bytes, err)
	}
	return nil
}

// MaxSegmentBytes is TCP_MAXSEG: the payload of one full segment as the connection stands.
func MaxSegmentBytes(fd int) (int, error) {
	return sockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_MAXSEG, "tcp_maxseg")
}

// Congestion is the congestion control of a TCP socket, as in net.ipv4.tcp_congestion_control.
func Congestion(fd int) (string, error) {
	name, err := unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
	if err != nil {
		return "", fmt.Errorf("read tcp_congestion: %w", err)
	}
	return name, nil
}

// SetCongestion chooses the congestion control of one TCP socket. An unknown one is fs.ErrNotExist
// (the kernel loads the module itself when it may), one that is reserved for root is
// fs.ErrPermission.
func SetCongestion(fd int, name string) error {
	if err := unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, name); err != nil {
		// ENOENT reads "no such file or directory", which helps nobody here; fs.ErrNotExist keeps
		// its meaning for programs.
		if errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("set congestion control %q: %w on this kernel%s", name, fs.ErrNotExist, offered())
		}
		return fmt.Errorf("set congestion control %q: %w", name, err)
	}
	return nil
}

// offered names the congestion controls that are loaded; the kernel may have others as modules.
// Empty: that cannot be read.
func offered() string {
	names, err := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control")
	if err != nil {
		return ""
	}
	return ", which has " + strings.Join(strings.Fields(string(names)), ", ")
}

func sockoptInt(fd, level, option int, name string) (int, error) {
	v, err := unix.GetsockoptInt(fd, level, option)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", name, err)
	}
	return v, nil
}
