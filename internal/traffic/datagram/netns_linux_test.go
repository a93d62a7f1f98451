package datagram

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/traffic/engine"
)

// inNamespace runs a test in a network namespace of its own, where loopback is up and nothing else.
// Sockets must be opened by the function's own goroutine; the thread ends with it, and the
// namespace when the last socket is closed.
func inNamespace(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	testenv.Need(t, testenv.NetNS, testenv.Peers) // ip(8), tc(8) and nft(8) make it
	done := make(chan struct{})
	skipped := ""
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread is of no further use
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			skipped = fmt.Sprintf("no network namespace: %v", err)
			return
		}
		if out, ok := run(t, "ip", "link", "set", "lo", "up"); !ok {
			t.Error(out)
			return
		}
		test(t)
	}()
	<-done
	if skipped != "" {
		testenv.Missing(t, testenv.NetNS, skipped)
	}
}

// run starts a program in the namespace of the calling thread.
func run(t *testing.T, name string, args ...string) (string, bool) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		return err.Error(), false
	}
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		return fmt.Sprintf("%s %s: %v: %s", name, strings.Join(args, " "), err, out), false
	}
	return string(out), true
}

// udpCounters returns those of IPv4 in the namespace of the calling thread, from /proc/net/snmp.
func udpCounters(t *testing.T) map[string]int64 {
	t.Helper()
	f, err := os.Open("/proc/thread-self/net/snmp")
	if err != nil {
		t.Error(err)
		return nil
	}
	defer f.Close()
	var names []string
	counters := map[string]int64{}
	for s := bufio.NewScanner(f); s.Scan(); {
		fields := strings.Fields(s.Text())
		switch {
		case len(fields) == 0 || fields[0] != "Udp:":
		case names == nil:
			names = fields
		default:
			for i := 1; i < len(fields); i++ {
				counters[names[i]], _ = strconv.ParseInt(fields[i], 10, 64)
			}
		}
	}
	return counters
}

// flood sends without a rate from a to b, which may have a small buffer, and returns the counts
// when every packet has arrived or was dropped: at the socket, or on the path, where onPath counts.
func flood(t *testing.T, a, b *Socket, so SendOptions, ro ReceiveOptions, onPath ...func() int64) (Sent, Received) {
	t.Helper()
	f := newFlow(t, a, b, so, ro)
	f.phase.Set(engine.Measured)
	f.start()
	<-f.sender.Idle()
	// On loopback packets arrive or the socket drops them. If there is a third way, the wait ends
	// and the test fails.
	sent := f.sender.Sent()
	f.settle(func(r Received) bool {
		known := r.UniquePackets + r.LostAtSocket(sent) + sent.SocketErrors
		for _, dropped := range onPath {
			known += dropped()
		}
		return known >= sent.AllPackets
	})
	return f.stop()
}

// TestLossAtTheReceiverIsWhatTheKernelCounts overruns a tiny receive buffer.
func TestLossAtTheReceiverIsWhatTheKernelCounts(t *testing.T) {
	for _, batch := range []Batch{BatchSingle, BatchMMsg, BatchGSO} {
		t.Run(string(batch), func(t *testing.T) {
			inNamespace(t, func(t *testing.T) {
				a, b := socketPair(t, SocketOptions{WindowBytes: 2048})
				before := udpCounters(t)
				sent, got := flood(t, a, b, SendOptions{Bytes: 64, Batch: batch, Packets: 50_000},
					ReceiveOptions{Batch: batch, Verify: true})
				after := udpCounters(t)
				lost := sent.AllPackets - got.UniquePackets
				if lost == 0 {
					t.Fatal("the buffer was large enough: nothing tried")
				}
				if at := got.LostAtSocket(sent); at != lost {
					t.Errorf("%d packets lost, %d of them at the socket: %+v", lost, at, got)
				}
				if n := after["RcvbufErrors"] - before["RcvbufErrors"]; n != got.SocketDrops {
					t.Errorf("the kernel counts %d, the socket %d", n, got.SocketDrops)
				}
				if !got.Merged && lost != got.SocketDrops {
					t.Errorf("%d packets lost, the socket counts %d", lost, got.SocketDrops)
				}
				if got.SocketDrops != got.MeasuredSocketDrops {
					t.Errorf("%d drops, %d of them measured, and nothing else was sent", got.SocketDrops,
						got.MeasuredSocketDrops)
				}
				if n := after["OutDatagrams"] - before["OutDatagrams"]; batch != BatchGSO && n != sent.AllPackets {
					t.Errorf("the kernel sent %d, %d counted", n, sent.AllPackets)
				}
			})
		})
	}
}

