package sys

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// TakeOver converts a connection of package net to a bare descriptor: blocking, close-on-exec, in
// no poller. It always closes the connection; the socket continues in the descriptor, which the
// caller closes with [Close].
func TakeOver(conn *net.TCPConn) (fd int, err error) { return takeOver(conn) }

func takeOver(conn interface {
	syscall.Conn
	io.Closer
}) (fd int, err error) {
	fd = -1
	defer func() {
		// Closing the original does not affect the duplicate; it removes the socket from the
		// runtime's epoll set.
		if cerr := conn.Close(); cerr != nil && err == nil && !errors.Is(cerr, net.ErrClosed) {
			err = fmt.Errorf("release connection: %w", cerr)
		}
		if err != nil && fd >= 0 {
			_ = unix.Close(fd) // the first error explains
			fd = -1
		}
	}()
	raw, err := conn.SyscallConn()
	if err != nil {
		return fd, fmt.Errorf("take over connection: %w", err)
	}
	var dup error
	if err := raw.Control(func(orig uintptr) {
		// At least 3: a SIGPIPE on descriptors 1 and 2 kills a Go program; on all others it is
		// EPIPE.
		fd, dup = unix.FcntlInt(orig, unix.F_DUPFD_CLOEXEC, 3)
	}); err != nil {
		return fd, fmt.Errorf("take over connection: %w", err)
	}
	if dup != nil {
		return -1, fmt.Errorf("duplicate descriptor: %w", dup)
	}
	// O_NONBLOCK belongs to the open file, which both descriptors share; the original is closed
	// before package net could notice.
	if err := unix.SetNonblock(fd, false); err != nil {
		return fd, fmt.Errorf("make descriptor blocking: %w", err)
	}
	return fd, nil
}

// SetTimeout limits how long one blocking read and one blocking write may sleep. They then return
// [ErrTimeout], or the number of bytes transferred so far. The kernel counts in jiffies, so the
// resolution is 4 ms with HZ=250. Zero means no limit.
func SetTimeout(fd int, d time.Duration) error {
	// Both belong to the socket and not to the call, so they cost nothing in the loop; when they
	// expire, the call returns EAGAIN (socket(7)).
	tv := unix.NsecToTimeval(d.Nanoseconds())
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv); err != nil {
		return fmt.Errorf("set receive timeout: %w", err)
	}
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &tv); err != nil {
		return fmt.Errorf("set send timeout: %w", err)
	}
	return nil
}

// SetNoDelay disables Nagle's algorithm (true) or enables it (false).
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

// SetAbortOnClose makes [Close] drop queued data and send a reset (SO_LINGER of zero). Otherwise
// megabytes of useless data keep the link busy after a test.
func SetAbortOnClose(fd int) error {
	// On with zero seconds is the only setting that resets. With more seconds close(2) waits; with
	// off the kernel continues to send in the background.
	if err := unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}); err != nil {
		return fmt.Errorf("set linger: %w", err)
	}
	return nil
}

// SendBufferBytes returns SO_SNDBUF as the kernel stores it: twice the requested size, because it
// includes the kernel's own bookkeeping.
func SendBufferBytes(fd int) (int, error) {
	return sockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, "so_sndbuf")
}

// ReceiveBufferBytes returns SO_RCVBUF as the kernel stores it, see [SendBufferBytes].
func ReceiveBufferBytes(fd int) (int, error) {
	return sockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, "so_rcvbuf")
}

// SetSendBufferBytes requests a send buffer and thereby disables its automatic tuning. The kernel
// doubles the value and caps it at net.core.wmem_max.
func SetSendBufferBytes(fd, bytes int) error {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, bytes); err != nil {
		return fmt.Errorf("set so_sndbuf to %d bytes: %w", bytes, err)
	}
	return nil
}

// SetReceiveBufferBytes requests a receive buffer and thereby disables its automatic tuning. The
// kernel doubles the value and caps it at net.core.rmem_max.
func SetReceiveBufferBytes(fd, bytes int) error {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, bytes); err != nil {
		return fmt.Errorf("set so_rcvbuf to %d bytes: %w", bytes, err)
	}
	return nil
}

// MaxSegmentBytes returns TCP_MAXSEG: the payload of one full segment of the present connection.
func MaxSegmentBytes(fd int) (int, error) {
	return sockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_MAXSEG, "tcp_maxseg")
}

// Congestion returns the congestion control of a TCP socket, named as in
// net.ipv4.tcp_congestion_control.
func Congestion(fd int) (string, error) {
	name, err := unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
	if err != nil {
		return "", fmt.Errorf("read tcp_congestion: %w", err)
	}
	return name, nil
}

// SetCongestion sets the congestion control of one TCP socket. The error is fs.ErrNotExist for an
// unknown one (the kernel loads the module if the caller is permitted to), and fs.ErrPermission for
// one that is reserved for root.
func SetCongestion(fd int, name string) error {
	if err := unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, name); err != nil {
		// ENOENT would read "no such file or directory", which misleads here; fs.ErrNotExist keeps
		// its meaning for programs.
		if errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("set congestion control %q: %w on this kernel%s", name, fs.ErrNotExist, offered())
		}
		return fmt.Errorf("set congestion control %q: %w", name, err)
	}
	return nil
}

// offered lists the loaded congestion controls; the kernel may have others as modules. It is empty
// if the list cannot be read.
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
