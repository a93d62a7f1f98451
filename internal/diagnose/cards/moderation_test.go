package cards

import (
	"slices"
	"testing"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/watch"
	"github.com/linerate/linerate/internal/traffic"
)

// moderatedBy is a NIC of a driver with a value of rx-usecs.
func moderatedBy(driver string, usecs uint32) host.Interface {
	return gigabit(func(x *host.Interface) { x.Driver, x.Coalesce = driver, map[string]uint32{"rx-usecs": usecs} })
}

// transactions is a case with requests and responses between two hosts with those NICs at that
// rate.
func transactions(near, far host.Interface, rate float64) *evidence.Case {
	near.Addresses, far.Addresses = []string{"10.0.0.1/24"}, []string{"10.0.0.2/24"}
	a, b := snapshot(near), snapshot(far)
	a.Routes = []host.Route{{Destination: "10.0.0.0/24", Interface: near.Name}}
	b.Routes = []host.Route{{Destination: "10.0.0.0/24", Interface: far.Name}}
	r := evidence.Run{Test: traffic.RR, Streams: 1, DurationSeconds: 1, TransactionsPerSec: rate}
	r.Ends.Local.CPUs, r.Ends.Remote.CPUs = idle(), idle()
	ping := evidence.Run{Test: traffic.Ping, DurationSeconds: 1,
		RTT: &stats.Latencies{Count: 20, Min: 4e-5, P50: 1.2e-4, Mean: 1.2e-4, Max: 2e-4}}
	return &evidence.Case{Near: a, Far: b, Runs: []evidence.Run{ping, r}, NearAddress: "10.0.0.1",
		FarAddress: "10.0.0.2"}
}

func TestModerationLatency(t *testing.T) {
	plain := gigabit()
	deferred := gigabit(func(x *host.Interface) {
		x.Driver, x.NAPI = "virtio_net", &host.NAPI{DeferHardIRQs: 2, GROFlushTimeoutSeconds: 0.0002}
	})
	adaptive := gigabit(func(x *host.Interface) {
		x.Driver, x.Coalesce = "mlx5_core", map[string]uint32{"rx-usecs": 128, "adaptive-rx": 1}
	})
	for _, c := range []struct {
		name  string
		c     *evidence.Case
		want  want
		where string
	}{
		{"the plateau of the field notes", transactions(moderatedBy("e1000", 125), moderatedBy("e1000", 125), 8003.6),
			want{evidence.Warning, "8003.6 a second"}, "near"},
		{"one end alone", transactions(plain, moderatedBy("e1000", 125), 8003.6),
			want{evidence.Warning, "(far) delays its interrupts by 125"}, "far"},
		{"both waits one after the other", transactions(moderatedBy("e1000e", 1000), moderatedBy("e1000e", 1000), 498),
			want{evidence.Warning, ""}, "near"},
		{"gross, on a slow machine", transactions(moderatedBy("e1000", 2000), moderatedBy("e1000", 2000), 860),
			want{evidence.Warning, ""}, "near"},
		{"another driver", transactions(moderatedBy("tg3", 200), plain, 4500), want{evidence.Warning, ""}, "near"},
		{"the kernel's own wait", transactions(deferred, plain, 4700), want{evidence.Warning, "by 200"}, "near"},
		{"mild: a part of it", transactions(moderatedBy("tg3", 100), plain, 4000), want{evidence.Notice, ""}, "near"},
		{"a path of 10 ms", transactions(moderatedBy("e1000", 250), moderatedBy("e1000", 250), 96), want{}, ""},
		{"off: nothing waits", transactions(moderatedBy("e1000", 0), moderatedBy("e1000", 0), 23975), want{}, ""},
		{"done before the wait is over", transactions(moderatedBy("tg3", 1000), plain, 9000), want{}, ""},
		{"what drivers wait as they come", transactions(moderatedBy("tg3", 20), moderatedBy("tg3", 20), 14000),
			want{}, ""},
		{"a mode that is no time", transactions(moderatedBy("igb", 3), plain, 9500), want{evidence.Notice, ""}, "near"},
		{"a mode on a path of milliseconds", transactions(moderatedBy("igb", 3), moderatedBy("igb", 3), 900),
			want{}, ""},
		{"adaptive", transactions(adaptive, adaptive, 7000), want{}, ""},
		{"not reported", transactions(plain, plain, 3000), want{}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := moderationLatency(c.c)
			check(t, x, c.want)
			if x != nil && x.Where != c.where {
				t.Errorf("at %s, want %s", x.Where, c.where)
			}
		})
	}
}

// TestModerationWithoutTransactions checks that an echo is the second best evidence, and that a
// setting alone gives a notice.
func TestModerationWithoutTransactions(t *testing.T) {
	c := transactions(moderatedBy("e1000", 125), moderatedBy("e1000", 125), 0)
	check(t, moderationLatency(c), want{evidence.Warning, "and a request and its response take 120"})
	// Stalls took half of the time: the median shows what the other transactions took.
	c = transactions(moderatedBy("e1000", 2000), moderatedBy("e1000", 2000), 50)
	c.Runs[1].RTT = &stats.Latencies{Count: 50, Min: 1e-3, P50: 2.85e-3, Mean: 2e-2, Max: 0.3}
	check(t, moderationLatency(c), want{evidence.Warning, "take 2.85 ms"})
	// QEMU's e1000 lets many through at once: the median is no evidence, but the mean is, because
	// the fastest echo takes 18 µs and the CPUs are idle.
	c = transactions(moderatedBy("e1000", 3), moderatedBy("e1000", 2000), 1541.7)
	c.Runs[0].RTT.Min, c.Runs[1].RTT = 1.8e-5,
		&stats.Latencies{Count: 1541, Min: 4e-5, P50: 2.51e-4, Mean: 6.5e-4, Max: 4e-3}
	check(t, moderationLatency(c), want{evidence.Warning, "NIC eth0 (far) delays its interrupts by 2.00 ms"})
	// A delayed acknowledgement takes far longer than any of these delays.
	c = transactions(moderatedBy("e1000", 125), moderatedBy("e1000", 125), 24.4)
	check(t, moderationLatency(c), want{})
	c.Runs = nil
	for _, alone := range []struct {
		x    host.Interface
		want want
	}{
		{moderatedBy("e1000", 1000), want{evidence.Notice, "delays its interrupts by 1"}},
		{moderatedBy("e1000", 125), want{}},
		{moderatedBy("e1000e", 3), want{}},
	} {
		c.Watched = []evidence.Span{*watched(alone.x, halfGigabit)}
		check(t, moderationLatency(c), alone.want)
		c.Watched = []evidence.Span{*watched(alone.x, halfGigabit, sinceBoot)}
		check(t, moderationLatency(c), alone.want)
	}
}

