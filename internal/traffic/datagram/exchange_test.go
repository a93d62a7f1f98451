package datagram

import (
	"errors"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/traffic/engine"
)

// TestExchangeIsExact sends a known amount each way over two streams and follows it to the last
// packet.
func TestExchangeIsExact(t *testing.T) {
	const packets = 500
	p := &engine.Phase{}
	p.Set(engine.Measured)
	var workers [2][]*engine.Worker // of either end
	var ports [2][]Port
	for direction := range 2 {
		a, b := socketPair(t, SocketOptions{})
		sw, s, err := NewSender(p, a, SendOptions{Bytes: 200, Packets: packets, PacketRate: 20_000})
		if err != nil {
			t.Fatal(err)
		}
		rw, r, err := NewReceiver(p, b, ReceiveOptions{Bytes: 200})
		if err != nil {
			t.Fatal(err)
		}
		// The end that sends in one direction receives in the other.
		workers[direction] = append(workers[direction], sw)
		ports[direction] = append(ports[direction], Port{Sender: s})
		workers[1-direction] = append(workers[1-direction], rw)
		ports[1-direction] = append(ports[1-direction], Port{Receiver: r})
	}
	var ends [2]*Exchange
	for i := range ends {
		ends[i] = NewExchange(workers[i], ports[i])
		for _, w := range workers[i] {
			go func() { _ = w.Run(-1) }()
		}
	}
	defer func() {
		p.Set(engine.Stopped)
		for _, of := range workers {
			for _, w := range of {
				<-w.Done()
				w.Close()
			}
		}
	}()
	start := time.Now()
	for i, x := range ends {
		if !x.Sends() || !x.Receives() || x.Heard() || x.Drained(time.Since(start)) {
			t.Errorf("end %d before anything is known", i)
		}
		for !x.Idle() {
			time.Sleep(time.Millisecond)
		}
	}
	for i, x := range ends {
		if err := x.Hear(ends[1-i].Tallies()); err != nil {
			t.Fatal(err)
		}
		if err := x.Hear(ends[1-i].Tallies()); !errors.Is(err, ErrOutOfPlace) {
			t.Errorf("heard twice: %v", err)
		}
	}
	for i, x := range ends {
		for !x.Drained(time.Since(start)) {
			time.Sleep(time.Millisecond)
		}
		sent, received := x.Totals()
		if sent == nil || sent.Packets != packets || sent.Bytes != 200*packets || sent.Gaps.Count == 0 {
			t.Errorf("end %d sent %+v", i, sent)
		}
		if received == nil || received.Sent != packets || received.Packets+received.Lost != packets ||
			received.Bytes != 200*received.Packets {
			t.Errorf("end %d received %+v", i, received)
		}
		if n := x.Missing(); n < 0 || n > received.Lost {
			t.Errorf("end %d misses %d on the way, %d in the end", i, n, received.Lost)
		}
	}
}

// TestExchangeGivesUp hears of packets that never arrive.
func TestExchangeGivesUp(t *testing.T) {
	a, b := socketPair(t, SocketOptions{})
	defer a.Close()
	p := &engine.Phase{}
	w, r, err := NewReceiver(p, b, ReceiveOptions{Bytes: 200})
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = w.Run(-1) }()
	defer func() {
		p.Set(engine.Stopped)
		<-w.Done()
		w.Close()
	}()
	x := NewExchange([]*engine.Worker{w}, []Port{{Receiver: r}})
	for _, bad := range [][]Tally{nil, {{}, {}}, {{Packets: -1}}, {{Packets: 2, AllPackets: 1}},
		{{AllPackets: mostPackets + 1}}} {
		if err := x.Hear(bad); !errors.Is(err, ErrOutOfPlace) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if x.Drained(0) {
		t.Error("drained before it heard the tallies")
	}
	if err := x.Hear([]Tally{{Packets: 7, AllPackets: 9}}); err != nil {
		t.Fatal(err)
	}
	const pause = time.Hour // of the process: what came meanwhile waits in the socket
	if x.Drained(time.Second) || x.Drained(time.Second+pause) {
		t.Error("took a pause of its own for quiet")
	}
	gaveUp, begin := false, time.Second+pause
	for after := time.Duration(0); !gaveUp && after < time.Second; after += 10 * time.Millisecond {
		if gaveUp = x.Drained(begin + after); gaveUp != (after >= drainQuiet-longestLook) {
			t.Errorf("gave up %v after %v of quiet, want after %v", gaveUp, after+longestLook, drainQuiet)
		}
	}
	if !gaveUp {
		t.Error("did not give up")
	}
	sent, received := x.Totals()
	if sent != nil || received == nil || received.Sent != 7 || received.Lost != 7 || received.Packets != 0 {
		t.Errorf("%+v, %+v", sent, received)
	}
}
