package wire

import (
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

// TestQueueOfHandshakes fills every place of a listener with connections of as many addresses, each
// of which stops in the middle of its handshake. The last one gets its turn while an honest peer
// still waits for it.
func TestQueueOfHandshakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &Listener{closed: make(chan struct{})}
		began := time.Now()
		var took time.Duration
		for i := range maxHalfOpen {
			a := netip.AddrFrom4([4]byte{192, 0, byte(i >> 8), byte(i)})
			h := &halfOpen{conn: new(net.TCPConn), source: Source(a), crowd: crowdOf(a)}
			l.half = append(l.half, h)
			if i < maxHalfOpen-1 {
				go func() { _ = l.awaitHandshake(h) }()
				synctest.Wait()
				time.Sleep(time.Microsecond) // the tickers of connections differ
				continue
			}
			if err := l.awaitHandshake(h); err != nil {
				t.Error(err)
			}
			took = time.Since(began)
		}
		if took > handshakeTimeout-time.Second {
			t.Errorf("the last of %d connections waited for %v", maxHalfOpen, took)
		}
		close(l.closed)
	})
}

// TestOneSiteIsOneCrowd counts the networks of one IPv6 site as one, and hosts of IPv4 each.
func TestOneSiteIsOneCrowd(t *testing.T) {
	of := func(a string) netip.Prefix { return crowdOf(netip.MustParseAddr(a)) }
	if of("2001:db8:1:1::1") != of("2001:db8:1:ffff::2") || of("2001:db8:1::1") == of("2001:db8:2::1") {
		t.Error("a /48 is not one crowd")
	}
	if of("192.0.2.1") == of("192.0.2.2") || of("192.0.2.1") != of("::ffff:192.0.2.1") ||
		of("fe80::1%lo") != of("fe80::2") {
		t.Error("hosts are not apart")
	}
}
