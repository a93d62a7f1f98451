package datagram

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/traffic/engine"
)

// TestLoopsAllocateNothing counts the allocations of the whole process while both ends run their
// rounds, paced and not.
func TestLoopsAllocateNothing(t *testing.T) {
	for _, c := range []struct {
		name string
		o    SendOptions
	}{
		{"auto", SendOptions{Bytes: 64}},
		{"mmsg", SendOptions{Bytes: 64, Batch: BatchMMsg}},
		{"single", SendOptions{Bytes: 64, Batch: BatchSingle}},
		{"paced", SendOptions{Bytes: 64, PacketRate: 100000}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := socketPair(t, SocketOptions{})
			f := newFlow(t, a, b, c.o, ReceiveOptions{Batch: c.o.Batch, Verify: true})
			f.phase.Set(engine.Measured)
			f.sender.clock, f.receiver.clock = newClock(), newClock()
			if n := testing.AllocsPerRun(300, func() {
				// A round of the sender may be one of waiting.
				for before := f.ws.Packets.Load(); f.ws.Packets.Load() == before; {
					if err := f.sender.round(f.ws, true); err != nil {
						t.Fatal(err)
					}
				}
				if err := f.receiver.round(f.wr); err != nil {
					t.Fatal(err)
				}
			}); n != 0 {
				t.Errorf("%v allocations per round", n)
			}
			if f.wr.Packets.Load() == 0 {
				t.Error("nothing received")
			}
			f.sender.Close()
			f.receiver.Close()
		})
	}
}

// TestOnlyTheWindowIsMeasured goes through all phases: what is sent before and after the measured
// one is counted, but apart.
func TestOnlyTheWindowIsMeasured(t *testing.T) {
	// Room for seconds of it, in which the receiver may get no processor.
	a, b := socketPair(t, SocketOptions{WindowBytes: 16 << 20})
	f := newFlow(t, a, b, SendOptions{Bytes: 200, PacketRate: 5000}, ReceiveOptions{})
	f.start()
	f.settle(arrived(50))
	f.phase.Set(engine.Measured)
	f.settle(arrived(200))
	f.phase.Set(engine.Tail)
	<-f.sender.Idle()
	sent := f.sender.Sent()
	f.settle(arrived(sent.AllPackets))
	if early := f.receiver.Received(); early.Packets != sent.Packets {
		t.Errorf("%d measured packets received while the worker runs, %d sent", early.Packets, sent.Packets)
	}
	again, got := f.stop()
	if again != sent {
		t.Errorf("sent after idle: %+v, then %+v", sent, again)
	}
	if sent.Packets == 0 || sent.Packets > sent.AllPackets-50 || sent.FirstMeasured < 50 {
		t.Errorf("sent %+v", sent)
	}
	if got.Packets != sent.Packets || got.AllPackets != sent.AllPackets || got.UniquePackets != sent.AllPackets {
		t.Errorf("sent %+v, received %+v", sent, got)
	}
	// The phase may change between the flagging of a packet and the recording of the gap before it.
	if n := uint64(sent.Packets); got.LastAt <= got.FirstAt || sent.Gaps.Count < n-1 || sent.Gaps.Count > n {
		t.Errorf("sent %+v, received %+v", sent, got)
	}
	if f.ws.Packets.Load() != sent.AllPackets || f.wr.Packets.Load() != got.AllPackets ||
		f.wr.Bytes.Load() != 200*got.AllPackets {
		t.Errorf("tallies %d and %d packets", f.ws.Packets.Load(), f.wr.Packets.Load())
	}
}

func TestAmountsEndTheSending(t *testing.T) {
	for _, c := range []struct {
		o    SendOptions
		want int64
	}{
		{SendOptions{Bytes: 100, Packets: 7}, 7},
		{SendOptions{Bytes: 100, PayloadBytes: 1000}, 10},
		{SendOptions{Bytes: 100, PayloadBytes: 1001}, 11},
		{SendOptions{Bytes: 100, PayloadBytes: 1000, Packets: 3}, 3},
		{SendOptions{Bytes: 64, Packets: 100, Batch: BatchSingle}, 100},
	} {
		a, b := socketPair(t, SocketOptions{})
		f := newFlow(t, a, b, c.o, ReceiveOptions{})
		f.phase.Set(engine.Measured)
		f.start()
		<-f.sender.Idle()
		f.settle(arrived(c.want))
		sent, got := f.stop()
		if sent.Packets != c.want || got.Packets != c.want {
			t.Errorf("%+v: %d packets sent, %d received", c.o, sent.Packets, got.Packets)
		}
	}
}

