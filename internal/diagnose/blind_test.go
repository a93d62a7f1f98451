package diagnose_test

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/diagnose"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/tcpinfo"
	"github.com/linerate/linerate/internal/host/watch"
	"github.com/linerate/linerate/internal/traffic"
)

// fixtureCase returns a copy of one recorded case, which a test may change.
func fixtureCase(t *testing.T, name string) evidence.Case {
	t.Helper()
	all, err := fixtures()
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(all[name].Case)
	if err != nil {
		t.Fatal(err)
	}
	var c evidence.Case
	if err := json.Unmarshal(b, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// first returns the first finding of a code; false if there is none.
func first(v diagnose.Verdict, code evidence.Code) (evidence.Finding, bool) {
	i := slices.IndexFunc(v.Findings, func(f evidence.Finding) bool { return f.Code == code })
	if i < 0 {
		return evidence.Finding{}, false
	}
	return v.Findings[i], true
}

// blindness returns the gap whose What contains a text; nil if there is none.
func blindness(v diagnose.Verdict, what string) *diagnose.Blind {
	for i := range v.Blind {
		if strings.Contains(v.Blind[i].What, what) {
			return &v.Blind[i]
		}
	}
	return nil
}

func TestBlindOnAnUnknownPeer(t *testing.T) {
	whole := diagnose.Examine(fixtureCase(t, "path-loss"))
	c := fixtureCase(t, "path-loss")
	c.Far = nil
	c.Runs[1].Ends.Remote = traffic.End{}
	v := diagnose.Examine(c)
	b := blindness(v, "the far host")
	if b == nil || b.Lowers <= 0 || !slices.Contains(b.Of, evidence.PathLoss) ||
		!strings.Contains(b.Why, "linerate serve") {
		t.Fatalf("blind %+v", v.Blind)
	}
	was, _ := first(whole, evidence.PathLoss)
	is, ok := first(v, evidence.PathLoss)
	if !ok || is.Confidence >= was.Confidence {
		t.Errorf("path-loss has confidence %v, and had %v with the far host known", is.Confidence, was.Confidence)
	}
	if whole := blindness(whole, "the far host"); whole != nil {
		t.Errorf("both hosts are known, but: %+v", whole)
	}
}

func TestBlindOnASenderWithoutTCPInfo(t *testing.T) {
	v := diagnose.Examine(fixtureCase(t, "no-tcp-info"))
	if b := blindness(v, "windows, round trips"); b == nil || !strings.Contains(b.Why, "(near)") || len(b.Of) == 0 {
		t.Errorf("blind %+v", v.Blind)
	}
	// An old kernel that reports some of it.
	c := fixtureCase(t, "receive-window")
	for i := range c.Runs[1].Ends.Local.TCP {
		tcp := &c.Runs[1].Ends.Local.TCP[i]
		tcp.BusySeconds, tcp.RwndLimitedSeconds, tcp.SndbufLimitedSeconds, tcp.SndWndBytes,
			tcp.MaxSndWndBytes = 0, 0, 0, 0, 0
	}
	for i := range c.Runs[1].Ends.Remote.TCP {
		c.Runs[1].Ends.Remote.TCP[i].RcvWndBytes = 0
	}
	v = diagnose.Examine(c)
	for what, since := range map[string]string{"how long windows": "4.10",
		"the window that the receiver advertised": "5.4"} {
		if b := blindness(v, what); b == nil || !strings.Contains(b.Why, since) {
			t.Errorf("%s: %+v", what, v.Blind)
		}
	}
	if b := blindness(v, "windows, round trips"); b != nil {
		t.Errorf("a sender that reports round trips: %+v", b)
	}
}

func TestBlindWithoutPermission(t *testing.T) {
	c := fixtureCase(t, "path-loss")
	c.Near.Warnings = []string{
		"eth0 rings: not permitted: ethtool rings: operation not permitted",
		"eth0 coalesce: not permitted: ethtool coalesce: operation not permitted",
		"eth1 rings: not permitted: ethtool rings: operation not permitted",
		"eth1 coalesce: not permitted: ethtool coalesce: operation not permitted",
		"eth0 rings: not permitted: ethtool rings: operation not permitted", // twice, as two readings report it
		"eth0 pause: not supported: operation not supported", "a sentence of another kind",
	}
	c.Refused = map[evidence.Probe]string{"ping": "icmp echo: permission denied", evidence.ProbeMTU: "no time"}
	c.Runs = c.Runs[1:]
	v := diagnose.Examine(c)
	b := blindness(v, "eth0 rings, eth0 coalesce, eth1 rings and 1 more (near)")
	if b == nil || !strings.Contains(b.Why, "operation not permitted") || b.Lowers <= 0 {
		t.Errorf("blind %+v", v.Blind)
	}
	for _, what := range []string{"eth0 pause (near)", "the idle round trip", "the probe mtu"} {
		if blindness(v, what) == nil {
			t.Errorf("no gap about %s: %+v", what, v.Blind)
		}
	}
	if !slices.IsSortedFunc(v.Blind,
		func(a, b diagnose.Blind) int { return int(math.Copysign(1, b.Lowers-a.Lowers)) }) {
		t.Errorf("the largest gap is not first: %+v", v.Blind)
	}
}

func TestBlindOnAKernelWithoutCounters(t *testing.T) {
	watched := func(values map[string]uint64) diagnose.Verdict {
		near := &host.Snapshot{Name: "old"}
		span := &watch.Span{Seconds: 3, Counters: &host.Counters{Values: values}, Sockets: &watch.Sockets{}}
		span.CPUs = []watch.CPU{{CPUTimes: host.CPUTimes{CPU: 0, Idle: 3}}}
		return diagnose.Examine(evidence.Case{Near: near,
			Watched: []evidence.Span{evidence.Watched("near", near, span)}})
	}
	all := map[string]uint64{
		"nic.eth0.rx_bytes": 9e6, "softnet.dropped": 0, "softnet.time_squeeze": 0, "Tcp.InSegs": 1,
		"TcpExt.ListenOverflows": 0, "TcpExt.TCPTimeouts": 0,
		"TcpExt.TCPSpuriousRTOs": 0, "TcpExt.TCPBacklogDrop": 0, "TcpExt.TCPReqQFullDrop": 0, "TcpExt.TCPDSACKRecv": 0,
		"Udp.RcvbufErrors": 0,
	}
	whole := watched(all)
	if len(whole.Blind) > 0 {
		t.Errorf("everything is counted, but: %+v", whole.Blind)
	}
	delete(all, "TcpExt.TCPReqQFullDrop") // Linux 2.6.32, the kernel of RHEL 6
	v := watched(all)
	if b := blindness(v, "TcpExt.TCPReqQFullDrop (near)"); b == nil || !strings.Contains(b.Why, "kernel") {
		t.Errorf("blind %+v", v.Blind)
	}
	if v.Findings[0].Confidence >= whole.Findings[0].Confidence {
		t.Errorf("healthy has confidence %v, and had %v with all counters", v.Findings[0].Confidence,
			whole.Findings[0].Confidence)
	}
	if v := watched(nil); blindness(v, "the counters of the host (near)") == nil {
		t.Errorf("a host without counters: %+v", v.Blind)
	}
	if v := watched(map[string]uint64{"nic.eth0.rx_bytes": 1}); blindness(v,
		"the detailed counters of TCP (near)") == nil {
		t.Errorf("a host without counters of TCP: %+v", v.Blind)
	}
}

// TestEchoesAlone is a peer that answers pings and nothing else.
func TestEchoesAlone(t *testing.T) {
	lost := 0.0
	near := &host.Snapshot{Name: "near"}
	c := evidence.Case{Near: near, Refused: map[evidence.Probe]string{"stream": "answers nothing but echo requests",
		"rr": "answers nothing but echo requests"}}
	c.Runs = []traffic.Result{{Test: traffic.Ping, Method: "icmp echo", DurationSeconds: 1, LossRatio: &lost,
		RTT: &stats.Latencies{Count: 20, Min: 0.0001, P50: 0.0002, P99: 0.0004}}}
	v := diagnose.Examine(c)
	checkShape(t, v.Findings)
	f := v.Findings[0]
	if f.Code != evidence.Healthy || !strings.Contains(f.Title, "20 echoes, with a median of 200 µs") ||
		f.Where != "path" {
		t.Errorf("%s at %s: %s", f.Code, f.Where, f.Title)
	}
	for _, what := range []string{"the rate of the path", "the far host", "single requests"} {
		if blindness(v, what) == nil {
			t.Errorf("no gap about %s: %+v", what, v.Blind)
		}
	}
	if f.Confidence >= 0.3 {
		t.Errorf("healthy has confidence %v by pings alone", f.Confidence)
	}
}

// TestSinceBootIsNoClaimAboutNow examines a single snapshot of a quiet host.
func TestSinceBootIsNoClaimAboutNow(t *testing.T) {
	near := &host.Snapshot{Name: "old", Warnings: []string{"list sockets of tcp: operation not permitted"}}
	span := evidence.Watched("near", near,
		&watch.Span{Seconds: 86400, Counters: &host.Counters{Values: map[string]uint64{"Tcp.InSegs": 1e6}}})
	span.SinceBoot = true
	v := diagnose.Examine(evidence.Case{Near: near, Watched: []evidence.Span{span}})
	checkShape(t, v.Findings)
	if f := v.Findings[0]; f.Code != evidence.Healthy ||
		!strings.Contains(f.Title, "counters of this host since boot") ||
		f.Confidence > 0.3 {
		t.Errorf("%s, confidence %v: %s", f.Code, f.Confidence, f.Title)
	}
	sockets := blindness(v, "sockets (near)")
	if blindness(v, "the time of the counts (near)") == nil || sockets == nil ||
		!strings.Contains(sockets.Why, "operation not permitted") {
		t.Errorf("blind %+v", v.Blind)
	}
}

// TestNoTraffic: where nothing moved, no fault can show and neither can health. Loopback is traffic
// too, and a host whose counters are hidden, as without /proc, may have moved anything and suffered
// anything.
func TestNoTraffic(t *testing.T) {
	watched := func(values map[string]uint64) evidence.Code {
		near := &host.Snapshot{Name: "idle", Interfaces: []host.Interface{
			{Name: "lo", Layers: host.Layers{Kind: "loopback"}, Virtual: true}, {Name: "eth0"}}}
		span := &watch.Span{Seconds: 3, Counters: &host.Counters{Values: values}, Sockets: &watch.Sockets{}}
		return diagnose.Judge(evidence.Case{Near: near,
			Watched: []evidence.Span{evidence.Watched("near", near, span)}})[0].Code
	}
	for _, c := range []struct {
		values map[string]uint64
		want   evidence.Code
	}{
		{map[string]uint64{"nic.eth0.rx_bytes": 0, "nic.eth0.tx_bytes": 0}, evidence.NoTraffic},
		{map[string]uint64{"nic.eth0.rx_bytes": 900, "nic.eth0.tx_bytes": 400}, evidence.NoTraffic},
		{map[string]uint64{"nic.eth0.rx_bytes": 40000, "nic.eth0.tx_bytes": 900}, evidence.Healthy},
		{map[string]uint64{"nic.eth0.rx_bytes": 900, "nic.lo.rx_bytes": 4e6}, evidence.Healthy},
		{nil, evidence.MeasurementUnreliable},
		{map[string]uint64{"TcpExt.ListenDrops": 0}, evidence.MeasurementUnreliable},
	} {
		if got := watched(c.values); got != c.want {
			t.Errorf("%v: %s, want %s", c.values, got, c.want)
		}
	}
	test := func(rate float64) []evidence.Finding {
		return diagnose.Judge(evidence.Case{Runs: []evidence.Run{{Test: traffic.Stream, Direction: traffic.Up,
			DurationSeconds: 3, ThroughputBitsPerSec: rate}}})
	}
	if got := test(0); len(got) != 1 || got[0].Code != evidence.NoTraffic || got[0].Severity != evidence.Notice {
		t.Errorf("a test without payload: %+v", got)
	}
	if got := test(5e8); got[0].Code != evidence.Healthy {
		t.Errorf("a test with payload: %+v", got)
	}
}

// A path may be limited by a CPU whose times are hidden, as in a container without /proc: neither
// is it sound, nor are "the CPUs" ruled out by those of the other end.
func TestHiddenCPUsAreNotCalledHealthy(t *testing.T) {
	idle := func() evidence.Case {
		c := fixtureCase(t, "healthy-slow-reader")
		for i := range c.Runs {
			for _, e := range []*traffic.End{&c.Runs[i].Ends.Local, &c.Runs[i].Ends.Remote} {
				for j := range e.CPUs {
					e.CPUs[j].Idle += 4
				}
				for j := range e.TCP {
					e.TCP[j].RwndLimitedSeconds = 0
				}
			}
		}
		return c
	}
	if f := diagnose.Judge(idle())[0]; f.Code != evidence.Healthy || strings.Contains(f.Title, "CPU") {
		t.Fatalf("the fixture is %s: %s", f.Code, f.Title)
	}
	for _, side := range []string{"near", "far"} {
		c := idle()
		for i := range c.Runs {
			if side == "near" {
				c.Runs[i].Ends.Local.CPUs = nil
			} else {
				c.Runs[i].Ends.Remote.CPUs = nil
			}
		}
		f := diagnose.Judge(c)[0]
		if f.Code != evidence.MeasurementUnreliable || !strings.Contains(f.Title, side+" host") {
			t.Errorf("%s hidden: %s: %s", side, f.Code, f.Title)
		}
		for _, r := range f.Rejected {
			if strings.HasPrefix(r, "Not the CPUs:") {
				t.Errorf("%s hidden, and yet: %s", side, r)
			}
		}
	}
}

// TestWindowThatNoRuleExplains: the kernel says that the sender waited for the window, and no CPU
// was full. "No fault" and "not the receive window" would contradict it.
func TestWindowThatNoRuleExplains(t *testing.T) {
	c := fixtureCase(t, "healthy-slow-reader")
	for i := range c.Runs {
		for _, e := range []*traffic.End{&c.Runs[i].Ends.Local, &c.Runs[i].Ends.Remote} {
			for j := range e.CPUs {
				e.CPUs[j].Idle += 4
			}
		}
	}
	f := diagnose.Judge(c)[0]
	if f.Code != evidence.ReceiveWindowLimited || f.Severity != evidence.Notice || f.Where != "far" ||
		!strings.Contains(f.Title, "70 %") {
		t.Errorf("%s %s %s: %s", f.Code, f.Severity, f.Where, f.Title)
	}
	for _, r := range f.Rejected {
		if strings.HasPrefix(r, "Not the receive window") {
			t.Errorf("rejects what it found: %s", r)
		}
	}
}

// TestRefusedOutput: most refusals are of new data, which TCP does not count anywhere. What merges
// segments at the receiver, or small segments, look like it in one account alone.
func TestRefusedOutput(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(sender, receiver *tcpinfo.TCPInfo)
		want   bool
	}{
		{"counted by IP, and a tenth lost", func(s, r *tcpinfo.TCPInfo) {
			s.SegsOut = s.BytesAcked / 1448 * 11 / 10
			r.SegsIn = s.BytesAcked / 1448
		}, true},
		{"as recorded, without a retransmission", func(*tcpinfo.TCPInfo, *tcpinfo.TCPInfo) {}, true},
		{"all arrived in bundles that count as one", func(s, r *tcpinfo.TCPInfo) {
			s.SegsOut, r.SegsIn = s.BytesAcked/1448, 150
		}, false},
		{"small segments that arrived", func(s, r *tcpinfo.TCPInfo) { r.SegsIn = s.SegsOut }, false},
		{"small segments of a window that is small", func(s, _ *tcpinfo.TCPInfo) {
			s.RwndLimitedSeconds = s.BusySeconds
		}, false},
	} {
		f := fixtureCase(t, "recorded-output-limit")
		for i := range f.Runs {
			r := &f.Runs[i]
			if len(r.Ends.Local.TCP) == 0 || !r.Ends.Local.TCP[0].Sender {
				continue
			}
			s := &r.Ends.Local.TCP[0]
			s.RetransSegs, s.BytesRetransmitted = 0, 0
			delete(r.Ends.Local.Counters, "TcpExt.TCPRetransFail")
			if !strings.HasPrefix(c.name, "counted by IP") {
				delete(r.Ends.Local.Counters, "Ip.OutTransmits") // as before Linux 6.7
			}
			c.change(s, &r.Ends.Remote.TCP[0])
		}
		x := diagnose.Judge(f)[0]
		if (x.Code == evidence.LocalDrops) != c.want {
			t.Errorf("%s: %s: %s", c.name, x.Code, x.Title)
		}
	}
}
