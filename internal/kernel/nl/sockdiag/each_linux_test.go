package sockdiag

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/nl/nltest"
)

// inNetNS runs f in a new network namespace with a loopback, on a thread that ends with it.
func inNetNS(t *testing.T, f func()) {
	t.Helper()
	nltest.InNetNS(t, func() {
		c, err := nl.Dial()
		nltest.Must(t, err)
		nltest.Must(t, errors.Join(c.SetUp("lo"), c.Close()))
		f()
	})
}

// must ends the goroutine of the test body.
func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// world creates a listener with unaccepted connections, connections of both versions of IP with
// unread data, and UDP sockets, one of which has overflowed.
func world(t *testing.T) {
	t.Helper()
	// The first uses system calls, since package net cannot set the backlog.
	fd := must[int](t)(unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0))
	t.Cleanup(func() { _ = unix.Close(fd) })
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrInet4{Port: 5000, Addr: [4]byte{127, 0, 0, 1}}),
		unix.Listen(fd, 5)); err != nil {
		t.Fatal(err)
	}
	dial := func(network, address string) net.Conn {
		c := must[net.Conn](t)(net.Dial(network, address))
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	dial("tcp", "127.0.0.1:5000")
	dial("tcp", "127.0.0.1:5000")
	for _, at := range []string{"127.0.0.1:5001", "[::1]:5002", ":5003"} {
		l := must[net.Listener](t)(net.Listen("tcp", at))
		t.Cleanup(func() { _ = l.Close() })
		near := dial("tcp", strings.Replace(l.Addr().String(), "[::]:5003", "127.0.0.1:5003", 1))
		far := must[net.Conn](t)(l.Accept())
		t.Cleanup(func() { _ = far.Close() })
		_ = must[int](t)(near.Write(make([]byte, 3000)))
		_ = must[int](t)(far.Write(make([]byte, 70)))
	}
	// The receive buffer of the connected one is too small for the datagrams.
	u := must[*net.UDPConn](t)(net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 5004}))
	t.Cleanup(func() { _ = u.Close() })
	if err := u.SetReadBuffer(4096); err != nil {
		t.Fatal(err)
	}
	c := dial("udp4", "127.0.0.1:5004")
	received := func() (m Memory) {
		for _, s := range all(t, Query{Protocol: UDP, States: []State{Closed}}) {
			m = s.Memory
		}
		return m
	}
	for range 20 {
		before := received()
		_ = must[int](t)(c.Write(make([]byte, 1000)))
		await(t, "a datagram", func() bool { return received() != before })
	}
	await(t, "the handshakes, the data and their acknowledgements", func() bool {
		waiting, unread := 0, 0
		for _, s := range all(t, Query{Protocol: TCP, States: []State{Listen, Established}}) {
			switch {
			case s.State == Listen && s.Local.Port() == 5000:
				waiting = int(s.ReceiveQueue)
			case s.State == Listen:
			case s.SendQueue != 0:
				return false
			case s.ReceiveQueue == 3000 || s.ReceiveQueue == 70:
				unread++
			}
		}
		return waiting == 2 && unread == 6
	})
}

// await waits for what the kernel does behind the calls: it handles a packet of loopback in the
// softirq of the sender, but later where the softirqs of a busy host are late.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s did not arrive", what)
		}
	}
}

func all(t *testing.T, q Query) []Socket {
	t.Helper()
	var found []Socket
	if err := Each(q, func(s *Socket) bool { found = append(found, *s); return true }); err != nil {
		t.Error(err)
	}
	return found
}

var connections = []State{Established, FinWait1, CloseWait}

