package flows

import (
	"net/netip"
	"testing"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host/tcpinfo"
	"github.com/linerate/linerate/internal/host/watch"
	"github.com/linerate/linerate/internal/traffic"
)

// mtus sets the interfaces of both hosts.
func mtus(c *evidence.Case, near, far int) *evidence.Case {
	c.Near.Interfaces[0].MTUBytes, c.Far.Interfaces[0].MTUBytes = near, far
	return c
}

// found returns the result of a search for the path MTU.
func found(m traffic.PathMTU) map[evidence.Probe]traffic.Result {
	return probes(evidence.ProbeMTU, traffic.Result{Test: traffic.MTU, Direction: traffic.Up, MTU: &m})
}

func TestMTUBlackHole(t *testing.T) {
	stalled := seen{rate: 0, rtt: 0.0102, base: 0.0102, cwnd: 1448, sent: 3, again: 2,
		counters: map[string]uint64{"TcpExt.TCPTimeouts": 2}}
	noticed := seen{rate: 65e6, rtt: 0.0141, base: 0.0102, mss: 1347, again: 24, scatter: 0.5,
		counters: map[string]uint64{"TcpExt.TCPMTUPSuccess": 3, "TcpExt.TCPMTUPFail": 3}}
	hole := traffic.PathMTU{UpBytes: 1400, DownBytes: 1500, BlackHoleUp: true, LocalMTUBytes: 1500,
		RemoteMTUBytes: 1500}
	sound := traffic.PathMTU{UpBytes: 1500, DownBytes: 1500, LocalMTUBytes: 1500, RemoteMTUBytes: 1500}
	refused := stalled.of(nil)
	refused.Refused = map[evidence.Probe]string{evidence.ProbeMTU: "no time"}
	failed := stalled.of(found(hole))
	failed.Runs = failed.Runs[:1]
	failed.Refused = map[evidence.Probe]string{"stream": "broken pipe"}
	silent := &evidence.Case{Refused: map[evidence.Probe]string{"stream": "broken pipe"}}
	always := noticed.of(nil)
	always.Near.Settings[3].Value = "2"
	always.Runs[1].Ends.Local.TCP[0].SndMSSBytes = 1448
	always.Runs[1].Ends.Local.Counters = map[string]uint64{"TcpExt.TCPMTUPSuccess": 3}
	hold(t, evidence.MTUBlackHole, []expect{
		{"a stream stalls", stalled.of(found(hole)), evidence.Critical},
		{"the stream failed", failed, evidence.Critical},
		{"a stream stalls and sizes cannot be tried", refused, evidence.Critical},
		{"the kernel found out", noticed.of(found(hole)), evidence.Warning},
		{"TCP is not concerned", seen{rate: 95e6, rtt: 0.012, base: 0.0102}.of(found(hole)), evidence.Notice},
		{"not tried yet", stalled.of(nil), none},
		{"a stream stalls and all sizes pass", stalled.of(found(sound)), none},
		{"a path that reports its MTU",
			stalled.of(found(traffic.PathMTU{UpBytes: 1400, DownBytes: 1500, ReportedMTUBytes: 1400})), none},
		{"loss", lossy.of(nil), none},
		{"a path that is down", silent, none},
		{"a kernel that always tries sizes", always, none},
	})
	c := lossy.of(nil)
	if ask(t, evidence.MTUBlackHole, c); len(c.Wanted()) != 0 {
		t.Errorf("asked on a path that loses: %v", c.Wanted())
	}
}

func TestMTUMismatch(t *testing.T) {
	healthy := seen{rate: 447e6, rtt: 0.0046, base: 0.0021}
	hole := found(traffic.PathMTU{UpBytes: 1500, DownBytes: 1500, BlackHoleUp: true, LocalMTUBytes: 9000})
	routed := mtus(healthy.of(hole), 9000, 1500)
	routed.Near.Routes[0].Gateway = "192.0.2.254"
	reversed := mtus(healthy.of(found(traffic.PathMTU{UpBytes: 1500, DownBytes: 1500, BlackHoleDown: true})), 1500,
		9000)
	hold(t, evidence.MTUMismatch, []expect{
		{"larger packets vanish", mtus(healthy.of(hole), 9000, 1500), evidence.Warning},
		{"the far end is the larger", reversed, evidence.Warning},
		{"larger packets pass", mtus(healthy.of(found(traffic.PathMTU{UpBytes: 9000, DownBytes: 1500})), 9000, 1500),
			evidence.Notice},
		{"not tried", mtus(healthy.of(nil), 9000, 1500), evidence.Notice},
		{"equal", healthy.of(hole), none},
		{"behind a router", routed, none},
		{"far unknown", &evidence.Case{Near: healthy.of(nil).Near, Runs: healthy.of(nil).Runs}, none},
	})
}