// TestLossInTheWindowIsToldApart overruns the buffer in the warm-up and in the measured window, and
// distinguishes the two losses.
func TestLossInTheWindowIsToldApart(t *testing.T) {
	for _, batch := range []Batch{BatchSingle, BatchMMsg, BatchGSO} {
		t.Run(string(batch), func(t *testing.T) {
			a, b := socketPair(t, SocketOptions{WindowBytes: 2048})
			f := newFlow(t, a, b, SendOptions{Bytes: 64, Batch: batch}, ReceiveOptions{Batch: batch})
			lossy := func(r Received) bool { return r.SocketDrops > 100 }
			f.start()
			f.settle(lossy)
			f.phase.Set(engine.Measured)
			f.settle(func(r Received) bool { return r.MeasuredSocketDrops > 100 })
			f.phase.Set(engine.Tail)
			<-f.sender.Idle()
			sent := f.sender.Sent()
			f.settle(func(r Received) bool { return r.UniquePackets+r.LostAtSocket(sent) >= sent.AllPackets })
			sent, got := f.stop()
			if all := sent.AllPackets - got.UniquePackets; all != got.LostAtSocket(sent) {
				t.Errorf("%d packets lost, %d at the socket", all, got.LostAtSocket(sent))
			}
			lost, at := sent.Packets-got.Packets, got.MeasuredLostAtSocket(sent.FirstMeasured, sent.NextSequence)
			if lost != at || lost == 0 || lost == sent.AllPackets-got.UniquePackets {
				t.Errorf("%d measured packets lost, %d at the socket: sent %+v, received %+v", lost, at, sent, got)
			}
		})
	}
}

// TestLossOnThePathIsWhatTheFirewallCounts lets nftables drop every tenth packet.
func TestLossOnThePathIsWhatTheFirewallCounts(t *testing.T) {
	inNamespace(t, func(t *testing.T) {
		a, b := socketPair(t, SocketOptions{WindowBytes: 4 << 20})
		rules := fmt.Sprintf(
			`table ip lossy { chain in { type filter hook input priority 0; `+
				`udp dport %d numgen inc mod 10 == 3 counter drop; }; }`,
			b.LocalAddr().Port())
		if out, ok := run(t, "nft", rules); !ok {
			t.Error(out)
			return
		}
		sent, got := flood(t, a, b, SendOptions{Bytes: 64, Batch: BatchMMsg, Packets: 20_000, PacketRate: 50_000},
			ReceiveOptions{}, func() int64 { return filterCounter(t, "lossy") })
		dropped := filterCounter(t, "lossy")
		if lost := sent.Packets - got.Packets; lost != dropped+got.LostAtSocket(sent) || dropped == 0 {
			t.Errorf("%d packets lost, %d dropped by the filter and %d by the socket", lost, dropped,
				got.LostAtSocket(sent))
		}
		if sent.SocketErrors != 0 {
			t.Errorf("%d errors of a sender whose packets all went", sent.SocketErrors)
		}
	})
}

// TestLossAtTheSenderIsToldApart lets nftables forbid every fifth packet on its way out, which the
// sending call reports.
func TestLossAtTheSenderIsToldApart(t *testing.T) {
	inNamespace(t, func(t *testing.T) {
		a, b := socketPair(t, SocketOptions{WindowBytes: 4 << 20})
		rules := fmt.Sprintf(
			`table ip strict { chain out { type filter hook output priority 0; `+
				`udp dport %d numgen inc mod 5 == 0 counter drop; }; }`,
			b.LocalAddr().Port())
		if out, ok := run(t, "nft", rules); !ok {
			t.Error(out)
			return
		}
		sent, got := flood(t, a, b, SendOptions{Bytes: 64, Batch: BatchMMsg, Packets: 20_000, PacketRate: 50_000},
			ReceiveOptions{})
		dropped := filterCounter(t, "strict")
		if sent.SocketErrors != dropped || sent.MeasuredSocketErrors != dropped || dropped == 0 {
			t.Errorf("%d errors, the filter counts %d", sent.SocketErrors, dropped)
		}
		if lost := sent.Packets - got.Packets; lost != dropped+got.LostAtSocket(sent) {
			t.Errorf("%d packets lost, %d at the sender, %d at the receiver", lost, dropped, got.LostAtSocket(sent))
		}
	})
}

