package datagram

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/traffic/engine"
)

// relay passes datagrams on from a sender to a receiver and does to them what its script says.
type relay struct {
	in, out *net.UDPConn
	got     int      // datagrams taken
	passed  []uint64 // sequence numbers in the order in which they were passed on
	ended   chan struct{}
	script  func(n uint64) fault
}

type fault int

const (
	pass fault = iota
	drop
	twice
	later // after the next three
)

// newRelay opens the path: sender and receiver are connected to it and it to both.
func newRelay(t *testing.T, script func(n uint64) fault) (r *relay, sender, receiver *Socket) {
	t.Helper()
	listen := func() *net.UDPConn {
		c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: loopback.AsSlice()})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.SetReadBuffer(4 << 20); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	r = &relay{in: listen(), out: listen(), script: script, ended: make(chan struct{})}
	port := func(c *net.UDPConn) netip.AddrPort { return c.LocalAddr().(*net.UDPAddr).AddrPort() }
	var err error
	if sender, err = Dial(port(r.in), SocketOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sender.Close)
	if receiver, err = Dial(port(r.out), SocketOptions{WindowBytes: 4 << 20}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(receiver.Close)
	go r.run(receiver.LocalAddr())
	return r, sender, receiver
}

// run passes on until the End mark or the closing of a socket.
func (r *relay) run(to netip.AddrPort) {
	defer close(r.ended)
	type held struct {
		p    []byte
		n    uint64
		left int
	}
	var kept []held
	buf := make([]byte, MaxBytes)
	write := func(p []byte, n uint64) {
		r.passed = append(r.passed, n)
		_, _ = r.out.WriteToUDPAddrPort(p, to) // loopback takes it; a loss would fail the test
	}
	for {
		size, _, err := r.in.ReadFromUDPAddrPort(buf)
		if err != nil {
			return
		}
		m, ok := NativeHeader{}.Parse(buf[:size])
		if !ok || m.End {
			for _, k := range kept {
				write(k.p, k.n)
			}
			return
		}
		r.got++
		switch r.script(m.Sequence) {
		case drop:
		case twice:
			write(buf[:size], m.Sequence)
			write(buf[:size], m.Sequence)
		case later:
			kept = append(kept, held{append([]byte(nil), buf[:size]...), m.Sequence, 3})
			continue
		default:
			write(buf[:size], m.Sequence)
		}
		for i := 0; i < len(kept); i++ {
			if kept[i].left--; kept[i].left == 0 {
				write(kept[i].p, kept[i].n)
				kept = append(kept[:i], kept[i+1:]...)
				i--
			}
		}
	}
}

// counts is the result of a reference for the order in which packets arrive.
type counts struct{ Packets, Duplicates, Reordered, Lost int64 }

// TestFaultsAreCountedToThePacket sends through a path that loses, duplicates and delays packets by
// number.
func TestFaultsAreCountedToThePacket(t *testing.T) {
	for name, script := range map[string]func(n uint64) fault{
		"clean":      func(uint64) fault { return pass },
		"loss":       func(n uint64) fault { return when(n%10 == 3, drop) },
		"burst loss": func(n uint64) fault { return when(n%500 < 60, drop) },
		"duplicates": func(n uint64) fault { return when(n%7 == 0, twice) },
		"reordering": func(n uint64) fault { return when(n%11 == 5, later) },
		"all three": func(n uint64) fault {
			switch {
			case n%13 == 0:
				return drop
			case n%17 == 0:
				return twice
			case n%19 == 0:
				return later
			}
			return pass
		},
	} {
		t.Run(name, func(t *testing.T) {
			const packets = 2000
			r, a, b := newRelay(t, script)
			f := newFlow(t, a, b, SendOptions{Bytes: 100, PacketRate: 20000, Packets: packets, First: 1},
				ReceiveOptions{Verify: true})
			f.phase.Set(engine.Measured)
			f.start()
			<-f.sender.Idle()
			// Datagrams to the relay stay in order, so the End mark is behind all of them.
			end := make([]byte, 16)
			NativeHeader{}.Put(end, Mark{End: true})
			if err := a.Send(end); err != nil {
				t.Fatal(err)
			}
			select {
			case <-r.ended:
			case <-time.After(time.Minute):
				t.Fatal("the relay saw no end")
			}
			f.settle(arrived(int64(len(r.passed))))
			sent, got := f.stop()
			if r.got != packets || sent.Packets != packets {
				t.Fatalf("%d sent, the relay got %d", sent.Packets, r.got)
			}
			m := remembered{seen: map[uint64]bool{}}
			var want counts
			for _, n := range r.passed {
				switch m.note(n) {
				case inOrder:
					want.Packets++
				case reordered:
					want.Packets++
					want.Reordered++
				case duplicate:
					want.Duplicates++
				}
			}
			want.Lost = packets - want.Packets
			have := counts{got.Packets, got.Duplicates, got.Reordered, sent.Packets - got.Packets}
			if d := cmp.Diff(want, have); d != "" {
				t.Errorf("(-passed on +counted):\n%s%+v", d, got)
			}
			if got.AllPackets != int64(len(r.passed)) || got.UniquePackets != want.Packets ||
				got.Bytes != want.Packets*100 {
				t.Errorf("%d passed on, received %+v", len(r.passed), got)
			}
			if got.SocketDrops != 0 || got.Strays != 0 || got.Late != 0 {
				t.Errorf("received %+v", got)
			}
		})
	}
}

func when(yes bool, f fault) fault {
	if yes {
		return f
	}
	return pass
}
