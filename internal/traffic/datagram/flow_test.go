package datagram

import (
	"errors"
	"net"
	"net/netip"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/traffic/engine"
)

var loopback = netip.MustParseAddr("127.0.0.1")

// socketPair returns two sockets that are connected to each other over loopback.
func socketPair(tb testing.TB, o SocketOptions) (a, b *Socket) {
	tb.Helper()
	var second, far *net.UDPConn
	for far == nil {
		// Ports are found by binding; the second dial then names both ends.
		first, err := net.ListenUDP("udp4", &net.UDPAddr{IP: loopback.AsSlice()})
		if err != nil {
			tb.Fatal(err)
		}
		second, err = net.DialUDP("udp4", &net.UDPAddr{IP: loopback.AsSlice()}, first.LocalAddr().(*net.UDPAddr))
		if err != nil {
			tb.Fatal(err)
		}
		at, to := first.LocalAddr().(*net.UDPAddr), second.LocalAddr().(*net.UDPAddr)
		if err := first.Close(); err != nil {
			tb.Fatal(err)
		}
		if far, err = net.DialUDP("udp4", at, to); errors.Is(err, syscall.EADDRINUSE) {
			_ = second.Close() // another process has got the port meanwhile
		} else if err != nil {
			tb.Fatal(err)
		}
	}
	var err error
	if a, err = Adopt(second, o); err != nil {
		tb.Fatal(err)
	}
	if b, err = Adopt(far, o); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(a.Close)
	tb.Cleanup(b.Close)
	return a, b
}

// flow is a sender and a receiver under one phase.
type flow struct {
	tb       testing.TB
	phase    *engine.Phase
	sender   *Sender
	receiver *Receiver
	ws, wr   *engine.Worker
	results  chan error
}

func newFlow(tb testing.TB, a, b *Socket, so SendOptions, ro ReceiveOptions) *flow {
	tb.Helper()
	f := &flow{tb: tb, phase: &engine.Phase{}, results: make(chan error, 2)}
	var err error
	if f.wr, f.receiver, err = NewReceiver(f.phase, b, ro); err != nil {
		tb.Fatal(err)
	}
	if f.ws, f.sender, err = NewSender(f.phase, a, so); err != nil {
		tb.Fatal(err)
	}
	return f
}

func (f *flow) start() {
	go func() { f.results <- f.wr.Run(-1) }()
	go func() { f.results <- f.ws.Run(-1) }()
}

// stop ends both and returns what they counted.
func (f *flow) stop() (Sent, Received) {
	f.tb.Helper()
	f.phase.Set(engine.Stopped)
	for range 2 {
		if err := <-f.results; err != nil {
			f.tb.Error(err)
		}
	}
	return f.sender.Sent(), f.receiver.Received()
}

// settle waits until the receiver has enough. The wait of a minute only guards against hanging.
func (f *flow) settle(enough func(Received) bool) {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if enough(f.receiver.Received()) {
			return
		}
	}
}

// arrived asks for a number of packets, duplicates included.
func arrived(packets int64) func(Received) bool {
	return func(r Received) bool { return r.AllPackets >= packets }
}

func TestEveryPacketArrivesOnce(t *testing.T) {
	for _, c := range []struct {
		name    string
		bytes   int
		batch   Batch
		packets int64
	}{
		{"auto", 64, BatchAuto, 1000},
		{"single", 64, BatchSingle, 1000},
		{"smallest", 16, BatchAuto, 1000},
		{"jumbo", 8972, BatchAuto, 200},
		{"largest", MaxBytes, BatchAuto, 20}, // what fits a receive buffer: there is no reason to lose one
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := socketPair(t, SocketOptions{WindowBytes: 2 << 20})
			packets := c.packets
			f := newFlow(t, a, b, SendOptions{Bytes: c.bytes, Batch: c.batch, PacketRate: 20000,
				Packets: packets, First: 1},
				ReceiveOptions{Batch: c.batch, Verify: true})
			f.phase.Set(engine.Measured)
			f.start()
			<-f.sender.Idle()
			f.settle(arrived(packets))
			sent, got := f.stop()
			if sent.Packets != packets || got.Packets != packets || got.Bytes != packets*int64(c.bytes) {
				t.Errorf("sent %d, received %d packets of %d bytes in all", sent.Packets, got.Packets, got.Bytes)
			}
			if got.Duplicates+got.Reordered+got.Late+got.Strays != 0 {
				t.Errorf("received %+v", got)
			}
		})
	}
}

// supported reports whether this system has a way to go through system calls.
func supported(b Batch) bool { return b == BatchAuto || b == BatchSingle || runtime.GOOS == "linux" }
