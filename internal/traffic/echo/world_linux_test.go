package echo

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/base/testenv"
)

// namespace is a network namespace that lives as long as its test. The descriptor alone keeps it.
type namespace struct{ fd int }

func newNamespace(t *testing.T) namespace {
	t.Helper()
	testenv.Need(t, testenv.NetNS)
	for _, tool := range []string{"ip", "nft"} {
		testenv.Program(t, tool)
	}
	var fd int
	var err error
	onThread(func() {
		if err = unix.Unshare(unix.CLONE_NEWNET); err == nil {
			fd, err = unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY, 0) // kept over exec, for ip(8)
		}
	})
	if err != nil {
		testenv.Missing(t, testenv.NetNS, err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return namespace{fd}
}

// onThread runs f on a thread that ends with it and is never given back to other goroutines.
func onThread(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the runtime then discards the thread
		f()
	}()
	<-done
}

// do runs f inside the namespace; sockets that it opens stay there, whichever thread uses them.
func (n namespace) do(t *testing.T, f func()) {
	t.Helper()
	var err error
	onThread(func() {
		if err = unix.Setns(n.fd, unix.CLONE_NEWNET); err == nil {
			f()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// run runs commands inside the namespace, one per line.
func (n namespace) run(t *testing.T, commands string) {
	t.Helper()
	n.do(t, func() {
		for line := range strings.Lines(commands) {
			words := strings.Fields(line)
			if len(words) == 0 {
				continue
			}
			if out, err := exec.CommandContext(t.Context(), words[0], words[1:]...).CombinedOutput(); err != nil {
				t.Errorf("%s: %v: %s", line, err, out)
			}
		}
	})
	if t.Failed() {
		t.FailNow()
	}
}

// hop is a near and a far host with a router between them: 10.0.1.1 and fd01::1 on one side,
// 10.0.2.1 and fd02::1 on the other.
type hop struct{ near, router, far namespace }

// newHop makes the world. A link of a smaller MTU is one whose two ends are smaller. Its ends may
// differ in what they accept and send: up and down are MTUs of the router's interfaces towards the
// far and the near host, which bound what it forwards.
func newHop(t *testing.T, up, down int) hop {
	t.Helper()
	h := hop{newNamespace(t), newNamespace(t), newNamespace(t)}
	for _, n := range []namespace{h.near, h.router, h.far} {
		n.set(t, "ipv6/conf/default/accept_dad", "0") // a new address would otherwise not be used for a second or two
	}
	h.router.run(t, fmt.Sprintf(`
		ip link add r1 type veth peer name eth0 netns /proc/self/fd/%d
		ip link add r2 type veth peer name eth0 netns /proc/self/fd/%d
		ip addr add 10.0.1.254/24 dev r1
		ip addr add 10.0.2.254/24 dev r2
		ip addr add fd01::254/64 dev r1 nodad
		ip addr add fd02::254/64 dev r2 nodad
		ip link set r1 up
		ip link set r2 up
		ip link set lo up`, h.near.fd, h.far.fd))
	h.router.set(t, "ipv4/ip_forward", "1")
	h.router.set(t, "ipv6/conf/all/forwarding", "1")
	for i, end := range []namespace{h.near, h.far} {
		end.run(t, fmt.Sprintf(`
			ip addr add 10.0.%[1]d.1/24 dev eth0
			ip addr add fd0%[1]d::1/64 dev eth0 nodad
			ip link set eth0 up
			ip link set lo up
			ip route add default via 10.0.%[1]d.254
			ip -6 route add default via fd0%[1]d::254`, i+1))
	}
	// By routes and not by interfaces: an end of a veth pair does not accept packets longer than
	// its own MTU, which would make a black hole of every narrow hop.
	h.router.run(t, fmt.Sprintf(`
		ip route change 10.0.2.0/24 dev r2 mtu lock %[1]d
		ip route change 10.0.1.0/24 dev r1 mtu lock %[2]d
		ip -6 route add fd02::1 dev r2 mtu lock %[1]d
		ip -6 route add fd01::1 dev r1 mtu lock %[2]d`, up, down))
	for _, n := range []namespace{h.near, h.router, h.far} {
		n.settle(t)
	}
	return h
}

// set writes a sysctl of the namespace.
func (n namespace) set(t *testing.T, name, value string) {
	t.Helper()
	n.do(t, func() {
		if err := os.WriteFile("/proc/sys/net/"+name, []byte(value), 0); err != nil {
			t.Error(err)
		}
	})
}

// settle waits until no interface waits for its carrier: until then packets are dropped.
func (n namespace) settle(t *testing.T) {
	t.Helper()
	n.do(t, func() {
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
			out, err := exec.CommandContext(t.Context(), "ip", "link").CombinedOutput()
			if err == nil && !strings.Contains(string(out), "state DOWN") {
				return
			}
			if time.Now().After(deadline) {
				t.Errorf("links stay down: %v: %s", err, out)
				return
			}
		}
	})
}

// silence makes the router drop every ICMP error, its own and those it forwards.
func (h hop) silence(t *testing.T) {
	t.Helper()
	h.router.run(t, `
		nft add table inet quiet
		nft add chain inet quiet output { type filter hook output priority 0 ; }
		nft add rule inet quiet output icmp type destination-unreachable drop
		nft add rule inet quiet output icmpv6 type packet-too-big drop`)
}
