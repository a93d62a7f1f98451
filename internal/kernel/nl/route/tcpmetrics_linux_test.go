package route

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

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

// remembered returns the hosts of which the kernel caches metrics, as ip(8) lists them: an entry a
// line, which begins with the far host.
func remembered(t *testing.T) (hosts []string) {
	t.Helper()
	text, ok := nltest.OtherSays(t, "ip", "tcp_metrics", "show")
	if !ok {
		t.Fatalf("ip tcp_metrics show failed: %q", text)
	}
	for line := range strings.Lines(text) {
		host, _, _ := strings.Cut(line, " ")
		hosts = append(hosts, host)
	}
	return hosts
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
			before := remembered(t)
			if slices.Contains(before, one.String()) && slices.Contains(before, other.String()) {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("the kernel remembers %v, want both hosts", before)
			}
		}
		nltest.Must(t, c.routes.ForgetTCPMetrics(one))
		after := remembered(t)
		if slices.Contains(after, one.String()) || !slices.Contains(after, other.String()) {
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
