package watch

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/kernel/nl/sockdiag"
	"github.com/linerate/linerate/internal/kernel/sys"
)

// gatherer is a second reading after a first of nothing.
func gatherer(n int) *gathering {
	return gather(&marks{connections: make(map[uint64]mark), drops: make(map[uint64]uint32)}, n)
}

func connection(cookie, acked, received uint64) *sockdiag.Socket {
	return &sockdiag.Socket{Cookie: cookie, Info: sys.TCPInfo{Length: 248, BytesAcked: acked, BytesReceived: received}}
}

// TestConnections: of connections that were there the difference counts, of new ones everything,
// and a stalled one is as good as a fast one.
func TestConnections(t *testing.T) {
	g := gatherer(3)
	old := connection(1, 1e9, 50)
	old.Memory.Drops, old.Info.TotalRTO, old.Info.TotalRetrans = 1<<32-2, 1<<16-1, 1<<32-3
	g.marks.connections[1] = markOf(old)
	g.marks.connections[2] = markOf(connection(2, 5e9, 0))
	g.marks.connections[3] = markOf(connection(3, 0, 0))
	now := connection(1, 1e9+600, 50)
	now.Memory.Drops, now.Info.TotalRTO, now.Info.TotalRetrans = 1, 1, 7
	now.Info.BusyMicros, now.Info.RwndLimitedMicros, now.Info.LastDataSentMillis,
		now.Info.LastDataRecvMillis = 2_000_000, 1_920_000, 40, 9000
	stalled := connection(3, 0, 0)
	stalled.SendQueue, stalled.Info.NotSentBytes = 9000, 8000
	for _, s := range []*sockdiag.Socket{now, connection(2, 5e9, 0), stalled, connection(4, 10, 700),
		connection(5, 1, 0)} {
		g.connection(s)
	}
	var got []string
	for _, c := range g.connections.kept {
		r := c.report()
		got = append(got, fmt.Sprintf("%d new=%v sender=%v acked=%d received=%d waiting=%d/%d",
			r.Cookie, r.New, r.TCP.Sender, r.TCP.BytesAcked, r.TCP.BytesReceived, r.UnackedBytes, r.UnsentBytes))
	}
	want := []string{
		"3 new=false sender=true acked=0 received=0 waiting=9000/8000",
		"4 new=true sender=false acked=10 received=700 waiting=0/0",
		"1 new=false sender=true acked=600 received=0 waiting=0/0",
	}
	if d := cmp.Diff(want, got); d != "" || g.seen[2] != 5 {
		t.Errorf("%d seen (-want +got):\n%s", g.seen[2], d)
	}
	r := g.connections.kept[2].report()
	if r.Memory.Drops != 3 || r.Timeouts != 2 || r.TCP.RetransSegs != 10 || r.TCP.BusySeconds != 2 ||
		r.TCP.RwndLimitedSeconds != 1.92 || r.IdleSeconds != 0.04 {
		t.Errorf("through zero: %+v", r)
	}
}

// TestCut: what a first reading that was cut does not know may be new or old, and is left out.
func TestCut(t *testing.T) {
	g := gatherer(3)
	g.marks.cut = true
	g.connection(connection(1, 5, 5))
	g.datagram(&sockdiag.Socket{Cookie: 2, Memory: sockdiag.Memory{Drops: 5}})
	if len(g.connections.kept)+len(g.datagrams.kept) != 0 || g.seen != [3]int{0, 1, 1} {
		t.Errorf("kept %+v %+v, seen %v", g.connections.kept, g.datagrams.kept, g.seen)
	}
}

func TestListenersAndDatagrams(t *testing.T) {
	g := gatherer(2)
	g.marks.drops[1], g.marks.drops[2] = 10, 0
	at := func(port uint16) netip.AddrPort { return netip.AddrPortFrom(netip.IPv4Unspecified(), port) }
	for _, s := range []sockdiag.Socket{
		{Cookie: 1, Local: at(1), ReceiveQueue: 1, SendQueue: 128, Memory: sockdiag.Memory{Drops: 10}},
		{Cookie: 2, Local: at(2), ReceiveQueue: 0, SendQueue: 128, Memory: sockdiag.Memory{Drops: 4}},
		{Cookie: 3, Local: at(3), ReceiveQueue: 3, SendQueue: 0},
	} {
		g.listener(&s)
	}
	want := []Listener{{Cookie: 2, Local: at(2), Limit: 128, Drops: 4}, {Cookie: 3, Local: at(3), Queued: 3}}
	compare := cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })
	if d := cmp.Diff(want, g.listeners.kept, compare); d != "" {
		t.Errorf("listeners (-want +got):\n%s", d)
	}
	g.marks.drops[4] = 7
	for _, s := range []sockdiag.Socket{
		{Cookie: 4, Local: at(4), Memory: sockdiag.Memory{Drops: 7}}, // neither holds nor dropped
		{Cookie: 5, Local: at(5), Memory: sockdiag.Memory{Receive: 900}},
		{Cookie: 6, Local: at(6), Memory: sockdiag.Memory{Drops: 1}},
		{Cookie: 7, Local: at(7), Memory: sockdiag.Memory{Send: 1}},
	} {
		g.datagram(&s)
	}
	wantUDP := []Datagram{{Cookie: 6, Local: at(6), New: true, Memory: Memory{Drops: 1}},
		{Cookie: 5, Local: at(5), New: true, Memory: Memory{ReceiveBytes: 900}}}
	if d := cmp.Diff(wantUDP, g.datagrams.kept, compare); d != "" {
		t.Errorf("datagram sockets (-want +got):\n%s", d)
	}
}

// TestBest: the same as sorting all of them, whatever the order in which they come.
func TestBest(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		b := best[int]{n: 1 + r.IntN(8), order: func(a, b int) int { return b - a }}
		for _, v := range r.Perm(r.IntN(40)) {
			b.put(v)
		}
		for i, v := range b.kept {
			if i > 0 && v != b.kept[i-1]-1 || len(b.kept) > b.n {
				t.Fatalf("seed %d: kept %v of at most %d", seed, b.kept, b.n)
			}
		}
	}
}
