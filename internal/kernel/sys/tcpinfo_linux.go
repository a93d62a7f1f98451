package sys

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ReadTCPInfo asks the kernel for struct tcp_info of a connected TCP socket. A socket that is not
// TCP gives [ErrNotSupported].
//
// It goes by bytes and length instead of a fixed structure because kernels append fields: an older
// one returns less, a newer one more.
func ReadTCPInfo(fd int) (TCPInfo, error) {
	var buf [TCPInfoBytes]byte
	// In: the room there is. Out: the smaller of that and what this kernel has.
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

// freshTCPInfo asks an unconnected socket: it has no numbers, but the length is that of every
// other.
func freshTCPInfo() (TCPInfo, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return TCPInfo{}, fmt.Errorf("open tcp socket: %w", err)
	}
	defer func() { _ = unix.Close(fd) }() // nothing was sent on it
	return ReadTCPInfo(fd)
}
