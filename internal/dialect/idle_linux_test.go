package dialect

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/admission"
	"github.com/linerate/linerate/internal/traffic/traffictest"
)

// TestIdleSourcesLockNobodyOut connects to every port from 300 addresses of loopback, and says
// nothing. A client of each dialect gets its test all the same.
func TestIdleSourcesLockNobodyOut(t *testing.T) {
	s, shared := serveAll(t, "127.0.0.1")
	idleFrom(t, s, func(i int) netip.Addr {
		return netip.AddrFrom4([4]byte{127, 0, byte(1 + i/250), byte(1 + i%250)})
	})
	eachIsServed(t, s, shared, func(a netip.AddrPort) string { return a.String() })
}

// TestIdleNetworksLockNobodyOut does so with 300 networks of 64 bits in one of 48, which one
// customer of a provider has. It runs in a network namespace of its own, where all of them are
// local.
func TestIdleNetworksLockNobodyOut(t *testing.T) {
	testenv.Need(t, testenv.NetNS)
	const inside = "LINERATE_TEST_IDLE_NETWORKS"
	if os.Getenv(inside) == "" {
		c := exec.CommandContext(t.Context(), "unshare", "--net", "sh", "-c", `ip link set lo up &&
			echo 1 >/proc/sys/net/ipv6/ip_nonlocal_bind &&
			ip -6 route add local 2001:db8::/48 dev lo && ip -6 route add local 2001:db8:1::/48 dev lo &&
			exec "$0" -test.run "^$1$"`, os.Args[0], t.Name())
		c.Env = append(os.Environ(), inside+"=1")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	s, shared := serveAll(t, "::")
	idleFrom(t, s, func(i int) netip.Addr {
		return netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 0, 0, byte(i >> 8), byte(i), 15: 1})
	})
	eachIsServed(t, s, shared, func(a netip.AddrPort) string { return fmt.Sprintf("[2001:db8:1::1]:%d", a.Port()) })
}

// TestOneByteLocksNobodyOut does so with connections that send one byte, which begins a test of
// ttcp. Places that rest go to other clients after five seconds.
func TestOneByteLocksNobodyOut(t *testing.T) {
	testenv.Need(t, testenv.Long) // the five seconds
	s, shared := serveAll(t, "127.0.0.1")
	for _, conn := range idleFrom(t, s, func(i int) netip.Addr {
		return netip.AddrFrom4([4]byte{127, 0, byte(1 + i/250), byte(1 + i%250)})
	}) {
		_, _ = conn.Write([]byte("a")) // some were closed to make room
	}
	// A server reads the bytes when it gets to it: a place may be taken after a test, and not before.
	until := time.Now().Add(time.Minute)
	for _, p := range s.Places() {
		for err := served(t, p, shared, p.Address.String()); err != nil; err = served(t, p, shared, p.Address.String()) {
			if time.Now().After(until) {
				t.Fatalf("%s: %v", p.Dialect, err)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
}

// serveAll serves every dialect that has connections, and returns the port that iperf2 shares.
func serveAll(t *testing.T, host string) (*Servers, uint16) {
	t.Helper()
	shared := uint16(freePort(t))
	s, err := Listen(t.Context(), []Acceptance{{"iperf3", uint16(freePort(t))}, {"iperf2", shared}, {"ttcp", shared},
		{"nuttcp", uint16(freePort(t))}, {"sockperf", uint16(freePort(t))}},
		Options{Host: host, Gate: admission.New(admission.Limits{}), Log: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}
	traffictest.Serve(t, s)
	return s, shared
}

// idleFrom connects to each port from 300 addresses, for the length of the test.
func idleFrom(t *testing.T, s *Servers, source func(i int) netip.Addr) (all []net.Conn) {
	t.Helper()
	for _, p := range s.Places() {
		if p.Dialect == "iperf2" {
			continue // its port is that of ttcp
		}
		for i := range 300 {
			from := source(i)
			to := netip.AddrPortFrom(from, p.Address.Port())
			if from.Is4() {
				to = p.Address
			}
			d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))}
			conn, err := d.DialContext(t.Context(), "tcp", to.String())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			all = append(all, conn)
		}
	}
	return all
}

// eachIsServed runs a test of each dialect.
func eachIsServed(t *testing.T, s *Servers, shared uint16, target func(netip.AddrPort) string) {
	t.Helper()
	for _, p := range s.Places() {
		if err := served(t, p, shared, target(p.Address)); err != nil {
			t.Errorf("%s: %v", p.Dialect, err)
		}
	}
}

// served runs a test of one dialect.
func served(t *testing.T, p Place, shared uint16, target string) error {
	spec := traffic.Spec{Test: traffic.Stream, Bytes: 1 << 20}
	if p.Dialect == "sockperf" {
		spec = traffic.Spec{Test: traffic.RR, Duration: 100 * time.Millisecond}
	}
	_, err := Run(t.Context(), p.Dialect, target, spec, ClientOptions{DataPort: int(shared)}, nil)
	return err
}
