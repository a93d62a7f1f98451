package sys

import (
	"bytes"
	"errors"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"golang.org/x/sys/unix"
)

// datagramPair opens a socket bound on loopback and one connected to it.
func datagramPair(t *testing.T, ip string) (in, out int, at netip.AddrPort) {
	t.Helper()
	in, err := OpenDatagram(netip.AddrPortFrom(netip.MustParseAddr(ip), 0), netip.AddrPort{}, DatagramOptions{})
	if err != nil {
		testenv.Missing(t, testenv.Network, err) // no IPv6
	}
	t.Cleanup(func() { _ = Close(in) })
	if at, err = LocalAddress(in); err != nil {
		t.Fatal(err)
	}
	if err := SetTimeout(in, time.Minute); err != nil {
		t.Fatal(err)
	}
	return in, connectTo(t, at), at
}

// awaitDelivery returns when the kernel has delivered what this thread has sent before. It handles
// a packet of loopback in the softirq of the sender, but later where the softirqs of a busy host
// are late. One CPU does that in the order of sending, so a packet behind them shows it. The caller
// has called stayOnOneCPU before it sent.
func awaitDelivery(t *testing.T) {
	t.Helper()
	in, out, _ := datagramPair(t, "127.0.0.1")
	if _, err := Write(out, []byte("behind")); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(in, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
}

// stayOnOneCPU pins the thread of this test, which ends with it.
func stayOnOneCPU(t *testing.T) {
	t.Helper()
	cpus, err := AllowedCPUs()
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread() // never unlocked
	if err := Pin(cpus[0]); err != nil {
		t.Fatal(err)
	}
}

// connectTo opens a socket connected to an address.
func connectTo(t *testing.T, to netip.AddrPort) int {
	t.Helper()
	fd, err := OpenDatagram(netip.AddrPort{}, to, DatagramOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = Close(fd) })
	return fd
}

// TestMessagesGoAndCome checks that one call receives the messages that one call sent, whether or
// not the kernel splits and merges them.
func TestMessagesGoAndCome(t *testing.T) {
	payload := make([]byte, 950)
	for i := range payload {
		payload[i] = byte(i * 7)
	}
	for _, c := range []struct {
		name     string
		ip       string
		segment  int
		merge    bool
		messages int // that arrive
	}{
		{"one", "127.0.0.1", 0, false, 1},
		{"cut", "127.0.0.1", 100, false, 10},
		{"split and merged", "127.0.0.1", 100, true, 1},
		{"split and merged, IPv6", "::1", 100, true, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			stayOnOneCPU(t)
			in, out, _ := datagramPair(t, c.ip)
			if err := SetReceiveTimes(in, true); err != nil {
				t.Fatal(err)
			}
			if err := SetReceiveMerged(in, c.merge); err != nil {
				t.Fatal(err)
			}
			if err := ProbeSegments(out); err != nil {
				t.Fatal(err)
			}
			before := time.Now().UnixNano()
			box := NewOutbox(2)
			box.Set(0, payload, c.segment)
			box.Set(1, []byte("last"), c.segment)
			if n, err := box.Send(out, 2); n != 2 || err != nil {
				t.Fatal(n, err)
			}
			awaitDelivery(t)
			inbox := NewInbox(16, 65535)
			n, err := inbox.Receive(in, 16, true)
			if err != nil || n != c.messages+1 {
				t.Fatalf("%d messages, %v, want %d", n, err, c.messages+1)
			}
			var got []byte
			for i := range n - 1 {
				m := inbox.Message(i)
				got = append(got, m.Payload...)
				if m.Truncated || m.Drops != 0 || (m.SegmentBytes != 0) != c.merge {
					t.Errorf("message %d: %+v", i, m)
				}
				if m.ArrivedNanos < before-int64(time.Second) || m.ArrivedNanos > time.Now().UnixNano() {
					t.Errorf("message %d arrived at %d, sent at %d", i, m.ArrivedNanos, before)
				}
			}
			if !bytes.Equal(got, payload) {
				t.Error("the received bytes differ from those sent")
			}
			if m := inbox.Message(n - 1); string(m.Payload) != "last" {
				t.Errorf("%q", m.Payload)
			}
			if _, err := inbox.Receive(in, 16, false); !errors.Is(err, ErrTimeout) {
				t.Errorf("%v, want a timeout", err)
			}
		})
	}
}

func TestLongMessagesAreTruncated(t *testing.T) {
	in, out, _ := datagramPair(t, "127.0.0.1")
	if _, err := Write(out, []byte("too long")); err != nil {
		t.Fatal(err)
	}
	inbox := NewInbox(1, 3)
	if n, err := inbox.Receive(in, 1, true); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if m := inbox.Message(0); !m.Truncated || string(m.Payload) != "too" {
		t.Errorf("%+v", m)
	}
}

