package route

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/kernel/nl/nltest"
)

// converse makes one TCP connection to an address of this namespace and closes it, because the
// kernel saves metrics at the close. It uses the sockets of the calling thread, since package net
// could use threads of another namespace.
func converse(t *testing.T, addr [4]byte) {
	t.Helper()
	listener, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	nltest.Must(t, err)
	defer unix.Close(listener)
	nltest.Must(t, unix.Bind(listener, &unix.SockaddrInet4{Addr: addr}))
	nltest.Must(t, unix.Listen(listener, 1))
	at, err := unix.Getsockname(listener)
	nltest.Must(t, err)
	client, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	nltest.Must(t, err)
	nltest.Must(t, unix.Connect(client, at))
	server, _, err := unix.Accept4(listener, unix.SOCK_CLOEXEC)
	nltest.Must(t, err)
	// The kernel saves an estimate, which needs several round trips.
	b := make([]byte, 1)
	for range 20 {
		_, err := unix.Write(client, b)
		nltest.Must(t, err)
		_, err = unix.Read(server, b)
		nltest.Must(t, err)
		_, err = unix.Write(server, b)
		nltest.Must(t, err)
		_, err = unix.Read(client, b)
		nltest.Must(t, err)
	}
	nltest.Must(t, unix.Close(client))
	nltest.Must(t, unix.Close(server))
}

// TestForgetTCPMetrics checks that the metrics of one host are deleted and those of another remain.
func TestForgetTCPMetrics(t *testing.T) {
	inNetNS(t, func(c world) {
		nltest.Must(t, c.SetUp("lo"))
		for _, addr := range [][4]byte{{127, 0, 0, 2}, {127, 0, 0, 3}} {
			converse(t, addr)
		}
		one, other := netip.AddrFrom4([4]byte{127, 0, 0, 2}), netip.AddrFrom4([4]byte{127, 0, 0, 3})
		// The kernel saves them when it handles the last segments, a moment after the calls where
		// its softirqs are late.
		for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			before, err := c.routes.TCPMetrics()
			nltest.Must(t, err)
			if slices.Contains(before, one) && slices.Contains(before, other) {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("the kernel remembers %v, want both hosts", before)
			}
		}
		nltest.Must(t, c.routes.ForgetTCPMetrics(one))
		after, err := c.routes.TCPMetrics()
		nltest.Must(t, err)
		if slices.Contains(after, one) || !slices.Contains(after, other) {
			t.Errorf("the kernel has %v, want %v deleted and %v kept", after, one, other)
		}
		if err := c.routes.ForgetTCPMetrics(one); err != nil {
			t.Errorf("no entry for %v, but the error is %v", one, err)
		}
		if err := c.routes.ForgetTCPMetrics(netip.Addr{}); err == nil {
			t.Error("a request without an address, which deletes every entry, returned no error")
		}
	})
}

// FuzzParseTCPMetrics checks that any bytes are read or refused, and that an encoded address is
// decoded to the same one.
func FuzzParseTCPMetrics(f *testing.F) {
	f.Add([]byte{10, 0, 0, 1})
	f.Add(netip.MustParseAddr("fd00::1").AsSlice())
	f.Add([]byte{3, 0, 1, 0, 9})
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = parseTCPMetrics(data) // must end without a panic
		e := netlink.NewAttributeEncoder()
		e.Bytes(tcpMetricsIPv6, data)
		entry, err := e.Encode()
		if err != nil {
			return // longer than an attribute can be
		}
		host, err := parseTCPMetrics(entry)
		want, is := netip.AddrFromSlice(data)
		if err != nil || host.IsValid() != is || is && host != want {
			t.Fatalf("%x is read as %v, %v", data, host, err)
		}
	})
}
