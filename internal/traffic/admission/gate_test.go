package admission

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// clock is a gate's clock that the test moves.
type clock struct{ at time.Duration }

func newTestGate(l Limits) (*Gate, *clock) {
	g, c := New(l), &clock{at: 1}
	g.testNow = func() time.Duration { return c.at }
	return g, c
}

var (
	alice = netip.MustParseAddr("192.0.2.1")
	bob   = netip.MustParseAddr("192.0.2.2")
)

// v4 is the i-th of four billion addresses.
func v4(i uint32) netip.Addr {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], i)
	return netip.AddrFrom4(b)
}

func mustEnter(t *testing.T, g *Gate, from netip.Addr) *Visit {
	t.Helper()
	v, err := g.Enter(from)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestIdleTestsGiveTheirPlaceAway fills a gate with tests of as many sources that move nothing. A
// client gets the place of the one that has been idle for longest; one that moves something keeps
// its own, and so does a client that holds the key.
func TestIdleTestsGiveTheirPlaceAway(t *testing.T) {
	g, c := newTestGate(Limits{Clients: 3, ClientsPerSource: 2})
	key, err := g.EnterKnown(v4(9))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(map[int]int)
	var visits []*Visit
	for i := range 3 {
		v := mustEnter(t, g, v4(uint32(i)))
		v.OnLoss(func() { ended[i]++ })
		visits = append(visits, v)
		c.at += time.Second
	}
	if _, err := g.Enter(alice); err == nil {
		t.Error("a place was taken from a test that had just begun")
	}
	c.at += idleAfter
	for range 2 {
		if err := visits[0].Spend(1); err != nil {
			t.Error(err)
		}
	}
	first := mustEnter(t, g, alice)
	if ended[1] != 1 || len(ended) != 1 {
		t.Errorf("ended %v, want the oldest that is idle", ended)
	}
	var over *BudgetError
	if err := visits[1].Spend(1); !errors.As(err, &over) {
		t.Errorf("the test that lost its place goes on: %v", err)
	}
	late := false
	visits[1].OnLoss(func() { late = true })
	if visits[1].Leave(); !late {
		t.Error("nothing ends what registers late")
	}
	second := mustEnter(t, g, alice)
	// A third place of one source is refused before another test loses its own.
	c.at += idleAfter
	if _, err := g.Enter(alice); err == nil || ended[0] != 0 {
		t.Errorf("%v, ended %v", err, ended)
	}
	if err := key.Spend(1); err != nil {
		t.Error(err)
	}
	for _, v := range append(visits, first, second, key) {
		v.Leave()
	}
	if g.clients != [classes]int{} || len(g.idlers) != 0 {
		t.Errorf("left behind: %v, %d", g.clients, len(g.idlers))
	}
}

// TestTricklesGiveTheirPlaceAway fills a gate with tests that move a byte every four seconds. They
// keep their places for half a minute, and a test with a real rate keeps its own.
func TestTricklesGiveTheirPlaceAway(t *testing.T) {
	g, c := newTestGate(Limits{Clients: 3})
	var visits []*Visit
	for i := range 3 {
		visits = append(visits, mustEnter(t, g, v4(uint32(i))))
	}
	ended := make(map[int]bool)
	for i, v := range visits {
		v.OnLoss(func() { ended[i] = true })
	}
	for c.at < 40*time.Second {
		c.at += 4 * time.Second
		for i, v := range visits {
			n := int64(1)
			if i == 1 {
				n = 4 * trickle
			}
			_ = v.Spend(n) // a lost place shows below
		}
		if v, err := g.Enter(alice); err == nil {
			if c.at < trickleAfter {
				t.Errorf("a place was taken after %v", c.at)
			}
			v.Leave()
		}
	}
	if !ended[0] && !ended[2] || ended[1] {
		t.Errorf("ended: %v", ended)
	}
}

func TestEnterCountsClientsAndSources(t *testing.T) {
	g, _ := newTestGate(Limits{Clients: 3, ClientsPerSource: 2})
	first := mustEnter(t, g, alice)
	mustEnter(t, g, alice)
	_, err := g.Enter(alice)
	var busy *BusyError
	if !errors.As(err, &busy) || busy.From != alice || !strings.Contains(err.Error(), "2 tests of this source") {
		t.Errorf("third visit of one source: %v", err)
	}
	mustEnter(t, g, bob)
	if _, err := g.Enter(v4(9)); !errors.As(err, &busy) || !strings.Contains(err.Error(), "3 tests are being served") {
		t.Errorf("fourth client: %v", err)
	}
	first.Leave()
	first.Leave()
	mustEnter(t, g, v4(9))
	if _, err := g.Enter(v4(10)); err == nil {
		t.Error("a second Leave freed a second place")
	}
}

func TestSourcesAreNetworksOfIPv6(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"192.0.2.1", "::ffff:192.0.2.1", true},
		{"192.0.2.1", "192.0.2.2", false},
		{"2001:db8::1", "2001:db8::ffff:1:2:3", true},
		{"2001:db8::1", "2001:db8:0:1::1", true}, // another network of the same site
		{"2001:db8::1", "2001:db8:1::1", false},
		{"fe80::1%eth0", "fe80::2%eth1", true},
		{"::1", "192.0.2.1", false},
	} {
		if got := sourceOf(netip.MustParseAddr(c.a)) == sourceOf(netip.MustParseAddr(c.b)); got != c.same {
			t.Errorf("%s and %s one source: %v", c.a, c.b, got)
		}
	}
	if sourceOf(netip.Addr{}) == sourceOf(alice) {
		t.Error("no address is an address")
	}
}

