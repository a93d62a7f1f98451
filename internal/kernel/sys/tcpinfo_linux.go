package sys

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ReadTCPInfo reads struct tcp_info of a connected TCP socket. For a socket that is not TCP the
// error is [ErrNotSupported].
//
// It uses bytes and a length instead of a fixed structure, because kernels append fields: an older
// one returns fewer, a newer one more.
func ReadTCPInfo(fd int) (TCPInfo, error) {
	var buf [TCPInfoBytes]byte
	// In: the size of the buffer. Out: the smaller of that and the kernel's size.
	n := uint32(len(buf))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.IPPROTO_TCP, unix.TCP_INFO,
		uintptr(unsafe.Pointer(&buf)), uintptr(unsafe.Pointer(&n)), 0)
	switch errno {
	case 0:
		return DecodeTCPInfo(buf[:n])
	case unix.EOPNOTSUPP, unix.ENOPROTOOPT:
		return TCPInfo{}, &UnsupportedError{Feature: "tcp_info of this socket"}
	}
	return TCPInfo{}, fmt.Errorf("read tcp_info: %w", errno)
}

func probeTCPInfo() error {
	_, err := freshTCPInfo()
	return err
}

func probeChronographs() error {
	info, err := freshTCPInfo()
	if err != nil {
		return err
	}
	if !info.Has(TCPInfoChronographs) {
		return &UnsupportedError{Feature: "tcp_info chronographs", Since: "Linux 4.10"}
	}
	return nil
}

// freshTCPInfo reads from an unconnected socket, whose numbers are empty, but whose length is that
// of any socket.
func freshTCPInfo() (TCPInfo, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return TCPInfo{}, fmt.Errorf("open tcp socket: %w", err)
	}
	defer func() { _ = unix.Close(fd) }() // nothing was sent on it
	return ReadTCPInfo(fd)
}
