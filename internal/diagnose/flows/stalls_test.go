package flows

import (
	"testing"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host/tcpinfo"
	"github.com/linerate/linerate/internal/host/watch"
	"github.com/linerate/linerate/internal/traffic"
)

func TestTimeouts(t *testing.T) {
	crowd := seen{rate: 46.6e6, rtt: 0.009, base: 0.0012, streams: 32, cwnd: 3542, sent: 488, again: 67,
		counters: map[string]uint64{"TcpExt.TCPTimeouts": 96}}
	some := crowd
	some.counters = map[string]uint64{"TcpExt.TCPTimeouts": 30}
	spurious := crowd
	spurious.counters = map[string]uint64{"TcpExt.TCPTimeouts": 96, "TcpExt.TCPSpuriousRTOs": 60}
	handshakes := crowd
	handshakes.counters = map[string]uint64{"TcpExt.TCPTimeouts": 96, "TcpExt.TCPSynRetrans": 96}
	strangers := crowd
	strangers.counters = map[string]uint64{"TcpExt.TCPTimeouts": 96, "TcpExt.TCPFastRetrans": 32 * 67}
	micro := seen{rate: 24.5e6, rtt: 27.5e-6, base: 6e-6, sent: 8358, again: 2001, scatter: 0.1,
		counters: map[string]uint64{"TcpExt.TCPTimeouts": 9}}
	uncounted := crowd
	uncounted.counters = nil
	hold(t, evidence.TimeoutsIncast, []expect{
		{"gross", crowd.of(nil), evidence.Warning},
		{"mild", some.of(nil), evidence.Notice},
		{"timers that fired for nothing", spurious.of(nil), none},
		{"handshakes", handshakes.of(nil), none},
		{"a kernel that counts none", uncounted.of(nil), none},
		{"timeouts of other programs", strangers.of(nil), none},
		// Some microseconds more are no full queue.
		{"a policer on a path of microseconds", micro.of(nil), evidence.Notice},
		{"the end of slow start", seen{rate: 95e6, rtt: 0.02, base: 0.01, again: 100,
			counters: map[string]uint64{"TcpExt.TCPTimeouts": 1}}.of(nil), none},
		{"a path that loses much", seen{rate: 2e6, rtt: 0.0205, base: 0.0202, sent: 700, again: 60, scatter: 0.3,
			counters: map[string]uint64{"TcpExt.TCPTimeouts": 4}}.of(nil), evidence.Notice},
		{"a bloated queue", seen{rate: 19e6, rtt: 0.7, base: 0.02, again: 1000,
			counters: map[string]uint64{"TcpExt.TCPTimeouts": 4}}.of(nil), none},
		{"watched, gross", watched(watch.Connection{}, map[string]uint64{"TcpExt.TCPTimeouts": 143, "Tcp.OutSegs": 8000,
			"Tcp.RetransSegs": 1200}), evidence.Warning},
		{"watched, peers that left",
			watched(watch.Connection{}, map[string]uint64{"TcpExt.TCPTimeouts": 40, "Tcp.OutSegs": 8000,
				"Tcp.RetransSegs": 45}), evidence.Notice},
		{"watched, a busy server",
			watched(watch.Connection{}, map[string]uint64{"TcpExt.TCPTimeouts": 40, "Tcp.OutSegs": 900000,
				"Tcp.RetransSegs": 4500}), none},
		{"watched, quiet", watched(watch.Connection{}, map[string]uint64{"TcpExt.TCPTimeouts": 1, "Tcp.OutSegs": 20}),
			none},
	})
	history := watched(watch.Connection{}, map[string]uint64{"TcpExt.TCPTimeouts": 1e6, "Tcp.OutSegs": 1e6,
		"Tcp.RetransSegs": 4e6})
	history.Watched[0].SinceBoot = true
	hold(t, evidence.TimeoutsIncast, []expect{{"since boot", history, none}})
}

