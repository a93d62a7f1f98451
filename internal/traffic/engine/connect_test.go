package engine

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"testing"

	"github.com/linerate/linerate/internal/kernel/sys"
)

// connectPair is a connector and the acceptor it talks to.
func connectPair(tb testing.TB, p *Phase, prefix, expected []byte, spin bool) (near, far *Worker) {
	tb.Helper()
	far, a, err := NewAcceptor(p, AcceptOptions{Address: netip.MustParseAddr("127.0.0.1"),
		From: netip.MustParseAddr("127.0.0.1"), Prefix: expected, RequestBytes: 1, ResponseBytes: 3,
		BusyPoll: spin})
	if errors.Is(err, sys.ErrNotSupported) {
		tb.Skip(err)
	}
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(far.Close)
	near, err = NewConnector(p, ConnectOptions{To: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), a.Port()),
		Prefix: prefix, RequestBytes: 1, ResponseBytes: 3, BusyPoll: spin})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(near.Close)
	return near, far
}

// TestConnections opens more connections than a host has ephemeral ports for a minute's TIME_WAIT,
// and allocates nothing for any.
func TestConnections(t *testing.T) {
	t.Run("sleeping", func(t *testing.T) { testConnections(t, false, 2000) })
	// A few: two ends that spin on one busy CPU get a time slice each in turn.
	t.Run("spinning", func(t *testing.T) { testConnections(t, true, 20) })
}

func testConnections(t *testing.T, spin bool, runs int) {
	p := &Phase{}
	p.Set(Measured)
	token := []byte("sixteen byte key")
	near, far := connectPair(t, p, token, token, spin)
	if near.Spins != spin || far.Spins != spin || near.Method != far.Method {
		t.Errorf("near %v %s, far %v %s", near.Spins, near.Method, far.Spins, far.Method)
	}
	ended := make(chan error, 1)
	go func() { ended <- far.Run(-1) }()
	c := near.body.(interface{ round(*Worker) error })
	want := int64(runs + 1) // with the warm-up of AllocsPerRun
	if n := testing.AllocsPerRun(runs, func() {
		if err := c.round(near); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations per connection", n)
	}
	if near.Transactions.Load() != want || near.RTT.Count() != uint64(want) {
		t.Errorf("%d transactions, %d timed", near.Transactions.Load(), near.RTT.Count())
	}
	p.Set(Stopped)
	far.Wake()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if far.Transactions.Load() != want {
		t.Errorf("%d answered", far.Transactions.Load())
	}
}

// TestStrangersAreNotAnswered sends another prefix, and then the right one.
func TestStrangersAreNotAnswered(t *testing.T) {
	p := &Phase{}
	near, far := connectPair(t, p, []byte("guess"), []byte("token"), false)
	ended := make(chan error, 1)
	go func() { ended <- far.Run(-1) }()
	if err := near.Run(-1); !errors.Is(err, ErrRefused) && !isReset(err) {
		t.Errorf("a wrong prefix: %v", err)
	}
	p.Set(Stopped)
	far.Wake()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if n := far.Transactions.Load(); n != 0 {
		t.Errorf("%d answered", n)
	}
}

// isReset reports whether an error is that of a connection closed with unread data.
func isReset(err error) bool {
	var op *net.OpError
	return err != nil && !errors.As(err, &op) &&
		slices.Contains([]string{"receive response: connection reset by peer", "receive response: broken pipe"},
			err.Error())
}
