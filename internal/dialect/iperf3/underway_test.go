package iperf3

import (
	"encoding/json"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/datagram"
	"github.com/linerate/linerate/internal/traffic/engine"
)

// TestDatagramsUnderWay has what a stream sent and what the far end counted. Datagrams after the
// highest number that arrived are lost if they had the time to arrive, and otherwise do not count.
func TestDatagramsUnderWay(t *testing.T) {
	for name, c := range map[string]struct {
		sent    datagram.Sent
		far     streamResult
		settled int64
		want    sentDatagrams
	}{
		"everything arrived": {
			datagram.Sent{Packets: 1000, AllPackets: 1000}, streamResult{Packets: 1000}, 900,
			sentDatagrams{sent: 1000, received: 1000},
		},
		"some still under way": {
			datagram.Sent{Packets: 1000, AllPackets: 1000}, streamResult{Packets: 980}, 900,
			sentDatagrams{sent: 980, received: 980},
		},
		"gaps, and some under way": {
			datagram.Sent{Packets: 1000, AllPackets: 1000}, streamResult{Packets: 980, Errors: 7}, 900,
			sentDatagrams{sent: 980, received: 973, lost: 7},
		},
		"nothing of the last half": {
			datagram.Sent{Packets: 1000, AllPackets: 1000}, streamResult{Packets: 500}, 900,
			sentDatagrams{sent: 900, received: 500, lost: 400},
		},
		"nothing at all": {
			datagram.Sent{Packets: 1000, AllPackets: 1000}, streamResult{}, 900,
			sentDatagrams{sent: 1000, lost: 1000},
		},
		"shorter than the time to arrive": {
			datagram.Sent{Packets: 10, AllPackets: 10}, streamResult{Packets: 8}, 0,
			sentDatagrams{sent: 8, received: 8},
		},
		"a warm-up that lost some": {
			datagram.Sent{Packets: 1000, AllPackets: 1500},
			streamResult{Packets: 1490, Errors: 30, OmittedErrors: 20}, 1400,
			sentDatagrams{sent: 990, received: 980, lost: 10},
		},
		"duplicates": {
			datagram.Sent{Packets: 1000, AllPackets: 1000}, streamResult{Packets: 1000, Errors: -5}, 900,
			sentDatagrams{sent: 1000, received: 1000},
		},
	} {
		if got := judgeSent(c.sent, c.far, c.settled); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestRecentCountsAreBounded takes notes of a long test.
func TestRecentCountsAreBounded(t *testing.T) {
	r := sentRecently{span: underWay}
	w := &engine.Worker{}
	end := 10 * time.Second
	for now := time.Duration(0); now < end; now += time.Millisecond {
		w.Packets.Store(now.Milliseconds())
		r.note(now, []*flow{{worker: w}})
	}
	if most := int(underWay/noteEvery) + 2; len(r.moments) > most {
		t.Errorf("%d moments are remembered, want %d at most", len(r.moments), most)
	}
	then := time.Duration(r.settled(0, end)) * time.Millisecond
	if old := end - then; old < underWay || old > underWay+2*noteEvery {
		t.Errorf("the settled count is %v old, want %v and little more", old, underWay)
	}
	if got := (sentRecently{span: underWay}).settled(0, end); got != 0 {
		t.Errorf("without notes: %d", got)
	}
}

// TestFarEndThatStopsAtOnce plays a server that does what the program does: at TEST_END it stops to
// count, whatever is in its socket. What it had not read by then was under way, and not lost.
func TestFarEndThatStopsAtOnce(t *testing.T) {
	t.Parallel()
	addr := stoppingServer(t, 100, 3)
	spec, err := traffic.Spec{Test: traffic.UDP, Bytes: 100 * 100, RateBitsPerSec: 1e6, PacketBytes: 100}.Normalize()
	if err != nil {
		t.Fatal(err)
	}
	p, err := paramsOf(spec)
	if err != nil {
		t.Fatal(err)
	}
	// However late this test's threads run: all of it is recent.
	c := &client{spec: spec, progress: func(traffic.Interval) {}, cookie: newCookie(),
		recent: sentRecently{span: time.Hour}}
	c.load.p = p
	r, err := c.run(t.Context(), addr.String())
	if err != nil {
		t.Fatal(err)
	}
	if r.UDP.Lost != 0 || r.UDP.Received != 97 || r.UDP.Sent != 97 {
		t.Errorf("sent %d, received %d, lost %d; want 97, 97 and none", r.UDP.Sent, r.UDP.Received, r.UDP.Lost)
	}
}

// stoppingServer answers one UDP test of one stream, of all datagrams. It reports that it had not
// read the last ones when the test ended.
func stoppingServer(t *testing.T, all, unread int64) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	addr := l.Addr().(*net.TCPAddr).AddrPort()
	u, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(addr))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = u.Close() })
	var got atomic.Int64
	go func() {
		p := make([]byte, 2000)
		for {
			n, from, err := u.ReadFromUDPAddrPort(p)
			switch {
			case err != nil:
				return
			case isHello(p[:n]):
				_, _ = u.WriteToUDPAddrPort(reply, from)
			default:
				got.Add(1)
			}
		}
	}()
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		c := control{conn: conn}
		if _, err := readCookie(conn); err != nil {
			t.Error(err)
			return
		}
		_ = c.writeState(paramExchange, time.Minute)
		if _, err := c.readMessage(maxServerResultsBytes, time.Minute); err != nil {
			t.Error(err)
			return
		}
		for _, s := range []state{createStreams, testStart, testRunning} {
			_ = c.writeState(s, time.Minute)
		}
		if s, err := c.readState(time.Minute); s != testEnd {
			t.Errorf("%v, %v; want the end of the test", s, err)
			return
		}
		for got.Load() < all { // the test's own limit ends this
			time.Sleep(time.Millisecond)
		}
		counted := all - unread
		_ = c.writeState(exchangeResults, time.Minute)
		if _, err := c.readMessage(maxServerResultsBytes, time.Minute); err != nil {
			t.Error(err)
			return
		}
		body, _ := json.Marshal(results{HasRetransmits: -1, Streams: []streamResult{
			{ID: 1, Bytes: counted * 100, Retransmits: -1, Packets: counted, EndSeconds: 0.3},
		}})
		_ = c.writeMessage(body, time.Minute)
		_ = c.writeState(displayResults, time.Minute)
		_, _ = c.readState(time.Minute)
	}()
	return addr
}