func TestCongestionControlMismatch(t *testing.T) {
	reno := seen{rate: 43.4e6, rtt: 0.081, base: 0.0802, cwnd: 441e3, rising: false}
	slow := reno
	slow.rising = true
	bbr := seen{rate: 180e6, rtt: 0.09, base: 0.0802, control: "bbr"}.run()
	same := seen{rate: 50e6, rtt: 0.081, base: 0.0802, control: "bbr"}.run()
	other := evidence.ProbeCongestion("bbr")
	unloaded := reno.of(probes(other, bbr))
	unloaded.Near.Settings[0].Value = "reno cubic"
	ignored := seen{rate: 180e6, rtt: 0.09, base: 0.0802, control: "reno"}.run()
	hold(t, evidence.CongestionControlMismatch, []expect{
		{"a window that does not grow", reno.of(probes(other, bbr)), evidence.Warning},
		{"a window that grows for minutes",
			seen{rate: 43.4e6, rtt: 0.081, base: 0.0802, cwnd: 200e3, rising: true}.of(probes(other,
				seen{rate: 900e6, rtt: 0.09, base: 0.0802, control: "bbr"}.run())), evidence.Warning},
		{"a window that is there in seconds",
			seen{rate: 79e6, rtt: 0.0219, base: 0.0201, cwnd: 245e3, rising: true}.of(probes(other,
				seen{rate: 188e6, rtt: 0.027, base: 0.0201, control: "bbr"}.run())), none},
		// Recorded on a busy machine: the window fell, and recovers in two seconds.
		{"a window that fell on a short path", seen{rate: 56e6, rtt: 0.0206, base: 0.0202, cwnd: 140e3}.of(probes(other,
			seen{rate: 94e6, rtt: 0.022, base: 0.0202, control: "bbr"}.run())), none},
		{"cubic on a path that it fills in seconds",
			seen{rate: 43.4e6, rtt: 0.081, base: 0.0802, cwnd: 441e3, control: "cubic"}.of(probes(other,
				seen{rate: 80e6, rtt: 0.09, base: 0.0802, control: "bbr"}.run())), none},
		{"cubic on a long fat one",
			seen{rate: 100e6, rtt: 0.101, base: 0.1, cwnd: 1.25e6, control: "cubic"}.of(probes(other,
				seen{rate: 900e6, rtt: 0.11, base: 0.1, control: "bbr"}.run())), evidence.Warning},
		{"the other is no better", reno.of(probes(other, same)), none},
		{"the other was not used", reno.of(probes(other, ignored)), none},
		{"not tried yet", reno.of(nil), none},
		{"bbr is not loaded", unloaded, none},
		{"a queue", seen{rate: 43e6, rtt: 0.1, base: 0.08}.of(probes(other, bbr)), none},
		{"a window of the receiver", seen{rate: 43e6, rtt: 0.081, base: 0.08, rwnd: 0.9}.of(probes(other, bbr)), none},
		{"a window that is not full", seen{rate: 43e6, rtt: 0.081, base: 0.08, cwnd: 4e6}.of(probes(other, bbr)), none},
		{"a short path", seen{rate: 5e9, rtt: 0.0003, base: 0.0002}.of(probes(other, bbr)), none},
		{"bbr on a short path",
			seen{rate: 2e9, rtt: 0.0003, base: 0.0002, control: "bbr"}.of(probes(evidence.ProbeCongestion("cubic"),
				seen{rate: 9e9, rtt: 0.0003, base: 0.0002, control: "cubic"}.run())), evidence.Warning},
		{"bbr on a long path", seen{rate: 161e6, rtt: 0.081, base: 0.08, control: "bbr"}.of(nil), none},
	})
	c := seen{rate: 161e6, rtt: 0.081, base: 0.08, control: "bbr"}.of(nil)
	if ask(t, evidence.CongestionControlMismatch, c); len(c.Wanted()) != 0 {
		t.Errorf("wanted %v", c.Wanted())
	}
}

// requests is a connection that sends each request in two pieces, 25 times a second.
func requests(change func(*watch.Connection)) *evidence.Case {
	c := watch.Connection{UnsentBytes: 100, UnackedBytes: 200, TCP: tcpinfo.TCPInfo{
		Sender: true, BusySeconds: 2.8, RTTSeconds: 0.0226, MinRTTSeconds: 0.0011, SndMSSBytes: 1448, SegsOut: 220,
		BytesAcked: 15000, BytesReceived: 14000,
	}}
	change(&c)
	return watched(c, nil)
}