// TestBurstsOfATime sends what falls into a millisecond together: at gaps shorter than a thread can
// sleep, an even schedule would spin for the whole test.
func TestBurstsOfATime(t *testing.T) {
	for _, c := range []struct {
		rate  float64 // bits per second, in datagrams of 1400 bytes
		every time.Duration
		want  int
	}{
		{200e6, 0, 1},
		{200e6, time.Millisecond, 17},
		{200e6, 200 * time.Microsecond, 3},
		{1e6, time.Millisecond, 1},
	} {
		a, b := socketPair(t, SocketOptions{})
		f := newFlow(t, a, b, SendOptions{Bytes: 1400, BitRate: c.rate, Every: c.every, Batch: BatchMMsg},
			ReceiveOptions{})
		if got := f.sender.Sent().BurstPackets; got != c.want {
			t.Errorf("%g b/s, every %v: bursts of %d, want %d", c.rate, c.every, got, c.want)
		}
		f.sender.Close()
		f.receiver.Close()
	}
}

// TestEndMarkIsNoData has a dialect send its last message on the socket of the sender.
func TestEndMarkIsNoData(t *testing.T) {
	a, b := socketPair(t, SocketOptions{})
	f := newFlow(t, a, b, SendOptions{Bytes: 64, Packets: 10}, ReceiveOptions{Verify: true})
	f.phase.Set(engine.Measured)
	f.start()
	<-f.sender.Idle()
	end := make([]byte, 64)
	NativeHeader{}.Put(end, Mark{Sequence: 10, End: true, Measured: true})
	for _, p := range [][]byte{end, end, {1, 2, 3}, make([]byte, 300)} {
		if err := a.Send(p); err != nil {
			t.Fatal(err)
		}
	}
	<-f.receiver.Ended() // by the first mark: three more datagrams are on their way
	f.settle(func(r Received) bool { return r.EndMarks >= 2 && r.Strays >= 2 })
	_, got := f.stop()
	if got.Packets != 10 || got.EndMarks != 2 || got.Strays != 2 {
		t.Errorf("received %+v", got)
	}
}

// TestLongerDatagramsAreStrays sends longer datagrams than the receiver expects, in every way to
// receive.
func TestLongerDatagramsAreStrays(t *testing.T) {
	for _, batch := range []Batch{BatchAuto, BatchMMsg, BatchSingle} {
		if !supported(batch) {
			continue
		}
		a, b := socketPair(t, SocketOptions{})
		f := newFlow(t, a, b, SendOptions{Bytes: 500, Packets: 10},
			ReceiveOptions{Bytes: 64, Batch: batch, Verify: true})
		f.phase.Set(engine.Measured)
		f.start()
		f.settle(func(r Received) bool { return r.Strays == 10 })
		if _, got := f.stop(); got.AllPackets != 0 || got.Strays != 10 {
			t.Errorf("%q: received %+v", batch, got)
		}
	}
}

