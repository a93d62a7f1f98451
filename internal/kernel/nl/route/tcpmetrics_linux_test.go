package route

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/kernel/nl/nltest"
)

// converse makes one TCP connection to an address of this namespace and closes it, which is when
// the kernel remembers. It uses the sockets of the calling thread, as package net would go to
// threads of another namespace.
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
	// Enough round trips for an estimate, which is what the kernel keeps.
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

// TestForgetTCPMetrics: what one connection leaves behind is gone for that host and stays for
// another.
func TestForgetTCPMetrics(t *testing.T) {
	inNetNS(t, func(c world) {
		nltest.Must(t, c.SetUp("lo"))
		for _, addr := range [][4]byte{{127, 0, 0, 2}, {127, 0, 0, 3}} {
			converse(t, addr)
		}
		one, other := netip.AddrFrom4([4]byte{127, 0, 0, 2}), netip.AddrFrom4([4]byte{127, 0, 0, 3})
		before, err := c.routes.TCPMetrics()
		nltest.Must(t, err)
		if !slices.Contains(before, one) || !slices.Contains(before, other) {
			t.Fatalf("the kernel remembers %v, want both hosts", before)
		}
		nltest.Must(t, c.routes.ForgetTCPMetrics(one))
		after, err := c.routes.TCPMetrics()
		nltest.Must(t, err)
		if slices.Contains(after, one) || !slices.Contains(after, other) {
			t.Errorf("the kernel remembers %v, want %v forgotten and %v not", after, one, other)
		}
		if err := c.routes.ForgetTCPMetrics(one); err != nil {
			t.Errorf("nothing is remembered of %v, yet %v", one, err)
		}
		if err := c.routes.ForgetTCPMetrics(netip.Addr{}); err == nil {
			t.Error("without an address everything would be forgotten, and no error")
		}
	})
}

// FuzzParseTCPMetrics: any bytes are read or refused, and an entry's address comes out as it went
// in.
func FuzzParseTCPMetrics(f *testing.F) {
	f.Add([]byte{10, 0, 0, 1})
	f.Add(netip.MustParseAddr("fd00::1").AsSlice())
	f.Add([]byte{3, 0, 1, 0, 9})
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = parseTCPMetrics(data) // as it came: only that it ends
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