func TestDelayedACKs(t *testing.T) {
	rr := func(p50, delayed float64) *evidence.Case {
		c := seen{rate: 900e6, rtt: 0.003, base: 0.001}.of(nil)
		c.Runs = append(c.Runs, traffic.Result{Test: traffic.RR, Direction: traffic.Up, DurationSeconds: 1,
			TransactionsPerSec: 1 / p50,
			RTT:                &stats.Latencies{Count: uint64(1 / p50), Min: p50, P50: p50, P90: p50 + 0.001},
			Ends: traffic.Ends{Remote: traffic.End{
				Counters: map[string]uint64{"TcpExt.DelayedACKs": uint64(delayed)}}}})
		return c
	}
	// Recorded on a machine with saturated CPUs: ten transactions in a second, from 32 to 243 ms.
	scattered := rr(0.042, 20)
	scattered.Runs[2].RTT.P90 = 0.233
	hold(t, evidence.DelayedACKStall, []expect{
		{"plain", requests(func(*watch.Connection) {}), evidence.Warning},
		{"nothing unsent at that moment", requests(func(c *watch.Connection) { c.UnsentBytes = 0 }), evidence.Warning},
		{"few requests", requests(func(c *watch.Connection) { c.TCP.BusySeconds, c.TCP.SegsOut = 0.6, 40 }), none},
		{"idle", requests(func(c *watch.Connection) {
			c.TCP = tcpinfo.TCPInfo{MinRTTSeconds: 0.001, RTTSeconds: 0.04, SndMSSBytes: 1448}
		}), none},
		{"a bloated queue", requests(func(c *watch.Connection) { c.TCP.BytesAcked, c.TCP.SegsOut = 300*1448, 300 }),
			none},
		{"a long path", requests(func(c *watch.Connection) { c.TCP.MinRTTSeconds = 0.020 }), none},
		{"healthy requests", requests(func(c *watch.Connection) { c.TCP.RTTSeconds, c.TCP.SegsOut = 0.0012, 3000 }),
			none},
		{"loss", requests(func(c *watch.Connection) { c.TCP.RetransSegs = 20 }), none},
		{"transactions of 41 ms", rr(0.041, 20), evidence.Warning},
		{"transactions that wait for a processor", scattered, none},
		{"slow transactions without delayed acknowledgements", rr(0.041, 1), none},
		{"transactions as long as pings", rr(0.0011, 1), none},
	})
}

// bursts is a connection that sends a megabyte each second over 160 ms and restarts slowly each
// time.
func bursts(change func(*watch.Connection)) *evidence.Case {
	c := watch.Connection{IdleSeconds: 0.3, TCP: tcpinfo.TCPInfo{
		Sender: true, BusySeconds: 2.2, RTTSeconds: 0.082, MinRTTSeconds: 0.0805, SndMSSBytes: 1448, CwndBytes: 700e3,
		SegsOut: 2100, BytesAcked: 3e6,
	}}
	change(&c)
	return watched(c, nil)
}

func TestSlowStartAfterIdle(t *testing.T) {
	off := bursts(func(*watch.Connection) {})
	off.Near.Settings[1].Value = "0"
	fetched := func(seconds float64) *evidence.Case {
		r := traffic.Result{Test: traffic.RR, Direction: traffic.Up, DurationSeconds: 1.5,
			RTT: &stats.Latencies{Count: 3, P50: seconds}}
		return seen{rate: 200e6, rtt: 0.21, base: 0.2}.of(probes(evidence.ProbeObjects, r))
	}
	hold(t, evidence.SlowStartAfterIdle, []expect{
		{"plain", bursts(func(*watch.Connection) {}), evidence.Warning},
		{"the window is kept", bursts(func(c *watch.Connection) { c.TCP.BusySeconds = 0.5 }), none},
		{"the setting is off", off, none},
		{"never at rest", bursts(func(c *watch.Connection) { c.TCP.BusySeconds = 2.95 }), none},
		{"a trickle", bursts(func(c *watch.Connection) { c.TCP.CwndBytes, c.TCP.BytesAcked = 14480, 300e3 }), none},
		{"one burst", bursts(
			func(c *watch.Connection) { c.TCP.CwndBytes, c.TCP.BytesAcked, c.TCP.BusySeconds = 414e3, 400e3, 0.45 }),
			evidence.Warning},
		{"small messages between large ones",
			bursts(func(c *watch.Connection) { c.TCP.CwndBytes, c.TCP.BytesAcked = 300e3, 400e3 }), none},
		{"held by the window", bursts(func(c *watch.Connection) { c.TCP.RwndLimitedSeconds = 1.5 }), none},
		{"losses", bursts(func(c *watch.Connection) { c.TCP.RetransSegs = 30 }), none},
		{"a queue", bursts(func(c *watch.Connection) { c.TCP.RTTSeconds = 0.2 }), none},
		{"a short path", bursts(func(c *watch.Connection) { c.TCP.RTTSeconds, c.TCP.MinRTTSeconds = 0.004, 0.004 }),
			none},
		{"receiving", bursts(func(c *watch.Connection) { c.TCP.Sender = false }), none},
		{"objects take five round trips", fetched(1.0), evidence.Notice},
		{"objects take two", fetched(0.4), none},
	})
	near := seen{rate: 200e6, rtt: 0.021, base: 0.02}.of(nil)
	if ask(t, evidence.SlowStartAfterIdle, near); len(near.Wanted()) != 0 {
		t.Errorf("asked on a short path: %v", near.Wanted())
	}
}