// TestModerationRemedy checks that both ends that wait get shorter delays as candidates, except the
// NIC that is known to hang with them.
func TestModerationRemedy(t *testing.T) {
	near := moderatedBy("e1000", 125)
	near.Card = &host.Card{PCIID: "8086:1075"} // 82547
	x := moderationLatency(transactions(near, moderatedBy("tg3", 100), 7000))
	if x == nil || len(x.Remedy.Settings) != 2 {
		t.Fatalf("%+v", x)
	}
	first, second := x.Remedy.Settings[0], x.Remedy.Settings[1]
	if first.Side != "near" || slices.Contains(first.Levels, knob.Value("0")) ||
		!slices.Contains(first.Levels, knob.Value("3")) {
		t.Errorf("82547: %+v", first)
	}
	if second.Side != "far" || !equal(second.Levels, "25", "0") {
		t.Errorf("tg3: %+v", second)
	}
}

func TestInterruptStorm(t *testing.T) {
	// 30 000 and 4000 interrupts per second; 500 Mb/s are 83 333 frames per second of both
	// directions.
	many, some := counts{"irq.40": 90_000}, counts{"irq.40": 12_000}
	small := counts{"rx_packets": 20_000, "tx_packets": 20_000, "rx_bytes": 2e6}
	observed := func(name string) func(*evidence.Span) {
		return func(s *evidence.Span) {
			s.Interrupts = []watch.CardInterrupt{{Interface: "eth0", Interrupt: host.Interrupt{Number: 40, Name: name},
				Total: 90_000}}
		}
	}
	for _, c := range []struct {
		name string
		span *evidence.Span
		want want
	}{
		{"many, and time to spare", watched(moderatedBy("tg3", 0), halfGigabit.with(many)),
			want{evidence.Notice, "interrupts 30"}},
		{"many, and a full processor", watched(moderatedBy("tg3", 0), halfGigabit.with(many), busy),
			want{evidence.Warning, "once for every 2.8 frames"}},
		{"loaded", watched(moderatedBy("tg3", 0), halfGigabit.with(many), busy, loadedBy(500e6, 0, traffic.Down)),
			want{evidence.Warning, ""}},
		{"the link is full all the same", watched(moderatedBy("tg3", 0), halfGigabit.with(many), busy,
			loadedBy(941e6, 0, traffic.Down)), want{evidence.Notice, ""}},
		{"watched interrupts", watched(moderatedBy("tg3", 0), halfGigabit, busy, observed("eth0-rx-0")),
			want{evidence.Warning, ""}},
		{"a machine where each is expensive", watched(moderatedBy("e1000", 0), small.with(some), busy),
			want{evidence.Warning, ""}},
		{"so few, and time to spare", watched(moderatedBy("e1000", 0), small.with(some)), want{}},
		{"tens of frames for each", watched(moderatedBy("tg3", 0), counts{"rx_packets": 3_000_000, "irq.40": 90_000},
			busy), want{}},
		{"bundles that the card cuts up",
			watched(moderatedBy("e1000e", 3), counts{"tx_packets": 6000, "tx_bytes": 262e6, "rx_packets": 6000,
				"rx_bytes": 1e6,
				"irq.40":   12_000}, busy), want{}},
		{"a shared line", watched(moderatedBy("tg3", 0), halfGigabit, busy, observed("eth0, ahci")), want{}},
		{"questions and answers", watched(moderatedBy("tg3", 0), halfGigabit.with(many), busy,
			func(s *evidence.Span) { s.Run = &evidence.Run{Test: traffic.RR} }), want{}},
		{"history", watched(moderatedBy("tg3", 0), halfGigabit.with(many), busy, sinceBoot), want{}},
		{"not counted", watched(moderatedBy("tg3", 0), halfGigabit, busy), want{}},
	} {
		t.Run(c.name, func(t *testing.T) { check(t, interruptStorm(c.span), c.want) })
	}
	x := interruptStorm(watched(moderatedBy("tg3", 0), halfGigabit.with(many), busy))
	if got := x.Remedy.Settings[0]; got.Knob != "ethtool:eth0/coalesce.rx-usecs" ||
		!equal(got.Levels, "8", "32", "64", "128") {
		t.Errorf("%+v", got)
	}
	x = interruptStorm(watched(gigabit(func(x *host.Interface) { x.Driver = "virtio_net" }),
		halfGigabit.with(many), busy))
	if got := x.Remedy.Settings[0]; got.Knob != "link:eth0/napi_defer_hard_irqs" {
		t.Errorf("a driver that cannot: %+v", got)
	}
}