func TestSpendEndsAVisit(t *testing.T) {
	g, c := newTestGate(Limits{Bytes: 100, SourceBytes: 150, SourceWindow: time.Minute, Duration: 10 * time.Second})
	v := mustEnter(t, g, alice)
	if err := v.Spend(100); err != nil || v.Left() != 0 {
		t.Errorf("exactly the bytes of a test: %v, %d left", err, v.Left())
	}
	var over *BudgetError
	if err := v.Spend(1); !errors.As(err, &over) ||
		!strings.Contains(err.Error(), "100 bytes that this host allows per test") {
		t.Errorf("one more: %v", err)
	}
	v.Leave()
	v = mustEnter(t, g, alice)
	if v.Left() != 49 {
		t.Errorf("the next test of the source has %d bytes", v.Left())
	}
	if err := v.Spend(50); !errors.As(err, &over) || !strings.Contains(err.Error(), "a source per 1m0s") {
		t.Errorf("over the source's bytes: %v", err)
	}
	v.Leave()
	var busy *BusyError
	if _, err := g.Enter(alice); !errors.As(err, &busy) || busy.RetryAfter != time.Minute {
		t.Errorf("a source without bytes: %v", err)
	}
	mustEnter(t, g, bob).Leave()
	c.at += time.Minute
	v = mustEnter(t, g, alice)
	if v.Left() != 100 {
		t.Errorf("%d bytes in a new window", v.Left())
	}
	c.at += 10 * time.Second
	if err := v.Spend(0); !errors.As(err, &over) || !strings.Contains(err.Error(), "10s") {
		t.Errorf("after its time: %v", err)
	}
	// Counts never overflow, even if a server claims to have moved that much.
	if err := v.Spend(math.MaxInt64); err == nil || v.Spend(math.MaxInt64) == nil || v.Left() != 0 {
		t.Error("bytes wrapped")
	}
}

