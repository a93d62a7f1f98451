package echo

import (
	"fmt"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/traffic/engine"
)

func TestPingsAllocateNothing(t *testing.T) {
	socket, err := openICMP(netip.Addr{}, loopback, 56)
	if err != nil {
		testenv.Missing(t, testenv.Network, "no ICMP: ", err)
	}
	defer socket.close()
	p := &engine.Phase{}
	p.Set(engine.Measured)
	w, s := newPinger(p, socket, Token{7}, PingOptions{Bytes: 56})
	if n := testing.AllocsPerRun(500, func() {
		s.sendPing(w, 0)
		s.takeAnswer(w, time.Minute)
	}); n != 0 {
		t.Errorf("%v allocations per ping", n)
	}
	if s.answered == 0 {
		t.Error("no answer over loopback")
	}
}

// TestSlowAnswersAreNotLost: a pinger waits for its last answers as long as the path takes. The
// answers here come after one and a half seconds, and the pinger waits for five at most.
func TestSlowAnswersAreNotLost(t *testing.T) {
	far, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	answering := make(chan struct{})
	go func() {
		defer close(answering)
		var late sync.WaitGroup
		defer late.Wait()
		for {
			p := make([]byte, 100)
			n, from, err := far.ReadFromUDPAddrPort(p)
			if err != nil {
				return
			}
			late.Go(func() {
				time.Sleep(1500 * time.Millisecond)
				_, _ = far.WriteToUDPAddrPort(p[:n], from)
			})
		}
	}()
	defer func() { <-answering }()
	defer far.Close()
	testenv.Given(t, time.Second, time.Minute, func(time.Duration) error {
		socket, err := openUDP(netip.Addr{}, far.LocalAddr().(*net.UDPAddr).AddrPort(), 56)
		if err != nil {
			return err
		}
		p := &engine.Phase{}
		p.Set(engine.Measured)
		w, s := newPinger(p, socket, Token{7}, PingOptions{Bytes: 56, Gap: 20 * time.Millisecond})
		s.longest = 3 * time.Second // of the trial before the test
		time.AfterFunc(200*time.Millisecond, func() { p.Set(engine.Tail) })
		if err := w.Run(-1); err != nil {
			return err
		}
		if s.Sent() == 0 || s.Answered() != s.Sent() {
			return fmt.Errorf("%d of %d pings answered", s.Answered(), s.Sent())
		}
		return nil
	})
}
