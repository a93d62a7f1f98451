package cards

import (
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/traffic"
)

// throttled is what QEMU's 82540EM shows with InterruptThrottleRate=500 at both ends: 858
// transactions a second instead of 2538, echoes of 0.56 ms with pauses and 0.39 ms at best, 500
// interrupts a second, and as many under a stream of 8000 frames a second. irq are the interrupts
// per second during the transactions, and under the stream.
func throttled(rate, irq, streamed float64) *evidence.Case {
	old := gigabit(func(x *host.Interface) { x.Driver, x.Interrupts[0].Name = "e1000", "eth0" })
	c := transactions(old, old, rate)
	c.Runs[0].RTT = &stats.Latencies{Count: 20, Min: 0.39e-3, P50: 0.56e-3, Mean: 0.58e-3, Max: 1e-3}
	count := func(r *evidence.Run, perSecond, frames float64) {
		n := counts{"irq.40": uint64(perSecond * r.DurationSeconds), "rx_packets": uint64(frames * r.DurationSeconds)}
		r.Ends.Local.Counters, r.Ends.Remote.Counters = n.of("eth0"), n.of("eth0")
	}
	c.Runs[1].Streams = 1
	count(&c.Runs[1], irq, rate)
	if streamed > 0 {
		s := evidence.Run{Test: traffic.Stream, Direction: traffic.Up, Streams: 1, DurationSeconds: 3,
			ThroughputBitsPerSec: 95e6}
		s.Ends.Local.CPUs, s.Ends.Remote.CPUs = idle(), idle()
		count(&s, streamed, 8000)
		c.Runs = append(c.Runs, s)
	}
	return c
}

func TestHiddenTimer(t *testing.T) {
	change := func(c *evidence.Case, f func(c *evidence.Case)) *evidence.Case { f(c); return c }
	for _, c := range []struct {
		name string
		c    *evidence.Case
		want want
	}{
		{"fewer interrupts than transactions", throttled(858, 500, 500),
			want{evidence.Warning, "take 1.17 ms, with a pause between an echo takes 560"}},
		{"without a stream to compare", throttled(858, 500, 0), want{evidence.Warning, "holds its interrupts back"}},
		{"one interrupt each, and no more under a stream", throttled(500, 500, 510), want{evidence.Warning, ""}},
		{"unthrottled", throttled(2538, 5100, 7000), want{}},
		{"slow for another reason: every frame interrupts", throttled(858, 1720, 6000), want{}},
		{"a shaper: one interrupt each, more under a stream", throttled(858, 860, 3000), want{}},
		{"busy polling: few interrupts, and quick", throttled(2538, 100, 100), want{}},
		{"the CPU is busy between", change(throttled(858, 500, 500), func(c *evidence.Case) {
			c.Runs[1].Ends.Remote.CPUs = full()
		}), want{}},
		{"a long path: echoes take as long", change(throttled(858, 500, 500), func(c *evidence.Case) {
			c.Runs[0].RTT.P50, c.Runs[0].RTT.Min = 1.1e-3, 1e-3
		}), want{}},
		{"a CPU that sleeps between spaced echoes", change(throttled(2538, 2000, 2000), func(c *evidence.Case) {
			c.Runs[0].RTT.P50 = 0.9e-3
		}), want{}},
		{"interrupts not counted", throttled(858, 0, 0), want{}},
		{"several connections at a time", change(throttled(858, 500, 500), func(c *evidence.Case) {
			c.Runs[1].Streams = 8
		}), want{}},
		{"software", change(throttled(858, 500, 500), func(c *evidence.Case) {
			c.Near.Interfaces[0].Virtual, c.Far.Interfaces[0].Virtual = true, true
		}), want{}},
		{"a driver that reports its delay, which is short", change(throttled(858, 500, 500), func(c *evidence.Case) {
			for _, h := range []*host.Snapshot{c.Near, c.Far} {
				h.Interfaces[0].Driver, h.Interfaces[0].Coalesce = "tg3", map[string]uint32{"rx-usecs": 20}
			}
		}), want{}},
		{"a stalled exchange, which takes longer than any timer", throttled(0.9, 0.5, 0), want{}},
	} {
		t.Run(c.name, func(t *testing.T) { check(t, moderationLatency(c.c), c.want) })
	}
	x := moderationLatency(throttled(858, 500, 500))
	if !strings.Contains(x.Remedy.Text, "options e1000 InterruptThrottleRate=3") || len(x.Remedy.Settings) > 0 {
		t.Errorf("remedy %+v", x.Remedy)
	}
}

