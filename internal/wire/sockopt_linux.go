//go:build linux

package wire

import (
	"fmt"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// setUserTimeout lets the kernel end the connection when what was sent stays unacknowledged for d (TCP_USER_TIMEOUT, Linux ≥ 2.6.37).
// Heartbeats would find out as well; this one also frees a writer that waits for room. Hence best effort.
func setUserTimeout(conn *net.TCPConn, d time.Duration) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return
	}
	// Milliseconds (tcp(7)). It covers unacknowledged data only; an idle peer that vanished is found by the heartbeats, which are such data.
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(d.Milliseconds()))
	})
}

// canRenew tells that a second listener can take over the port while the first one still has it.
const canRenew = true

// sharePort sets SO_REUSEPORT. It is on only while one listener takes over from another, so that a second process on the same
// port still meets "address already in use". The kernel looks at the flag when somebody binds, not when this socket was bound
// (inet_csk_bind_conflict, seen in Linux 6.x).
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
