package service

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestPlainTCP: a client that speaks Multipath TCP must not measure that.
func TestPlainTCP(t *testing.T) {
	s, err := Listen(t.Context(), "127.0.0.1:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	raw, err := s.TCP.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	protocol := 0
	if cerr := raw.Control(func(fd uintptr) {
		protocol, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PROTOCOL)
	}); cerr != nil || err != nil {
		t.Fatal(cerr, err)
	}
	if protocol != unix.IPPROTO_TCP {
		t.Errorf("a socket of protocol %d, want %d", protocol, unix.IPPROTO_TCP)
	}
}