// TestCorruptPayloadIsAnError changes one byte that no header covers.
func TestCorruptPayloadIsAnError(t *testing.T) {
	a, b := socketPair(t, SocketOptions{})
	p := &engine.Phase{}
	w, _, err := NewReceiver(p, b, ReceiveOptions{Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	bad := engine.Pattern(64)
	bad[63] ^= 1
	NativeHeader{}.Put(bad, Mark{Sequence: 1})
	if err := a.Send(bad); err != nil {
		t.Fatal(err)
	}
	if err := w.Run(-1); !errors.Is(err, ErrCorrupt) {
		t.Errorf("%v, want ErrCorrupt", err)
	}
}

// TestEveryPlaceIsCompared changes the packet at one place of every merged message.
func TestEveryPlaceIsCompared(t *testing.T) {
	for _, segments := range []int{2, 16, 32, 46, 64} {
		c := newChecker(64, nativeHeaderBytes)
		right, wrong := engine.Pattern(64), engine.Pattern(64)
		wrong[nativeHeaderBytes] ^= 1
		for place := range segments {
			found := false
			for i := range checkEvery * segments {
				p := right
				if i%segments == place {
					p = wrong
				}
				ok, _ := c.sample(p)
				found = found || !ok
			}
			if !found {
				t.Errorf("packet %d of %d is never compared", place, segments)
			}
		}
	}
}

// TestTailEndsABurst has the window end while packets wait for space in the send buffer: they are
// not sent, and not counted.
func TestTailEndsABurst(t *testing.T) {
	a, _ := socketPair(t, SocketOptions{})
	p := &engine.Phase{}
	p.Set(engine.Tail)
	w, s, err := NewSender(p, a, SendOptions{Bytes: 64})
	if err != nil {
		t.Fatal(err)
	}
	s.clock = newClock()
	if err := s.round(w, true); err != nil {
		t.Fatal(err)
	}
	if sent := s.Sent(); sent.AllPackets != 0 || sent.Packets != 0 || sent.NextSequence != sent.FirstSequence {
		t.Errorf("sent %+v", sent)
	}
	w.Close()
}

func TestImpossibleOptions(t *testing.T) {
	a, _ := socketPair(t, SocketOptions{})
	for name, o := range map[string]SendOptions{
		"no room for the header": {Bytes: 15},
		"too long":               {Bytes: MaxBytes + 1},
		"both rates":             {Bytes: 64, BitRate: 1, PacketRate: 1},
		"negative rate":          {Bytes: 64, BitRate: -1},
		"no rate at all":         {Bytes: 64, BitRate: math.NaN()},
		"a packet a day":         {Bytes: 64, PacketRate: 1.0 / 86400},
		"negative amount":        {Bytes: 64, Packets: -1},
		"unknown batch":          {Bytes: 64, Batch: "dozen"},
	} {
		if _, _, err := NewSender(&engine.Phase{}, a, o); !errors.Is(err, ErrBadOptions) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, o := range []ReceiveOptions{{Bytes: -1}, {Bytes: MaxBytes + 1}, {Batch: "dozen"}} {
		if _, _, err := NewReceiver(&engine.Phase{}, a, o); !errors.Is(err, ErrBadOptions) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if _, err := ParseBatch("dozen"); err == nil {
		t.Error("a dozen is a batch")
	}
	for _, s := range []string{"", "auto", "gso", "mmsg", "single"} {
		if _, err := ParseBatch(s); err != nil {
			t.Error(err)
		}
	}
}

// TestSenderThatNeverRanIsIdle keeps a conductor that gives up early from waiting.
func TestSenderThatNeverRanIsIdle(t *testing.T) {
	a, b := socketPair(t, SocketOptions{})
	f := newFlow(t, a, b, SendOptions{Bytes: 64}, ReceiveOptions{})
	if got := f.receiver.Received(); got.AllPackets != 0 {
		t.Errorf("received %+v", got)
	}
	f.ws.Close()
	f.wr.Close()
	<-f.sender.Idle()
}

// TestClosedPortIsReported sends to a closed port: the packets count as sent, and the network's
// errors as reports.
func TestClosedPortIsReported(t *testing.T) {
	a, b := socketPair(t, SocketOptions{})
	b.Close()
	p := &engine.Phase{}
	p.Set(engine.Measured)
	w, s, err := NewSender(p, a, SendOptions{Bytes: 64, Packets: 100, Batch: BatchSingle, PacketRate: 10000})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- w.Run(-1) }()
	<-s.Idle()
	p.Set(engine.Stopped)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if got := s.Sent(); got.Packets != 100 || got.Reported == 0 || got.SocketErrors != 0 {
		t.Errorf("sent %+v", got)
	}
	w.Close()
}

func TestSocketSendsAndReceivesOne(t *testing.T) {
	a, b := socketPair(t, SocketOptions{})
	buf := make([]byte, 10)
	if _, err := b.Receive(buf, time.Millisecond); !errors.Is(err, sys.ErrTimeout) {
		t.Errorf("%v, want a timeout", err)
	}
	for _, want := range []string{"hello", ""} {
		if err := a.Send([]byte(want)); err != nil {
			t.Fatal(err)
		}
		n, err := b.Receive(buf, time.Minute)
		if err != nil || string(buf[:n]) != want {
			t.Errorf("%q, %v, want %q", buf[:n], err, want)
		}
	}
	if a.LocalAddr() != b.RemoteAddr() || a.RemoteAddr() != b.LocalAddr() {
		t.Errorf("%v to %v, and %v to %v", a.LocalAddr(), a.RemoteAddr(), b.LocalAddr(), b.RemoteAddr())
	}
	a.Close()
	a.Close()
}

// FuzzPacket feeds a receiver with datagrams that a peer could send.
func FuzzPacket(f *testing.F) {
	p := make([]byte, 32)
	NativeHeader{}.Put(p, Mark{Sequence: 5, Sent: 1<<63 - 1, Measured: true})
	NativeHeader{}.Put(p[16:], Mark{Sequence: 4, Measured: true})
	f.Add(p, uint16(16))
	f.Add(p, uint16(0))
	f.Add([]byte{}, uint16(9))
	f.Fuzz(func(t *testing.T, p []byte, segment uint16) {
		r := &Receiver{header: NativeHeader{}, longest: 100, ended: make(chan struct{}), check: newChecker(100, 16)}
		w := engine.New(engine.Receiver, &engine.Phase{}, r)
		for _, drops := range []uint32{0, 1, 1 << 31} {
			_, err := r.message(w, message{payload: p, segmentBytes: int(segment), drops: drops}, time.Now(),
				time.Second)
			if err != nil && !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
		}
		got := r.finish(r.got, &r.delays)
		if got.Packets > got.UniquePackets || got.UniquePackets > got.AllPackets ||
			got.DelayVariation.Count > uint64(got.Packets) {
			t.Fatalf("%+v", got)
		}
	})
}
