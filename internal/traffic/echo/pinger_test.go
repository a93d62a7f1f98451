package echo

import (
	"net/netip"
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