func TestEach(t *testing.T) {
	inNetNS(t, func() {
		if found := all(t, Query{Protocol: TCP, States: []State{Listen, Established}}); len(found) != 0 {
			t.Errorf("an empty namespace has %+v", found)
		}
		world(t)
		listeners := make(map[uint16]Socket)
		for _, s := range all(t, Query{Protocol: TCP, States: []State{Listen}}) {
			listeners[s.Local.Port()] = s
		}
		if l := listeners[5000]; len(listeners) != 4 || l.ReceiveQueue != 2 || l.SendQueue != 5 || l.Remote.IsValid() ||
			l.Info.Length != 0 {
			t.Errorf("%d listeners; the one with two waiting connections is %+v", len(listeners), l)
		}
		unread, unmapped := 0, 0
		for _, s := range all(t, Query{Protocol: TCP, States: connections, TCPInfo: true}) {
			if s.ReceiveQueue == 3000 && s.Info.BytesReceived == 3000 && s.Memory.Receive > 3000 {
				unread++
			}
			if s.Local.Port() == 5003 && s.Local.Addr().Is4() {
				unmapped++
			}
			if s.Cookie == 0 || s.Congestion == "" || s.Memory.ReceiveLimit == 0 || !s.Info.Has(104) {
				t.Errorf("connection %+v", s)
			}
		}
		if unread != 3 || unmapped != 1 {
			t.Errorf("%d connections with 3000 bytes unread, %d IPv4 connections of an IPv6 socket", unread, unmapped)
		}
		var dropped uint32
		for _, s := range all(t, Query{Protocol: UDP, States: []State{Closed, Established}}) {
			if s.Remote.IsValid() != (s.State == Established) {
				t.Errorf("state %d with peer %v", s.State, s.Remote)
			}
			dropped += s.Memory.Drops
		}
		if dropped == 0 || dropped >= 20 {
			t.Errorf("%d of 20 datagrams dropped", dropped)
		}
	})
}

// TestEachEnds checks the ends by the caller, by time, and by an error of the kernel.
func TestEachEnds(t *testing.T) {
	inNetNS(t, func() {
		world(t)
		n := 0
		if err := Each(Query{Protocol: TCP, States: connections},
			func(*Socket) bool { n++; return n < 3 }); err != nil || n != 3 {
			t.Errorf("%d sockets, want three: %v", n, err)
		}
		err := Each(Query{Protocol: UDP, States: connections, Limit: 1}, func(*Socket) bool { return true })
		if !errors.Is(err, ErrLimit) || !strings.HasPrefix(err.Error(), "list udp sockets: ") {
			t.Errorf("no time: %v", err)
		}
		// The kernel has no handler for protocol 250.
		if err := Each(Query{Protocol: 250, States: connections}, func(*Socket) bool { return true }); !errors.Is(err,
			errors.ErrUnsupported) || !errors.Is(err, unix.ENOENT) {
			t.Errorf("an unknown protocol: %v", err)
		}
	})
}

// TestDifferential compares with the output of ss(8) for the same sockets.
func TestDifferential(t *testing.T) {
	ss := testenv.Program(t, "ss")
	inNetNS(t, func() {
		world(t)
		compared := 0
		for _, c := range []struct {
			flags string
			query Query
		}{
			{"-tlemnHO", Query{Protocol: TCP, States: []State{Listen}}},
			{"-tiemnHO", Query{Protocol: TCP, States: connections, TCPInfo: true}},
			{"-uaemnHO", Query{Protocol: UDP, States: []State{Closed, Established}}},
		} {
			ours := all(t, c.query)
			out, err := exec.CommandContext(t.Context(), ss, c.flags).Output()
			if err != nil {
				t.Errorf("ss %s: %v", c.flags, err)
			}
			theirs := make(map[uint64]string)
			for line := range strings.Lines(string(out)) {
				theirs[cookie(line)] = line
			}
			if len(ours) != len(theirs) || len(ours) == 0 {
				t.Errorf("ss %s: here %d sockets, ss prints %d", c.flags, len(ours), len(theirs))
			}
			for _, s := range ours {
				compared += agree(t, s, theirs[s.Cookie])
			}
		}
		// Eleven sockets with a dozen values each, and six connections with a dozen more.
		if compared < 150 {
			t.Errorf("only %d values were compared", compared)
		}
	})
}

