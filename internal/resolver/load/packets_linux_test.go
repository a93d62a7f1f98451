package load

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/resolver/answer"
)

// capture takes the packets of loopback from and to a UDP port with the kernel's times, as tcpdump
// does, until it is stopped.
type capture struct {
	fd   int
	port uint16
	stop chan struct{}
	took chan map[uint16]*exchange
}

// captured is how much of a packet is kept.
const captured = 8192

// exchange is when a query and its answer passed the interface, realtime clock, nanoseconds.
type exchange struct{ query, answer int64 }

func startCapture(t *testing.T, port uint16) *capture {
	t.Helper()
	const everything = 0x0300 // ETH_P_ALL in network order
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		testenv.Missing(t, testenv.NetNS, err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	// IPv4, UDP and one of the ports; the offsets are those behind the link header.
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: 9},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.IPPROTO_UDP, Jf: 5},
		{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_ABS, K: 20},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: uint32(port), Jt: 2},
		{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_ABS, K: 22},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: uint32(port), Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: captured},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},
	}
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	lo := unix.SockaddrLinklayer{Protocol: everything, Ifindex: 1}
	if err := errors.Join(unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &filter),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20),
		// As libpcap does on loopback, where a packet that leaves arrives again.
		unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
		sys.SetReceiveTimes(fd, true), unix.Bind(fd, &lo)); err != nil {
		t.Fatal(err)
	}
	if err := sys.SetTimeout(fd, 10*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	c := &capture{fd, port, make(chan struct{}), make(chan map[uint16]*exchange)}
	go c.run()
	return c
}

func (c *capture) run() {
	seen := map[uint16]*exchange{}
	defer func() { c.took <- seen }()
	inbox := sys.NewInbox(64, captured)
	for {
		stopped := false // before the look: what arrives between the two is not left
		select {
		case <-c.stop:
			stopped = true
		default:
		}
		n, err := inbox.Receive(c.fd, 64, true)
		if err != nil && stopped {
			return
		}
		if err != nil {
			continue
		}
		for i := range n {
			m := inbox.Message(i)
			if len(m.Payload) < 28 {
				continue
			}
			query := binary.BigEndian.Uint16(m.Payload[22:]) == c.port
			for rest := m.Payload[28:]; len(rest) > 12; {
				id := binary.BigEndian.Uint16(rest)
				e := seen[id]
				if e == nil {
					e = &exchange{}
					seen[id] = e
				}
				if !query {
					e.answer = m.ArrivedNanos
					break
				}
				e.query = m.ArrivedNanos
				// The kernel splits a packet of several queries behind loopback.
				length := 12
				for length < len(rest) && rest[length] != 0 {
					length += int(rest[length]) + 1
				}
				rest = rest[min(length+5+11, len(rest)):] // type and class, and the OPT record
			}
		}
	}
}

// end returns the exchanges by the id of the query.
func (c *capture) end(t *testing.T) map[uint16]*exchange {
	t.Helper()
	close(c.stop)
	seen := <-c.took
	if drops, err := sys.SocketDrops(c.fd); err != nil || drops > 0 {
		t.Fatalf("the capture missed %d packets, %v", drops, err)
	}
	return seen
}

// TestLatencyIsThatOfThePackets compares when each query left and its answer arrived with the times
// at which the same two packets passed the interface. How long the server took, and how late a busy
// machine sent, is not in the difference.
func TestLatencyIsThatOfThePackets(t *testing.T) {
	testenv.Need(t, testenv.NetNS) // as root, for packet sockets
	t.Parallel()
	for _, c := range []struct {
		name string
		o    Options
	}{
		{"each marked", Options{Rate: 3000}},
		{"bursts", Options{Rate: 60_000}},
		{"closed", Options{Mode: Closed, Outstanding: 8}},
	} {
		s := serve(t, answer.Options{})
		o := c.o
		// On one port, and fewer than there are ids: an id is that of one query. A receive buffer of the
		// default limit holds them all, so a server or a client that stands still loses none.
		o.Queries, o.Sockets, o.Duration, o.Timeout = 500, 1, MaxDuration, MaxTimeout
		o.Server, o.Names = s.Addr(), questions(t)
		o, err := o.Filled()
		if err != nil {
			t.Fatal(err)
		}
		packets := startCapture(t, s.Addr().Port())
		type sample struct {
			id            uint16
			sent, arrived int64
		}
		var samples []sample
		b, err := newBatched(o)
		if err != nil {
			t.Fatal(err)
		}
		b.workers[0].judge.trace = func(id uint16, q query, arrived int64) {
			samples = append(samples, sample{id, q.sent, arrived})
		}
		total, latest := newTally(), int64(0)
		start := int64(sys.Monotonic())
		if latest, err = b.run(t.Context(), clock{start: start, end: start + int64(o.Duration), interval: o.Interval,
			report: func(p part) { total.merge(p.tally) }}); err != nil || latest == 0 {
			t.Fatal(err)
		}
		b.close()
		seen := packets.end(t)
		var of, measured, off []float64
		for _, x := range samples {
			e := seen[x.id]
			if e == nil || e.query == 0 || e.answer == 0 {
				continue
			}
			took := float64(e.answer - e.query)
			of, measured = append(of, took), append(measured, float64(x.arrived-x.sent))
			off = append(off, math.Abs(float64(x.arrived-x.sent)-took))
		}
		if len(of) < int(o.Queries)*9/10 {
			t.Fatalf("%s: the capture has %d of %d queries", c.name, len(of), o.Queries)
		}
		for _, v := range [][]float64{of, measured, off} {
			slices.Sort(v)
		}
		median := len(of) / 2
		t.Logf("%s: p50 %.1f µs, of the packets %.1f µs; p99 %.1f and %.1f; a query differs by %.2f µs (p90 %.2f, p99 %.2f, "+
			"most %.2f); usual cost of sending %.2f µs; %d departures", c.name, measured[median]/1e3, of[median]/1e3,
			measured[len(of)*99/100]/1e3, of[len(of)*99/100]/1e3, off[median]/1e3, off[len(off)*9/10]/1e3,
			off[len(off)*99/100]/1e3, off[len(off)-1]/1e3, float64(b.workers[0].cost.of(0))/1e3, total.departures)
		// A twentieth of 40 µs, which is the latency of a server on the same host.
		const near = 2000
		if off[median] > near {
			t.Errorf("%s: half of the queries differ by more than %.2f µs from their packets", c.name, off[median]/1e3)
		}
		if got, want := measured[median], of[median]; math.Abs(got-want) > max(0.05*want, near) {
			t.Errorf("%s: p50 is %g µs, and %g µs of the packets", c.name, got/1e3, want/1e3)
		}
		if total.departures == 0 {
			t.Errorf("%s: the kernel reported no departure", c.name)
		}
	}
}
