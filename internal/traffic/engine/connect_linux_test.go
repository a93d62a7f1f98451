package engine

import (
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
)

// TestSlowRequestIsAnswered sends a request in two pieces with more time between them than one read
// of the acceptor waits for, as a request of many segments arrives over a long path.
func TestSlowRequestIsAnswered(t *testing.T) {
	p := &Phase{}
	at := netip.MustParseAddr("127.0.0.1")
	far, a, err := NewAcceptor(p, AcceptOptions{Address: at, From: at, Prefix: []byte("token"), RequestBytes: 4,
		ResponseBytes: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	ended := make(chan error, 1)
	go func() { ended <- far.Run(-1) }()
	conn, err := net.Dial("tcp", netip.AddrPortFrom(at, a.Port()).String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	for _, piece := range []string{"token12", "34"} {
		if _, err := conn.Write([]byte(piece)); err != nil {
			t.Fatal(err)
		}
		// the acceptor's read must have given up once; on a busy host it may be later, which is no
		// failure
		time.Sleep(wakeEvery + wakeEvery/4)
	}
	if _, err := io.ReadFull(conn, make([]byte, 3)); err != nil {
		t.Errorf("no answer: %v", err)
	}
	p.Set(Stopped)
	far.Wake()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestZoneOfTheAskedIsNoMatter answers a near end whose address was given with its zone, as
// link-local addresses are.
func TestZoneOfTheAskedIsNoMatter(t *testing.T) {
	at := netip.MustParseAddr("::1")
	p := &Phase{}
	p.Set(Measured)
	far, a, err := NewAcceptor(p, AcceptOptions{Address: at, From: at.WithZone("lo"), RequestBytes: 1,
		ResponseBytes: 1})
	if err != nil {
		testenv.Missing(t, testenv.Network, "no IPv6: ", err)
	}
	defer far.Close()
	near, err := NewConnector(p, ConnectOptions{To: netip.AddrPortFrom(at, a.Port()), RequestBytes: 1,
		ResponseBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	ended := make(chan error, 1)
	go func() { ended <- far.Run(-1) }()
	if err := near.body.(*connector).round(near); err != nil {
		t.Error(err)
	}
	p.Set(Stopped)
	far.Wake()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