func TestMTUSmall(t *testing.T) {
	full := seen{rate: 42.6e6, rtt: 0.0316, base: 0.0102, mss: 524, pmtu: 576}
	tunnel := mtus(full.of(nil), 576, 576)
	tunnel.Near.Interfaces[0].Kind, tunnel.Near.Interfaces[0].MAC = "gre", ""
	tunnel.Far.Interfaces[0].Kind, tunnel.Far.Interfaces[0].MAC = "gre", ""
	clamped := seen{rate: 40e6, rtt: 0.0316, base: 0.0102, mss: 536}
	hold(t, evidence.MTUSmall, []expect{
		{"a full link", mtus(full.of(nil), 576, 576), evidence.Warning},
		{"a path that loses",
			mtus(seen{rate: 6e6, rtt: 0.0205, base: 0.0202, mss: 524, pmtu: 576, again: 12, scatter: 0.3}.of(nil), 576,
				576), evidence.Warning},
		{"nothing that it costs",
			mtus(seen{rate: 6e6, rtt: 0.0102, base: 0.0102, mss: 524, pmtu: 576, scatter: 0.3}.of(nil), 576, 576),
			evidence.Notice},
		{"what IPv6 needs", mtus(seen{rate: 46e6, rtt: 0.0375, base: 0.0102, mss: 1228, pmtu: 1280}.of(nil), 1280,
			1280), none},
		{"usual", full.of(nil), none},
		{"tunnels", tunnel, none},
		{"segments clamped on the way",
			clamped.of(found(traffic.PathMTU{UpBytes: 1500, DownBytes: 1500, MSSClampedUp: true})), evidence.Warning},
		{"segments small for a black hole",
			clamped.of(found(traffic.PathMTU{UpBytes: 600, DownBytes: 1500, BlackHoleUp: true})), none},
		{"segments small for a path",
			clamped.of(found(traffic.PathMTU{UpBytes: 590, DownBytes: 1500, ReportedMTUBytes: 590})), none},
	})
}

// upload is a connection that sent 30 Mb/s over 20 ms for three seconds.
func upload(change func(*watch.Connection)) *evidence.Case {
	c := watch.Connection{Memory: watch.Memory{SendLimitBytes: 4 << 20}, TCP: tcpinfo.TCPInfo{
		Sender: true, BusySeconds: 3, RTTSeconds: 0.0205, MinRTTSeconds: 0.0202, SndMSSBytes: 1448, CwndBytes: 75e3,
		SegsOut: 8000, BytesAcked: 11.25e6, MaxSndWndBytes: 8 << 20,
		CongestionControl: "reno",
	}}
	change(&c)
	return watched(c, nil)
}

func TestWatchedConnections(t *testing.T) {
	held := func(c *watch.Connection) { c.TCP.RwndLimitedSeconds, c.TCP.MaxSndWndBytes = 2.7, 90e3 }
	buffer := func(c *watch.Connection) { c.TCP.SndbufLimitedSeconds, c.Memory.SendLimitBytes = 2.5, 150e3 }
	loses := func(c *watch.Connection) { c.TCP.RetransSegs, c.TCP.BytesAcked, c.TCP.SegsOut = 24, 5e6, 3600 }
	idle := func(change func(*watch.Connection)) *evidence.Case {
		return upload(func(c *watch.Connection) { change(c); c.TCP.BusySeconds = 0.2 })
	}
	hold(t, evidence.ReceiveWindowLimited, []expect{
		{"a small buffer", upload(held), evidence.Notice},
		{"a slow reader", upload(func(c *watch.Connection) { c.TCP.RwndLimitedSeconds = 2.7 }), evidence.Notice},
		{"idle", idle(held), none},
		{"sound", upload(func(*watch.Connection) {}), none},
		{"receiving", upload(func(c *watch.Connection) { held(c); c.TCP.Sender = false }), none},
		{"inside the host", upload(func(c *watch.Connection) {
			held(c)
			c.Local, c.Remote = netip.MustParseAddrPort("127.0.0.1:40000"), netip.MustParseAddrPort("127.0.0.1:8080")
		}), none},
	})
	hold(t, evidence.SendBufferLimited, []expect{
		{"held", upload(buffer), evidence.Warning},
		{"a large buffer", upload(func(c *watch.Connection) { c.TCP.SndbufLimitedSeconds = 2.5 }), none},
		{"a queue", upload(func(c *watch.Connection) { buffer(c); c.TCP.RTTSeconds = 0.06 }), none},
		{"idle", idle(buffer), none},
	})
	hold(t, evidence.PathLoss, []expect{
		{"loses", upload(loses), evidence.Warning},
		{"a queue", upload(func(c *watch.Connection) { loses(c); c.TCP.RTTSeconds = 0.04 }), none},
		{"reordering", upload(func(c *watch.Connection) { loses(c); c.TCP.ReorderSeen = 200 }), none},
		{"few losses", upload(func(c *watch.Connection) { c.TCP.RetransSegs = 3 }), none},
		{"idle", idle(loses), none},
	})
}

// TestNothingKnown checks that no rule crashes on, or reports, a case without numbers.
func TestNothingKnown(t *testing.T) {
	empty := &evidence.Case{
		Runs: []traffic.Result{{Test: traffic.Stream, Direction: traffic.Up}, {Test: traffic.Ping},
			{Test: traffic.RR}, {Test: traffic.Stream, Direction: traffic.Bidir}},
		Watched: []evidence.Span{{Side: "near"},
			{Side: "far", Sockets: &watch.Sockets{Connections: []watch.Connection{{}}}}},
	}
	for _, r := range Rules() {
		if x := ask(t, r.Code, empty); x != nil {
			t.Errorf("%s: %s", r.Code, x.Title)
		}
	}
}
