package admission

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestBucketsKeepTheRate offers traffic at random times and checks every span of it against (t + 1)
// times the rate.
func TestBucketsKeepTheRate(t *testing.T) {
	for _, c := range []struct {
		limits  Limits
		packets float64 // per second, that a server may answer for one source
		bytes   float64
	}{
		{Limits{PacketsPerSecond: 100}, 100, 4e12 / 3600},
		{Limits{PacketsPerSecond: 1000, SourceBytes: 3600_000}, 1000, 1000},
		{Limits{PacketsPerSecond: 1e6, BitsPerSecond: 80_000}, 1e6, 10_000},
	} {
		r := rand.New(rand.NewPCG(3, 4))
		g, clock := newTestGate(c.limits)
		began := clock.at
		var packets, bytes float64
		for range 200_000 {
			clock.at += time.Duration(r.Int64N(int64(time.Millisecond)))
			n := 1 + r.IntN(3)
			if size := n * r.IntN(100); g.Allow(alice, n, size) {
				packets += float64(n)
				bytes += float64(size)
			}
		}
		seconds := (clock.at - began).Seconds()
		if packets > c.packets*(seconds+1)+1 || bytes > c.bytes*(seconds+1)+300 {
			t.Errorf("%+v: %.0f packets and %.0f bytes in %.1f s", c.limits, packets, bytes, seconds)
		}
		if packets < 0.9*c.packets*seconds && bytes < 0.9*c.bytes*seconds && packets < 200_000 {
			t.Errorf("%+v: only %.0f packets and %.0f bytes in %.1f s", c.limits, packets, bytes, seconds)
		}
	}
}

func TestAllowIsAllOrNone(t *testing.T) {
	g, c := newTestGate(Limits{PacketsPerSecond: 10})
	if g.Allow(alice, 0, 0) || g.Allow(alice, -1, 1) || g.Allow(alice, 1, -1) {
		t.Error("nonsense allowed")
	}
	if g.Allow(alice, 11, 11) {
		t.Error("more than a bucket holds")
	}
	if !g.Allow(alice, 10, 10) {
		t.Error("a refusal cost something")
	}
	if g.Allow(alice, 1, 1) || !g.Allow(bob, 1, 1) {
		t.Error("sources are not apart")
	}
	c.at += 100 * time.Millisecond
	if !g.Allow(alice, 1, 1) || g.Allow(alice, 1, 1) {
		t.Error("a tenth of a second is not worth one packet")
	}
}

func TestSlowRatesStillLetPacketsThrough(t *testing.T) {
	g, c := newTestGate(Limits{PacketsPerSecond: 0.1, Clients: 1})
	allowed := 0
	for range 1000 {
		if g.Allow(alice, 1, 64) {
			allowed++
		}
		c.at += 100 * time.Millisecond
	}
	if allowed < 9 || allowed > 11 {
		t.Errorf("%d packets in 100 s at one per ten", allowed)
	}
}

// TestForgedSourcesMintNothing floods a gate from ever new sources: all of them together get what
// Limits.Clients sources get.
func TestForgedSourcesMintNothing(t *testing.T) {
	g, c := newTestGate(Limits{PacketsPerSecond: 1000, Clients: 4})
	began, allowed := c.at, 0
	for i := range uint32(200_000) {
		if g.Allow(v4(i*2654435761), 1, 64) {
			allowed++
		}
		c.at += 10 * time.Microsecond
	}
	seconds := (c.at - began).Seconds()
	if limit := 4 * 1000 * (seconds + 1); float64(allowed) > limit+1 || float64(allowed) < limit-4000 {
		t.Errorf("%d packets in %.1f s", allowed, seconds)
	}
}

// TestASourceKeepsItsPlaceInAFlood measures what a steady source gets while forged ones come by,
// below the common limit.
func TestASourceKeepsItsPlaceInAFlood(t *testing.T) {
	g, c := newTestGate(Limits{PacketsPerSecond: 1000, Clients: 1000})
	r := rand.New(rand.NewPCG(5, 6))
	got := 0
	for range 5000 {
		if g.Allow(alice, 1, 64) {
			got++
		}
		for range 50 {
			g.Allow(v4(r.Uint32()), 1, 64)
		}
		c.at += time.Millisecond
	}
	if got < 4900 {
		t.Errorf("%d of 5000 packets answered", got)
	}
}

func TestAllowDoesNotAllocate(t *testing.T) {
	g := New(Limits{})
	g.Allow(alice, 1, 64)
	i := uint32(0)
	if n := testing.AllocsPerRun(1000, func() { i++; g.Allow(v4(i), 1, 64) }); n != 0 {
		t.Errorf("%v allocations per packet", n)
	}
}

func BenchmarkAllow(b *testing.B) {
	g := New(Limits{})
	for i := range uint32(b.N) {
		g.Allow(v4(i%1000), 1, 64)
	}
}
