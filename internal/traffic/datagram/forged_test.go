package datagram

import (
	"testing"
	"time"

	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/traffic/engine"
)

// TestForgedDatagrams sends datagrams into a running test from the address of its sender, as
// an attacker does who forges sources. They are strays: every datagram of the sender still counts
// once, and no delay is that of a forged time.
func TestForgedDatagrams(t *testing.T) {
	at := func(sequence uint64, sent time.Duration, measured bool) []byte {
		p := make([]byte, 100)
		NativeHeader{}.Put(p, Mark{Sequence: sequence, Sent: sent, Measured: measured})
		return p
	}
	now := sys.Monotonic
	for name, forge := range map[string]func() []byte{
		"empty":           func() []byte { return nil },
		"truncated":       func() []byte { return at(10, now(), true)[:nativeHeaderBytes-1] },
		"another magic":   func() []byte { p := at(10, now(), true); p[0] = 0; return p },
		"unknown flags":   func() []byte { p := at(10, now(), true); p[1] = 0xff; return p },
		"too long":        func() []byte { return append(at(10, now(), true), make([]byte, 100)...) },
		"the last number": func() []byte { return at(sequenceMask, now(), true) },
		"a far number":    func() []byte { return at(1<<40, now(), false) },
		"the far future":  func() []byte { return at(10, 1<<63-1, true) },
		"the far past":    func() []byte { return at(10, now()-2*time.Hour, true) },
	} {
		t.Run(name, func(t *testing.T) {
			const packets, forged = 2000, 20
			done := 0
			var r *relay
			var a, b *Socket
			opened := make(chan struct{}) // the relay runs before its sockets are known here
			r, a, b = newRelay(t, func(n uint64) fault {
				<-opened
				if n%100 == 50 && done < forged {
					done++
					_, _ = r.out.WriteToUDPAddrPort(forge(), b.LocalAddr())
				}
				return pass
			})
			close(opened)
			f := newFlow(t, a, b, SendOptions{Bytes: 100, PacketRate: 20000, Packets: packets, First: 1},
				ReceiveOptions{Bytes: 100, Verify: true})
			f.phase.Set(engine.Measured)
			f.start()
			<-f.sender.Idle()
			f.settle(func(g Received) bool { return g.UniquePackets >= packets && g.Strays >= forged })
			_, got := f.stop()
			if got.Packets != packets || got.Strays != forged || got.Late != 0 || got.Duplicates != 0 {
				t.Errorf("of %d and %d forged: %+v", packets, forged, got)
			}
			// Only those that might have been the sender's are reported. A host that runs for less than
			// two hours has no such past.
			if want := map[string]int64{"the last number": forged, "a far number": forged,
				"the far future": forged}[name]; got.Implausible != want && name != "the far past" {
				t.Errorf("%d implausible, want %d", got.Implausible, want)
			}
			if got.DelayVariation.Max > 3600 || got.JitterSeconds > 3600 {
				t.Errorf("delays: %+v, jitter %g s", got.DelayVariation, got.JitterSeconds)
			}
		})
	}
}

// TestForgedFirst sends a forged datagram before the first one of the sender. A receiver that knows
// the number of the first one takes none of them for it.
func TestForgedFirst(t *testing.T) {
	const packets, first = 500, 1<<40 + 12345
	for name, forged := range map[string]uint64{
		"zero": 0, "right below": first - 1, "far above": first + 1<<45, "the last number": sequenceMask,
	} {
		t.Run(name, func(t *testing.T) {
			var r *relay
			var a, b *Socket
			opened := make(chan struct{}) // the relay runs before its sockets are known here
			r, a, b = newRelay(t, func(n uint64) fault {
				<-opened
				if n == first {
					p := make([]byte, 100)
					NativeHeader{}.Put(p, Mark{Sequence: forged, Sent: sys.Monotonic(), Measured: true})
					_, _ = r.out.WriteToUDPAddrPort(p, b.LocalAddr())
				}
				return pass
			})
			close(opened)
			start := uint64(first)
			f := newFlow(t, a, b, SendOptions{Bytes: 100, PacketRate: 20000, Packets: packets, First: first},
				ReceiveOptions{Bytes: 100, Verify: true, First: &start})
			f.phase.Set(engine.Measured)
			f.start()
			<-f.sender.Idle()
			f.settle(func(g Received) bool { return g.UniquePackets >= packets && g.Strays >= 1 })
			_, got := f.stop()
			if got.Packets != packets || got.Strays != 1 || got.Implausible != 1 || got.LowestSequence != first ||
				got.Late != 0 || got.Duplicates != 0 || got.Reordered != 0 {
				t.Errorf("%+v", got)
			}
		})
	}
}

// A silence as long as an outage of the path is followed by numbers far ahead.
func TestNumbersAfterASilence(t *testing.T) {
	r := &Receiver{header: NativeHeader{}, native: true}
	r.longest = 100
	p := make([]byte, 100)
	for _, c := range []struct {
		sequence uint64
		at       time.Duration
		counts   bool
	}{
		{1, time.Second, true},
		{farAhead, time.Second, true},
		{10_000_000, time.Second + time.Millisecond, false},
		{10_000_000, 2 * time.Second, true}, // a second without a packet, at ten million in a second
		{10_000_001, 2 * time.Second, true},
	} {
		NativeHeader{}.Put(p, Mark{Sequence: c.sequence, Sent: c.at, Measured: true})
		if data := r.packet(p, c.at, 0); data != c.counts {
			t.Errorf("%d at %v counts: %v", c.sequence, c.at, data)
		}
	}
}