// TestDropsAreCounted fills a small buffer: the socket reports the drops at once, and a message
// reports the drops before it.
func TestDropsAreCounted(t *testing.T) {
	stayOnOneCPU(t)
	in, out, _ := datagramPair(t, "127.0.0.1")
	if err := SetReceiveBufferBytes(in, 1); err != nil { // the kernel's smallest
		t.Fatal(err)
	}
	if err := SetReceiveDrops(in); err != nil {
		t.Fatal(err)
	}
	const sent = 100
	send := func(n int) {
		for range n {
			if _, err := Write(out, []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		awaitDelivery(t)
	}
	send(sent)
	drops, err := SocketDrops(in)
	if err != nil || drops == 0 {
		t.Fatalf("%d drops, %v", drops, err)
	}
	inbox := NewInbox(sent, 10)
	n, err := inbox.Receive(in, sent, true)
	if err != nil || n+int(drops) != sent {
		t.Errorf("%d arrived and %d were dropped, of %d, %v", n, drops, sent, err)
	}
	send(1)
	if _, err := inbox.Receive(in, 1, true); err != nil {
		t.Fatal(err)
	}
	if m := inbox.Message(0); m.Drops != drops {
		t.Errorf("the message reports %d, the socket %d", m.Drops, drops)
	}
}

// TestBatchesAllocateNothing covers sending and receiving a batch.
func TestBatchesAllocateNothing(t *testing.T) {
	in, out, _ := datagramPair(t, "127.0.0.1")
	if err := SetReceiveDrops(in); err != nil {
		t.Fatal(err)
	}
	if err := SetReceiveTimes(in, true); err != nil {
		t.Fatal(err)
	}
	payload, scratch := make([]byte, 640), make([]byte, ErrorScratchBytes)
	box, inbox := NewOutbox(1), NewInbox(10, 64)
	sum := 0
	if n := testing.AllocsPerRun(100, func() {
		box.Set(0, payload, 64)
		if _, err := box.Send(out, 1); err != nil {
			t.Fatal(err)
		}
		n, err := inbox.Receive(in, 10, true)
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			sum += len(inbox.Message(i).Payload)
		}
		if _, err := SocketDrops(in); err != nil {
			t.Fatal(err)
		}
		DrainErrors(out, scratch)
	}); n != 0 {
		t.Errorf("%v allocations per batch", n)
	}
	if sum == 0 {
		t.Error("nothing received")
	}
}

// TestFilterLetsOnePeerIn checks that a socket receives no datagrams of other senders before it is
// connected.
func TestFilterLetsOnePeerIn(t *testing.T) {
	for _, ip := range []string{"127.0.0.1", "::1"} {
		t.Run(ip, func(t *testing.T) {
			stayOnOneCPU(t)
			in, friend, at := datagramPair(t, ip)
			stranger := connectTo(t, at)
			from, err := LocalAddress(friend)
			if err != nil {
				t.Fatal(err)
			}
			if err := acceptOnly(in, from); err != nil {
				t.Fatal(err)
			}
			for fd, text := range map[int]string{stranger: "no", friend: "yes"} {
				if _, err := Write(fd, []byte(text)); err != nil {
					t.Fatal(err)
				}
			}
			awaitDelivery(t)
			inbox := NewInbox(2, 10)
			if n, err := inbox.Receive(in, 2, true); n != 1 || err != nil {
				t.Fatal(n, err)
			}
			if got := string(inbox.Message(0).Payload); got != "yes" {
				t.Errorf("%q", got)
			}
		})
	}
}

// TestErrorsOfTheNetworkAreQueued sends to a port without a socket.
func TestErrorsOfTheNetworkAreQueued(t *testing.T) {
	for _, ip := range []string{"127.0.0.1", "::1"} {
		t.Run(ip, func(t *testing.T) {
			stayOnOneCPU(t)
			in, out, _ := datagramPair(t, ip)
			if err := SetReceiveErrors(out); err != nil {
				t.Fatal(err)
			}
			// The descriptor remains open for the cleanup, but refers to another socket.
			other, err := OpenUDP(netip.Addr{}, netip.MustParseAddrPort("127.0.0.1:9"))
			if err != nil {
				t.Fatal(err)
			}
			if err := unix.Dup3(other, in, unix.O_CLOEXEC); err != nil {
				t.Fatal(err)
			}
			if err := Close(other); err != nil {
				t.Fatal(err)
			}
			scratch := make([]byte, ErrorScratchBytes)
			if n := DrainErrors(out, scratch); n != 0 {
				t.Errorf("%d errors before anything was sent", n)
			}
			if _, err := Write(out, []byte("x")); err != nil {
				t.Fatal(err)
			}
			awaitDelivery(t)
			if _, err := Write(out, []byte("x")); !errors.Is(err, unix.ECONNREFUSED) {
				t.Errorf("%v, want a refusal", err)
			}
			if n := DrainErrors(out, scratch); n != 1 {
				t.Errorf("%d errors of the network, want 1", n)
			}
		})
	}
}

func TestDatagramOptions(t *testing.T) {
	for _, ip := range []string{"127.0.0.1", "::1"} {
		t.Run(ip, func(t *testing.T) {
			_, fd, _ := datagramPair(t, ip)
			level, tos, discover := unix.IPPROTO_IP, unix.IP_TOS, unix.IP_MTU_DISCOVER
			if ip == "::1" {
				level, tos, discover = unix.IPPROTO_IPV6, unix.IPV6_TCLASS, unix.IPV6_MTU_DISCOVER
			}
			if err := SetTOS(fd, 0x28); err != nil {
				t.Error(err)
			}
			if v, err := unix.GetsockoptInt(fd, level, tos); v != 0x28 || err != nil {
				t.Errorf("tos %#x, %v", v, err)
			}
			for f, want := range map[Fragmentation]int{
				FragmentAsNeeded: unix.IP_PMTUDISC_DONT, FragmentNever: unix.IP_PMTUDISC_DO,
				FragmentProbe: unix.IP_PMTUDISC_PROBE,
			} {
				if err := SetFragmentation(fd, f); err != nil {
					t.Error(err)
				}
				if v, err := unix.GetsockoptInt(fd, level, discover); v != want || err != nil {
					t.Errorf("fragmentation %d: mode %d, %v", f, v, err)
				}
			}
			if err := SetPacingRate(fd, 125_000_000); err != nil {
				t.Error(err)
			}
			if v, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE); v != 125_000_000 ||
				err != nil {
				t.Errorf("pacing rate %d, %v", v, err)
			}
			if err := RefreshRoute(fd); err != nil {
				t.Error(err)
			}
			if mtu, err := PathMTU(fd); mtu < 1280 || err != nil {
				t.Errorf("path MTU %d, %v", mtu, err)
			}
			if err := SetBusyPoll(fd, 0); err != nil {
				t.Error(err)
			}
		})
	}
}