// TestHiddenTimerOfEachFrame: QEMU's 82540EM waits for 128 µs after every interrupt, whatever its
// settings; recorded in a guest whose clock counts instructions.
func TestHiddenTimerOfEachFrame(t *testing.T) {
	recorded := func(change func(c *evidence.Case)) *evidence.Case {
		c := throttled(3889, 7915, 1900)
		c.Runs[0].RTT = &stats.Latencies{Count: 20, Min: 12.9e-6, P50: 17.4e-6, P90: 17.4e-6, Max: 20.5e-6}
		c.Runs[1].RTT = &stats.Latencies{Count: 3900, Min: 196e-6, P50: 256e-6, P90: 260e-6, P99: 263e-6}
		change(c)
		return c
	}
	for _, c := range []struct {
		name string
		c    *evidence.Case
		want want
	}{
		{"as recorded", recorded(func(*evidence.Case) {}), want{evidence.Warning, "take 257 µs"}},
		{"times that scatter", recorded(func(c *evidence.Case) { c.Runs[1].RTT.P90 = 400e-6 }), want{}},
		{"a shaper of 2 Mb/s", recorded(func(c *evidence.Case) { c.Runs[2].ThroughputBitsPerSec = 2e6 }), want{}},
		{"no stream", recorded(func(c *evidence.Case) { c.Runs = c.Runs[:2] }), want{}},
		{"only twice as slow", recorded(func(c *evidence.Case) { c.Runs[0].RTT.P50 = 110e-6 }), want{}},
		{"the CPUs are busy", recorded(func(c *evidence.Case) { c.Runs[1].Ends.Local.CPUs = full() }), want{}},
	} {
		t.Run(c.name, func(t *testing.T) { check(t, moderationLatency(c.c), c.want) })
	}
}

// TestHiddenTimerOfOneEnd: a throttle of 500 at one end alone, recorded in a guest whose clock
// counts instructions. The interrupts under the stream are few, because that end polls then.
func TestHiddenTimerOfOneEnd(t *testing.T) {
	recorded := func(change func(c *evidence.Case)) *evidence.Case {
		c := throttled(367, 502, 108)
		c.Runs[0].RTT = &stats.Latencies{Count: 20, Min: 12e-6, P50: 12.1e-6, P90: 12.9e-6, Max: 14e-6}
		c.Runs[1].RTT = &stats.Latencies{Count: 367, Min: 1.57e-3, P50: 2.015e-3, P90: 4.016e-3, P99: 4.018e-3}
		for _, r := range []struct {
			r   *evidence.Run
			irq float64
		}{{&c.Runs[1], 753}, {&c.Runs[2], 3585}} {
			r.r.Ends.Local.Counters = counts{"irq.40": uint64(r.irq * r.r.DurationSeconds),
				"rx_packets": uint64(64 * r.irq * r.r.DurationSeconds)}.of("eth0")
		}
		change(c)
		return c
	}
	for _, c := range []struct {
		name string
		c    *evidence.Case
		want want
	}{
		{"as recorded", recorded(func(*evidence.Case) {}), want{evidence.Warning, "(far) holds its interrupts back"}},
		{"two interrupts for each transaction", recorded(func(c *evidence.Case) {
			c.Runs[1].TransactionsPerSec = 251
		}), want{}},
		{"times between the ticks", recorded(func(c *evidence.Case) { c.Runs[1].RTT.P50 = 2.7e-3 }), want{}},
		{"a tail between the ticks", recorded(func(c *evidence.Case) { c.Runs[1].RTT.P90 = 5.1e-3 }), want{}},
		{"only twice as slow", recorded(func(c *evidence.Case) { c.Runs[0].RTT.P50 = 1.3e-3 }), want{}},
	} {
		t.Run(c.name, func(t *testing.T) { check(t, moderationLatency(c.c), c.want) })
	}
}
