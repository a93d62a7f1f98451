package datagram

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/kernel/sys"
)

// TestSingleReceiverNaps lets a receiver with one message per call nap while messages arrive fast,
// until a nap brought nothing, and sleep in the socket then.
func TestSingleReceiverNaps(t *testing.T) {
	var ends [2]*Socket
	// Not a port that the kernel assigns: it could give that to another process meanwhile.
	home := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(testenv.FreePorts(t, 1)))
	first, err := sys.OpenDatagram(home, netip.AddrPortFrom(home.Addr(), 9), sys.DatagramOptions{})
	if err != nil {
		t.Fatal(err)
	}
	at, err := sys.LocalAddress(first)
	if err != nil {
		t.Fatal(err)
	}
	if ends[1], err = Dial(at, SocketOptions{}); err != nil {
		t.Fatal(err)
	}
	defer ends[1].Close()
	_ = sys.Close(first) // its port is free for a socket that knows the other end
	if ends[0], err = Connected(at, ends[1].LocalAddr(), SocketOptions{}); err != nil {
		t.Fatal(err)
	}
	defer ends[0].Close()
	in, _, err := ends[0].newInbox(ReceiveOptions{Bytes: 64, Batch: BatchSingle})
	if err != nil {
		t.Fatal(err)
	}
	expect := func(step string, messages int, hot bool) {
		t.Helper()
		n, err := in.receive()
		if n != messages || n == 0 != errors.Is(err, sys.ErrTimeout) || in.hot != hot {
			t.Errorf("%s: %d messages, %v, hot %v", step, n, err, in.hot)
		}
	}
	send := func() {
		t.Helper()
		if err := ends[1].Send(make([]byte, 64)); err != nil {
			t.Fatal(err)
		}
	}
	var now time.Duration
	in.clock = func() time.Duration { return now }
	in.hot = true
	send()
	expect("a message", 1, true)
	expect("all taken, so a nap", 0, true)
	send()
	expect("the nap brought one", 1, true)
	expect("a nap again", 0, true)
	expect("it brought nothing", 0, false)
	send()
	expect("from sleep", 1, false)

	// The count of messages, and the clock, decide about the next ones.
	in.singles, now = manySingles-1, manyTime
	send()
	expect("too slow", 1, false)
	in.singles, now = manySingles-1, 2*manyTime-time.Nanosecond
	send()
	expect("fast", 1, true)
}