// cookie returns the number that ss prints as sk:, in hexadecimal.
func cookie(line string) uint64 {
	n, _ := strconv.ParseUint(word(line, "sk:"), 16, 64)
	return n
}

// word returns the rest of the word that begins with start.
func word(line, start string) string {
	for w := range strings.FieldsSeq(line) {
		if rest, ok := strings.CutPrefix(w, start); ok {
			return rest
		}
	}
	return ""
}

// agree compares a socket with the line of ss and returns the number of values that both have.
func agree(t *testing.T, s Socket, line string) (n int) {
	t.Helper()
	f := strings.Fields(line)
	if len(f) < 5 {
		t.Errorf("ss does not list %+v", s)
		return 0
	}
	same := func(what string, ours any, theirs string) {
		t.Helper()
		n++
		if fmt.Sprint(ours) != theirs {
			t.Errorf("%s of %v: %v here, %s there\n%s", what, s.Local, ours, theirs, line)
		}
	}
	same("state", map[State]string{Established: "ESTAB", Closed: "UNCONN", Listen: "LISTEN"}[s.State], f[0])
	same("receive queue", s.ReceiveQueue, f[1])
	same("send queue", s.SendQueue, f[2])
	// ss prints wildcards as stars, and IPv4 in IPv6 as [::ffff:…].
	for i, ours := range []netip.AddrPort{s.Local, s.Remote} {
		if theirs, err := netip.ParseAddrPort(f[3+i]); err == nil {
			same("address", ours, netip.AddrPortFrom(theirs.Addr().Unmap(), theirs.Port()).String())
		}
	}
	m := s.Memory
	ours := fmt.Sprintf("(r%d,rb%d,t%d,tb%d,f%d,w%d,o%d,bl%d,d%d)", m.Receive, m.ReceiveLimit, m.Send, m.SendLimit,
		m.Forward, m.Queued, m.Option, m.Backlog, m.Drops)
	same("memory", ours, word(line, "skmem:"))
	n += 8
	if s.Info.Length == 0 {
		return n
	}
	for start, ours := range map[string]any{
		"mss:": s.Info.SndMSSBytes, "rcvmss:": s.Info.RcvMSSBytes, "advmss:": s.Info.AdvMSSBytes,
		"pmtu:": s.Info.PMTUBytes, "cwnd:": s.Info.SndCwndPackets,
		"bytes_sent:": s.Info.BytesSent, "bytes_acked:": s.Info.BytesAcked, "bytes_received:": s.Info.BytesReceived,
		"segs_out:": s.Info.SegsOut,
		"segs_in:":  s.Info.SegsIn, "rcv_space:": s.Info.RcvSpaceBytes, "snd_wnd:": s.Info.SndWndBytes,
		"wscale:": fmt.Sprintf("%d,%d", s.Info.SndWScale, s.Info.RcvWScale),
	} {
		if theirs := word(line, start); theirs != "" {
			same(start, ours, theirs)
		}
	}
	if !strings.Contains(line, " "+s.Congestion+" ") {
		t.Errorf("congestion control %q\n%s", s.Congestion, line)
	}
	return n
}

// FuzzCut checks that messages end for any input, and that none extends past its end.
func FuzzCut(f *testing.F) {
	b := make([]byte, 20)
	binary.NativeEndian.PutUint32(b, 20)
	f.Add(b)
	f.Fuzz(func(t *testing.T, in []byte) {
		for rest := in; len(rest) > 0; {
			m, next, err := cut(rest)
			if err != nil {
				if !errors.Is(err, errShort) {
					t.Errorf("error without a kind: %v", err)
				}
				return
			}
			if len(next) >= len(rest) || len(m.body) > len(rest) {
				t.Fatalf("%d bytes left of %d", len(next), len(rest))
			}
			_ = m.errno()
			rest = next
		}
	})
}

func BenchmarkEach(b *testing.B) {
	for b.Loop() {
		if err := Each(Query{Protocol: TCP, States: connections, TCPInfo: true},
			func(*Socket) bool { return true }); err != nil {
			b.Fatal(err)
		}
	}
}
