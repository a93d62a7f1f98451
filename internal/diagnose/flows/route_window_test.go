package flows

import (
	"testing"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/traffic"
)

// TestMetricBound checks the scale that a window metric leaves, as tcp_select_initial_window
// chooses it.
func TestMetricBound(t *testing.T) {
	for _, c := range []struct {
		metric, scale int
		bound         float64
	}{{1, 0, 65535}, {16384, 0, 65535}, {65535, 0, 65535}, {65536, 1, 131070}, {131072, 2, 262140},
		{1 << 20, 5, 2097120}, {1<<31 - 1, 14, 65535 << 14}} {
		if s, b := metricScale(c.metric), metricBound(c.metric); s != c.scale || b != c.bound {
			t.Errorf("metric %d: scale %d and bound %v, want %d and %v", c.metric, s, b, c.scale, c.bound)
		}
	}
}

// short is a flow on a veth pair as recorded on Linux 6.18 beside other programs: with a metric of
// 4096 at the far host, 1.41 s of 2.75 s waiting for a window of 65 535 bytes, 26 µs under load and
// 3 µs at least. Eight streams carried ten times as much.
func short(eight float64, change func(r *traffic.Result, far *host.Snapshot)) *evidence.Case {
	s := seen{rate: 14.9e9, rtt: 26e-6, base: 3e-6, cwnd: 318782, rwnd: 0.51,
		far: map[string]uint64{"Tcp.InSegs": 145993}}
	many := s
	many.rate, many.streams = eight, 8
	// Eight windows wait in the queue of a full link, and not for CPUs.
	if many.rtt = 8 * 65535 * 8 / max(eight, 1); eight == shared {
		many.rtt = 28e-6
	}
	probe := many.run()
	for i := range probe.Ends.Local.TCP {
		probe.Ends.Local.TCP[i].MaxSndWndBytes = 65535
	}
	c := s.of(probes(evidence.ProbeStreams, probe))
	r := &c.Runs[1]
	r.Ends.Local.TCP[0].MaxSndWndBytes, r.Ends.Local.TCP[0].SndWScale = 65535, 0
	r.Ends.Local.CPUs, r.Ends.Remote.CPUs = idleCPUs(0.01, 0.01), idleCPUs(0.01, 0.01)
	c.Far.Settings = []host.Setting{{Knob: "sysctl:net.ipv4.tcp_rmem", Value: "4096 131072 33554432"}}
	change(r, c.Far)
	if eight == 0 {
		c.Probes = nil
	}
	return c
}

// shared is what eight streams carried where both hosts share two CPUs, with 28 µs under load.
const shared = 17.4e9

func metric(r *traffic.Result, far *host.Snapshot) { far.Routes[0].WindowBytes = 4096 }

// TestWindowsOnAShortPath: the three reasons for a small window on a path of microseconds, and what
// looks like them.
func TestWindowsOnAShortPath(t *testing.T) {
	with := func(more func(r *traffic.Result)) func(*traffic.Result, *host.Snapshot) {
		return func(r *traffic.Result, far *host.Snapshot) { metric(r, far); more(r) }
	}
	hold(t, evidence.RouteWindowClamped, []expect{
		{"the metric limits", short(150e9, metric), evidence.Warning},
		{"the hosts share CPUs, and no queue builds with eight windows", short(shared, metric), evidence.Warning},
		{"a full link carries no more with eight windows", short(15e9, metric), none},
		{"no probe, no verdict", short(0, metric), none},
		{"the reader lets its buffer run full", short(150e9, with(func(r *traffic.Result) {
			r.Ends.Remote.Counters["TcpExt.TCPToZeroWindowAdv"] = 19
		})), none},
		{"the sender hardly waits for it", short(150e9, with(func(r *traffic.Result) {
			r.Ends.Local.TCP[0].RwndLimitedSeconds = 0.6
		})), none},
		{"a queue builds that the window bounds", short(150e9, with(func(r *traffic.Result) {
			r.Ends.Local.TCP[0].MeanRTTSeconds = 2e-3
		})), none},
		{"no metric", short(150e9, func(*traffic.Result, *host.Snapshot) {}), none},
	})
	small := func(r *traffic.Result, far *host.Snapshot) {
		far.Settings[0].Value = "4096 16384 32768"
		r.Ends.Local.TCP[0].MaxSndWndBytes, r.Ends.Local.TCP[0].SndWScale = 24576, 7
		r.Ends.Remote.TCP[0].RcvBufBytes = 32768
	}
	hold(t, evidence.ReceiveWindowLimited, []expect{
		{"a small buffer limits", short(150e9, small), evidence.Warning},
		{"a full link", short(15e9, small), none},
		{"a buffer that could grow", short(150e9, func(r *traffic.Result, far *host.Snapshot) {
			small(r, far)
			far.Settings[0].Value = "4096 131072 33554432"
		}), none},
		// A buffer of a few segments closes its window although its reader is quick.
		{"a tiny buffer with a quick reader", short(150e9, func(r *traffic.Result, far *host.Snapshot) {
			small(r, far)
			r.Ends.Remote.Counters["TcpExt.TCPToZeroWindowAdv"] = 19
			r.Ends.Remote.CPUs = []host.CPUTimes{{CPU: 0, System: 0.7, Idle: 2.3}}
		}), evidence.Warning},
		{"a reader without CPU time", short(150e9, func(r *traffic.Result, far *host.Snapshot) {
			small(r, far)
			r.Ends.Remote.Counters["TcpExt.TCPToZeroWindowAdv"] = 19
			r.Ends.Remote.CPUs = []host.CPUTimes{{CPU: 0, System: 2.9, Idle: 0.1}}
		}), none},
		{"a slow reader", short(150e9, func(r *traffic.Result, far *host.Snapshot) {
			small(r, far)
			r.Ends.Remote.Counters["TcpExt.TCPToZeroWindowAdv"] = 4000
		}), none},
	})
	if x := ask(t, evidence.ReceiveWindowLimited, short(150e9, small)); x != nil && len(x.Remedy.Settings) == 0 {
		t.Error("the remedy of a small buffer has no level to try")
	}
	off := func(r *traffic.Result, _ *host.Snapshot) { r.Ends.Local.TCP[0].WScaleOK = false }
	hold(t, evidence.WindowScalingOff, []expect{
		{"no scaling", short(150e9, off), evidence.Warning},
		{"a full link", short(15e9, off), none},
	})
}