func TestPauseKeepsTheRate(t *testing.T) {
	g, c := newTestGate(Limits{BitsPerSecond: 8e6}) // a byte per microsecond
	v := mustEnter(t, g, alice)
	// Half a second of silence is no credit beyond the burst.
	c.at += 500 * time.Millisecond
	began, moved := c.at, int64(0)
	for c.at < began+10*time.Second {
		if err := v.Spend(1500); err != nil {
			t.Fatal(err)
		}
		moved += 1500
		c.at += v.Pause()
	}
	if limit := int64(1e6*10 + 1e5 + 1500); moved > limit || moved < 1e6*10-1500 {
		t.Errorf("%d bytes in 10 s at 1 MB/s", moved)
	}
	free, _ := newTestGate(Limits{})
	if v := mustEnter(t, free, alice); v.Spend(1e11) != nil || v.Pause() != 0 {
		t.Error("a rate that the limits do not have")
	}
}

func TestLimitsHaveDefaultsAndCanBeLifted(t *testing.T) {
	d := New(Limits{}).Limits()
	if d.Clients != 16 || d.ClientsPerSource != 8 || d.Duration != 10*time.Minute || d.Bytes != 1e12 ||
		d.SourceBytes != 4e12 ||
		d.SourceWindow != time.Hour || !math.IsInf(d.BitsPerSecond, 1) || d.PacketsPerSecond != 200_000 {
		t.Errorf("defaults %+v", d)
	}
	g, c := newTestGate(Limits{
		Clients: Unlimited, ClientsPerSource: Unlimited, Duration: Unlimited, Bytes: Unlimited, SourceBytes: Unlimited,
		PacketsPerSecond: Unlimited,
	})
	for range 1000 {
		v := mustEnter(t, g, alice)
		if !v.Deadline().IsZero() {
			t.Fatal("an end to an unlimited visit")
		}
		c.at += 24 * time.Hour
		if err := v.Spend(1e15); err != nil {
			t.Fatal(err)
		}
	}
	for range 1000 {
		if !g.Allow(bob, 1e6, 1e9) {
			t.Fatal("unlimited packets refused")
		}
	}
	if d := mustEnter(t, New(Limits{Duration: time.Hour}), alice).Deadline(); time.Until(d) > time.Hour ||
		time.Until(d) < 59*time.Minute {
		t.Errorf("deadline %v", d)
	}
}

// TestStrangersTakeNoPlaceOfKeyHolders fills a gate with strangers of every address, including the
// key holder's.
func TestStrangersTakeNoPlaceOfKeyHolders(t *testing.T) {
	g, _ := newTestGate(Limits{Clients: 3, ClientsPerSource: 2, SourceBytes: 1000})
	visits := []*Visit{mustEnter(t, g, alice), mustEnter(t, g, alice), mustEnter(t, g, bob)}
	for i := range 2 {
		v, err := g.EnterKnown(alice)
		if err != nil {
			t.Fatalf("key holder %d: %v", i, err)
		}
		visits = append(visits, v)
	}
	var busy *BusyError
	if _, err := g.EnterKnown(alice); !errors.As(err, &busy) ||
		!strings.Contains(err.Error(), "2 tests of this source") {
		t.Errorf("a third one with the key: %v", err)
	}
	// Bytes have no class: the address has moved them.
	_ = visits[0].Spend(1001) // a BudgetError, as intended here
	for _, v := range visits {
		v.Leave()
	}
	if _, err := g.EnterKnown(alice); !errors.As(err, &busy) || busy.RetryAfter == 0 {
		t.Errorf("with the bytes used up: %v", err)
	}
	if g.clients != [classes]int{} {
		t.Errorf("%v clients left behind", g.clients)
	}
}