// filterCounter returns the sum of the counters of a table.
func filterCounter(t *testing.T, table string) (packets int64) {
	t.Helper()
	out, ok := run(t, "nft", "-j", "list", "table", "ip", table)
	if !ok {
		t.Error(out)
		return 0
	}
	var list struct {
		Nftables []struct {
			Rule struct {
				Expr []struct {
					Counter struct{ Packets int64 }
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Error(err)
	}
	for _, o := range list.Nftables {
		for _, e := range o.Rule.Expr {
			packets += e.Counter.Packets
		}
	}
	return packets
}

// TestLossInTheQueueIsReported sends faster than a token bucket lets through: the queue drops, and
// the calls report it.
func TestLossInTheQueueIsReported(t *testing.T) {
	inNamespace(t, func(t *testing.T) {
		if out, ok := run(t, "tc", "qdisc", "add", "dev", "lo", "root", "tbf", "rate", "20mbit", "burst", "3000",
			"limit", "6000"); !ok {
			t.Error(out)
			return
		}
		a, b := socketPair(t, SocketOptions{WindowBytes: 4 << 20})
		f := newFlow(t, a, b, SendOptions{Bytes: 500, Batch: BatchMMsg, Packets: 5000, PacketRate: 20_000},
			ReceiveOptions{})
		f.phase.Set(engine.Measured)
		f.start()
		<-f.sender.Idle()
		f.settle(arrived(f.sender.Sent().AllPackets - f.sender.Sent().SocketErrors))
		sent, got := f.stop()
		if lost := sent.Packets - got.Packets; lost != sent.SocketErrors || lost == 0 {
			t.Errorf("%d packets lost, %d refused by the queue", lost, sent.SocketErrors)
		}
	})
}

// TestFragments sends more than one MTU: with don't-fragment that is an error in words, without it
// the datagram arrives whole.
func TestFragments(t *testing.T) {
	inNamespace(t, func(t *testing.T) {
		if out, ok := run(t, "ip", "link", "set", "lo", "mtu", "1500"); !ok {
			t.Error(out)
			return
		}
		a, b := socketPair(t, SocketOptions{WindowBytes: 1 << 20})
		if mtu := a.PathMTU(); mtu != 1500 {
			t.Errorf("path MTU %d", mtu)
		}
		sent, got := flood(t, a, b, SendOptions{Bytes: 5000, Packets: 20}, ReceiveOptions{Verify: true})
		if got.Packets != 20 || sent.Batch != BatchMMsg {
			t.Errorf("sent %+v, received %+v", sent, got)
		}
		if _, _, err := NewSender(&engine.Phase{}, a, SendOptions{Bytes: 5000, Batch: BatchGSO}); err == nil {
			t.Error("the kernel cuts at the MTU and not after fragmenting")
		}

		c, d := socketPair(t, SocketOptions{DontFragment: true, TOS: 0x10})
		if mtu := c.PathMTU(); mtu != 1500 {
			t.Errorf("path MTU %d", mtu)
		}
		f := newFlow(t, c, d, SendOptions{Bytes: 1473, Packets: 1}, ReceiveOptions{})
		if err := f.ws.Run(-1); !errors.Is(err, ErrTooLong) {
			t.Errorf("%v, want ErrTooLong", err)
		}
		sent, got = flood(t, c, d, SendOptions{Bytes: 1472, Packets: 100}, ReceiveOptions{Verify: true})
		if got.Packets != 100 || sent.Batch != BatchGSO {
			t.Errorf("sent %+v, received %+v", sent, got)
		}
	})
}

// TestSixWorksAsFour runs over IPv6.
func TestSixWorksAsFour(t *testing.T) {
	inNamespace(t, func(t *testing.T) {
		server, err := Listen(t.Context(), "udp6", "[::1]:0")
		if err != nil {
			t.Error(err)
			return
		}
		defer server.Close()
		at := server.LocalAddr().(*net.UDPAddr).AddrPort()
		a, err := Dial(at, SocketOptions{WindowBytes: 1 << 20, TOS: 0x10, DontFragment: true})
		if err != nil {
			t.Error(err)
			return
		}
		b, err := Connected(at, a.LocalAddr(), SocketOptions{WindowBytes: 1 << 20})
		if err != nil {
			t.Error(err)
			return
		}
		sent, got := flood(t, a, b, SendOptions{Bytes: 64, Packets: 1000}, ReceiveOptions{Verify: true})
		if got.Packets != 1000 || sent.Batch != BatchGSO {
			t.Errorf("sent %+v, received %+v", sent, got)
		}
		a.Close()
		b.Close()
	})
}

// TestOnePortServesManyPeers connects sockets to several clients on a listener's port while
// strangers go on sending to it.
func TestOnePortServesManyPeers(t *testing.T) {
	server, err := Listen(t.Context(), "udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	at := server.LocalAddr().(*net.UDPAddr).AddrPort()
	stop := make(chan struct{})
	ended := make(chan struct{})
	noise, err := Dial(at, SocketOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer noise.Close()
	go func() { // only the listener receives it
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			default:
				_ = noise.Send([]byte("noise")) // the listener's buffer may be full
			}
		}
	}()
	for i := range 20 {
		client, err := Dial(at, SocketOptions{})
		if err != nil {
			t.Fatal(err)
		}
		served, err := Connected(at, client.LocalAddr(), SocketOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, way := range [][2]*Socket{{client, served}, {served, client}} {
			want := fmt.Sprintf("to %d", i)
			if err := way[0].Send([]byte(want)); err != nil {
				t.Fatal(err)
			}
			buf := make([]byte, 20)
			n, err := way[1].Receive(buf, time.Minute)
			if err != nil || string(buf[:n]) != want {
				t.Errorf("%q, %v, want %q", buf[:n], err, want)
			}
		}
		client.Close()
		served.Close()
	}
	close(stop)
	<-ended
	// Without other sockets the listener has its port for itself; its buffer is full of noise, or
	// this is the first packet.
	_ = noise.Send([]byte("noise"))
	if err := server.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 20)
	if n, from, err := server.ReadFromUDPAddrPort(buf); err != nil || string(buf[:n]) != "noise" ||
		from != noise.LocalAddr() {
		t.Errorf("%q from %v, %v", buf[:n], from, err)
	}
}

// TestProbeSaysYes holds on every kernel since Linux 5.0 that has loopback.
func TestProbeSaysYes(t *testing.T) {
	if s := Probe(); s.Send != nil || s.Receive != nil {
		t.Errorf("%+v", s)
	}
	if err := compare(-1, nil); err != nil {
		t.Error(err)
	}
}

// TestProbeSeesCorruption compares what arrives with something else.
func TestProbeSeesCorruption(t *testing.T) {
	a, b := socketPair(t, SocketOptions{})
	if err := a.Send([]byte("abcd")); err != nil {
		t.Fatal(err)
	}
	if err := compare(b.fd, []byte("abxd")); !errors.Is(err, ErrCorrupt) {
		t.Errorf("%v", err)
	}
}

// TestLocalPort binds a chosen port, with which repeated runs take the same queues.
func TestLocalPort(t *testing.T) {
	_, b := socketPair(t, SocketOptions{})
	port := testenv.FreePorts(t, 1)
	c, err := Dial(netip.AddrPortFrom(loopback, b.LocalAddr().Port()),
		SocketOptions{LocalPort: port, WindowBytes: 100_000, BusyPoll: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := c.LocalAddr(); int(got.Port()) != port || got.Addr() != loopback {
		t.Errorf("bound to %v, want port %d", got, port)
	}
	if send, receive := c.Buffers(); send != 200_000 || receive != 200_000 {
		t.Errorf("buffers of %d and %d bytes", send, receive)
	}
}

// TestTotalsBlameTheSocketForWhatItDropped follows a merged stream that overruns a tiny buffer to
// the end, as both ends of a test do.
func TestTotalsBlameTheSocketForWhatItDropped(t *testing.T) {
	a, b := socketPair(t, SocketOptions{WindowBytes: 2048})
	f := newFlow(t, a, b, SendOptions{Bytes: 64}, ReceiveOptions{})
	out := NewExchange([]*engine.Worker{f.ws}, []Port{{Sender: f.sender}})
	in := NewExchange([]*engine.Worker{f.wr}, []Port{{Receiver: f.receiver}})
	f.start()
	f.settle(func(r Received) bool { return r.SocketDrops > 0 })
	f.phase.Set(engine.Measured)
	f.settle(func(r Received) bool { return r.MeasuredSocketDrops > 0 })
	f.phase.Set(engine.Tail)
	<-f.sender.Idle()
	if err := in.Hear(out.Tallies()); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	for !in.Drained(time.Since(start)) {
		time.Sleep(time.Millisecond)
	}
	f.stop()
	sent, _ := out.Totals()
	_, got := in.Totals()
	if got.Sent != sent.Packets || got.Lost != got.SocketDrops || got.Lost != sent.Packets-got.Packets ||
		got.Lost == 0 {
		t.Errorf("sent %+v, received %+v", sent, got)
	}
}

// TestArrivalTimes checks that arrival times are the kernel's unless the options say otherwise, and
// that both kinds lie between sending and counting.
func TestArrivalTimes(t *testing.T) {
	for _, own := range []bool{false, true} {
		a, b := socketPair(t, SocketOptions{WindowBytes: 1 << 20})
		before := sys.Monotonic()
		_, got := flood(t, a, b, SendOptions{Bytes: 64, Packets: 100, PacketRate: 10000}, ReceiveOptions{OwnTime: own})
		after := sys.Monotonic()
		if got.KernelTime == own {
			t.Errorf("own time %v: kernel's time %v", own, got.KernelTime)
		}
		// The realtime clock may be slewed meanwhile, by 500 ppm at most.
		if slew := time.Millisecond; got.FirstAt < before-slew || got.LastAt > after+slew || got.LastAt <= got.FirstAt {
			t.Errorf("arrived from %v to %v, sent and counted from %v to %v", got.FirstAt, got.LastAt, before, after)
		}
	}
}