// Of a few hundred ports of the kernel's choice, some were the same before: answers to one socket
// then arrived at another one.
func TestChosenPortsAreFree(t *testing.T) {
	seen := map[uint16]bool{}
	for range 800 {
		fd, err := OpenDatagram(netip.MustParseAddrPort("127.0.0.1:0"), netip.AddrPort{}, DatagramOptions{Shared: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = Close(fd) })
		at, err := LocalAddress(fd)
		if err != nil {
			t.Fatal(err)
		}
		if seen[at.Port()] {
			t.Fatalf("port %d was chosen for two sockets", at.Port())
		}
		seen[at.Port()] = true
	}
}

func TestSleepUntil(t *testing.T) {
	if err := SetExactTimers(); err != nil {
		t.Error(err)
	}
	at := Monotonic() + 2*time.Millisecond
	for Monotonic() < at { // a signal may end a sleep early
		SleepUntil(at)
	}
}

// TestDepartures sends marked and unmarked messages, some of which the kernel splits, and expects a
// report of each marked one, between the clock readings around the call, until its number begins
// again.
func TestDepartures(t *testing.T) {
	for _, ip := range []string{"127.0.0.1", "::1"} {
		_, out, _ := datagramPair(t, ip)
		if err := SetSendTimes(out); err != nil {
			t.Fatal(err)
		}
		box, reports := NewOutbox(4), NewDepartures(8)
		if n := reports.Receive(out); n != 0 {
			t.Errorf("%s: %d reports of nothing", ip, n)
		}
		payload := make([]byte, 300)
		for round := range 3 {
			if round == 2 {
				box.StampAtQueue()
				if err := SetSendTimes(out); err != nil {
					t.Fatal(err)
				}
			}
			for i := range 4 {
				box.Set(i, payload, 100*(i%2)) // 0: not split
				if i != 1 {
					box.Stamp(i)
				}
			}
			before := time.Now().UnixNano()
			if n, err := box.Send(out, 4); n != 4 || err != nil {
				t.Fatalf("%s: sent %d, %v", ip, n, err)
			}
			after := time.Now().UnixNano()
			if n := reports.Receive(out); n != 3 {
				t.Fatalf("%s: %d reports of 3 marked messages", ip, n)
			}
			last := before
			for i := range 3 {
				number, at, ok := reports.Report(i)
				if want := uint32(i + 3*(round%2)); !ok || number != want || at < last || at > after {
					t.Errorf("%s: report %d is of message %d, want %d, at %d, %v", ip, i, number, want, at-before, ok)
				}
				last = at
			}
			if n := reports.Receive(out); n != 0 {
				t.Errorf("%s: %d reports too many", ip, n)
			}
		}
	}
}