// TestMovedBytesAreBounded plays random visits of few sources and checks the promise: no source
// moves more in a window than its limit and the excess of one Spend.
func TestMovedBytesAreBounded(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const chunk, limit = 100, 1000
	window := time.Minute
	g, c := newTestGate(Limits{Clients: 3, Bytes: 700, SourceBytes: limit, SourceWindow: window})
	type ledger struct {
		from  time.Duration
		moved int64
	}
	sources := make(map[netip.Addr]*ledger)
	var open []*Visit
	for range 100_000 {
		c.at += time.Duration(r.Int64N(int64(window / 50)))
		switch from := v4(r.Uint32N(5)); r.IntN(3) {
		case 0:
			if v, err := g.Enter(from); err == nil {
				open = append(open, v)
				v.OnLoss(func() { open = slices.DeleteFunc(open, func(o *Visit) bool { return o == v }) })
			}
		case 1:
			if len(open) > 0 {
				i := r.IntN(len(open))
				open[i].Leave()
				open = append(open[:i], open[i+1:]...)
			}
		default:
			if len(open) == 0 {
				continue
			}
			v := open[r.IntN(len(open))]
			n := r.Int64N(chunk) + 1
			if v.Left() < n {
				continue // an honest server asks first
			}
			l := sources[v.from]
			if l == nil || c.at >= l.from+window {
				l = &ledger{from: c.at}
				sources[v.from] = l
			}
			if err := v.Spend(n); err != nil {
				t.Fatal(err)
			}
			if l.moved += n; l.moved > limit {
				t.Fatalf("%v moved %d bytes in a window", v.from, l.moved)
			}
		}
		if len(open) > 3 {
			t.Fatalf("%d clients", len(open))
		}
	}
}

// TestMemoryIsBounded has a hundred thousand sources, many times what the gate remembers, use both
// ways in.
func TestMemoryIsBounded(t *testing.T) {
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	g, c := newTestGate(Limits{Clients: 4})
	honest := mustEnter(t, g, alice)
	if err := honest.Spend(1); err != nil {
		t.Fatal(err)
	}
	for i := range uint32(100_000) {
		g.Allow(v4(i), 1, 64)
		// One in sixteen has a real address as well; a full table makes entering slower.
		if i%16 == 0 {
			v := mustEnter(t, g, v4(i))
			if i%32 == 0 {
				if err := v.Spend(int64(i)); err != nil {
					t.Fatal(err)
				}
			}
			v.Leave()
		}
		c.at += time.Microsecond
	}
	if n := len(g.sources); n > maxSources {
		t.Errorf("%d sources remembered", n)
	}
	if _, ok := g.sources[sourceOf(alice)]; !ok {
		t.Error("a source was forgotten during its visit")
	}
	if after := heap(); after > before+2<<20 {
		t.Errorf("%d bytes more than before", after-before)
	}
	runtime.KeepAlive(g)
}

func TestGateUnderRace(t *testing.T) {
	g, _ := newTestGate(Limits{Clients: 8, ClientsPerSource: 4}) // whose clock stands still: no visit is idle
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			from := v4(uint32(i % 3))
			for range 500 {
				g.Allow(from, 1, 100)
				v, err := g.Enter(from)
				if err != nil {
					continue
				}
				if err := v.Spend(10); err != nil {
					t.Error(err)
				}
				_, _, _ = v.Left(), v.Pause(), v.Deadline()
				v.Leave()
				v.Leave()
			}
		})
	}
	wg.Wait()
	if g.clients != [classes]int{} {
		t.Errorf("%v clients left behind", g.clients)
	}
}

func TestBytesText(t *testing.T) {
	for n, want := range map[int64]string{0: "0 bytes", 999: "999 bytes", 1000: "1 kB", 1_500_000: "1.5 MB",
		4e12: "4 TB", 999_999: "1 MB", math.MaxInt64: "9.223 EB"} {
		if got := bytesText(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestPauseNeverWraps(t *testing.T) {
	g, _ := newTestGate(Limits{BitsPerSecond: 1, Bytes: Unlimited, SourceBytes: Unlimited})
	v := mustEnter(t, g, alice)
	for range 10 {
		if err := v.Spend(math.MaxInt64); err != nil || v.Pause() < 24*time.Hour {
			t.Fatalf("%v, pause %v", err, v.Pause())
		}
	}
}
