package traffic

import (
	"testing"
	"time"

	"github.com/linerate/linerate/internal/traffic/datagram"
	"github.com/linerate/linerate/internal/traffic/echo"
	"github.com/linerate/linerate/internal/traffic/engine"
)

func TestConnectionsAndRoles(t *testing.T) {
	for _, c := range []struct {
		spec        Spec
		near, far   []engine.Role
		connections int
	}{
		{Spec{Test: Stream, Streams: 2}, []engine.Role{engine.Sender, engine.Sender},
			[]engine.Role{engine.Receiver, engine.Receiver}, 2},
		{Spec{Test: Stream, Streams: 1, Direction: Down}, []engine.Role{engine.Receiver},
			[]engine.Role{engine.Sender}, 1},
		{Spec{Test: Stream, Streams: 1, Direction: Bidir}, []engine.Role{engine.Sender, engine.Receiver},
			[]engine.Role{engine.Receiver, engine.Sender}, 2},
		{Spec{Test: RR, Streams: 2}, []engine.Role{engine.Requester, engine.Requester},
			[]engine.Role{engine.Responder, engine.Responder}, 2},
		{Spec{Test: Ping}, nil, nil, 0},
	} {
		s, err := c.spec.Normalize()
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Connections(); got != c.connections {
			t.Errorf("%+v: %d connections", c.spec, got)
		}
		for i := range c.near {
			if s.role(true, i) != c.near[i] || s.role(false, i) != c.far[i] {
				t.Errorf("%+v: connection %d is %v to %v", c.spec, i, s.role(true, i), s.role(false, i))
			}
		}
	}
}

// TestBoundsFitTheHeaders checks that the smallest ping and datagram that a Spec may ask for hold
// their headers.
func TestBoundsFitTheHeaders(t *testing.T) {
	if minPingBytes != echo.HeaderBytes {
		t.Errorf("a ping of %d bytes for a header of %d", minPingBytes, echo.HeaderBytes)
	}
	if n := (datagram.NativeHeader{}).Bytes(); MinPacketBytes != n || MaxPacketBytes != datagram.MaxBytes {
		t.Errorf("datagrams of %d to %d bytes, where %d to %d are possible", MinPacketBytes, MaxPacketBytes, n,
			datagram.MaxBytes)
	}
}

// TestEveryTestEnds checks that the watchdog leaves every test its time.
func TestEveryTestEnds(t *testing.T) {
	for _, s := range []Spec{{Test: Stream}, {Test: RR, WarmUp: -1}, {Test: UDP, Bytes: 1000},
		{Test: MTU, Duration: time.Second}} {
		s, err := s.Normalize()
		if err != nil {
			t.Fatal(err)
		}
		if longest(s, patience) <= s.Duration+max(0, s.WarmUp) {
			t.Errorf("%+v", s)
		}
	}
}
