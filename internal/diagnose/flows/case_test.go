package flows

import (
	"encoding/json"
	"math"
	"net/netip"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/tcpinfo"
	"github.com/linerate/linerate/internal/host/watch"
	"github.com/linerate/linerate/internal/traffic"
)

// seen describes one direction of a run by the few numbers that these tests vary: a stream of three
// seconds with six interim rates.
type seen struct {
	rate        float64 // bits per second
	rtt, base   float64 // seconds: under load, and smallest
	streams     int     // 0: 1
	cwnd        float64 // bytes of each stream; 0: what the rate needs
	sent, again uint64  // segments of each stream; sent 0: what the rate needs
	reordered   uint64  // of each stream
	dsacks      uint64
	mss         int     // 0: 1448
	pmtu        int     // 0: 1500
	rwnd        float64 // share of the busy time
	scatter     float64 // of the interim rates
	rising      bool    // interim windows grow
	control     string  // "": reno
	counters    map[string]uint64
	far         map[string]uint64 // counters of the far end
}

// run returns the result of a stream up.
func (s seen) run() traffic.Result {
	streams, mss, pmtu, control := max(s.streams, 1), s.mss, s.pmtu, s.control
	if mss == 0 {
		mss = 1448
	}
	if pmtu == 0 {
		pmtu = 1500
	}
	if control == "" {
		control = "reno"
	}
	r := traffic.Result{
		Test: traffic.Stream, Direction: traffic.Up, DurationSeconds: 3, WarmUpSeconds: 0.6, Streams: streams,
		ThroughputBitsPerSec: s.rate, Bytes: int64(s.rate / 8 * 3),
		Ends: traffic.Ends{Local: traffic.End{Counters: s.counters}, Remote: traffic.End{Counters: s.far}},
	}
	for i := range 6 {
		swing := s.scatter
		if i%2 == 0 {
			swing = -swing
		}
		x := traffic.Interval{StartSeconds: float64(i) / 2, EndSeconds: float64(i+1) / 2,
			ThroughputBitsPerSec: s.rate * (1 + swing), CwndBytes: s.cwnd}
		if s.rising {
			x.CwndBytes *= 1 + float64(i)/20
		}
		r.Intervals = append(r.Intervals, x)
	}
	cwnd := s.cwnd
	if cwnd == 0 {
		cwnd = s.rate / 8 * s.rtt / float64(streams)
	}
	sent := s.sent
	if sent == 0 {
		sent = uint64(s.rate / 8 * 3 / float64(mss) / float64(streams))
	}
	for range streams {
		r.Ends.Local.TCP = append(r.Ends.Local.TCP, tcpinfo.TCPInfo{
			Sender: true, BusySeconds: 3, RwndLimitedSeconds: 3 * s.rwnd, MeanRTTSeconds: s.rtt, MinRTTSeconds: s.base,
			MeanCwndBytes: cwnd, MaxSndWndBytes: 8 << 20,
			SndMSSBytes: mss, SegsOut: sent, RetransSegs: s.again, ReorderSeen: s.reordered, DSACKDups: s.dsacks,
			PMTUBytes: pmtu, CongestionControl: control, SACKOK: true,
			WScaleOK: true, SndBufBytes: 4 << 20,
		})
		r.Ends.Remote.TCP = append(r.Ends.Remote.TCP, tcpinfo.TCPInfo{AdvMSSBytes: 1448, RcvBufBytes: 8 << 20})
	}
	return r
}

// of returns a case of a stream, with an idle ping of its base round trip, and probes by name.
func (s seen) of(probes map[evidence.Probe]traffic.Result) *evidence.Case {
	idle := traffic.Result{Test: traffic.Ping, Direction: traffic.Up, DurationSeconds: 1,
		RTT: &stats.Latencies{Count: 20, Min: s.base, P50: s.base}}
	return &evidence.Case{
		Near: snapshot("near", "192.0.2.1/24"), Far: snapshot("far", "192.0.2.2/24"), Probes: probes,
		Runs: []traffic.Result{idle, s.run()}, NearAddress: "192.0.2.1", FarAddress: "192.0.2.2",
	}
}

// snapshot is a host with one Ethernet interface.
func snapshot(name, address string) *host.Snapshot {
	network := netip.MustParsePrefix(address).Masked().String()
	return &host.Snapshot{
		Name: name, OS: "linux", Kernel: "6.12.0",
		Interfaces: []host.Interface{{Name: "eth0", MAC: "02:00:00:00:00:01", Up: true, Carrier: true, Virtual: true,
			MTUBytes: 1500, Addresses: []string{address}, Layers: host.Layers{Kind: "veth"}}},
		Routes: []host.Route{{Destination: network, Interface: "eth0"}},
		Settings: []host.Setting{
			{Knob: "sysctl:net.ipv4.tcp_available_congestion_control", Value: "reno bbr cubic"},
			{Knob: "sysctl:net.ipv4.tcp_slow_start_after_idle", Value: "1"},
			{Knob: "sysctl:net.ipv4.tcp_reordering", Value: "3"},
			{Knob: "sysctl:net.ipv4.tcp_mtu_probing", Value: "0"},
			{Knob: "sysctl:net.ipv4.tcp_wmem", Value: "4096 16384 262144"},
		},
	}
}

// ask applies a rule to a case through every view that it has, and returns its first finding.
func ask(t *testing.T, code evidence.Code, c *evidence.Case) *evidence.Finding {
	t.Helper()
	var found *evidence.Finding
	take := func(x *evidence.Finding) {
		if x != nil {
			check(t, x)
		}
		if found == nil {
			found = x
		}
	}
	for _, r := range Rules() {
		switch {
		case r.Code != code:
		case r.Flow != nil:
			for _, f := range evidence.FlowsOf(c) {
				take(r.Flow(f))
			}
		case r.Span != nil:
			for _, s := range evidence.SpansOf(c) {
				take(r.Span(s))
			}
		case r.Case != nil:
			take(r.Case(c))
		}
	}
	return found
}

// check checks what every finding promises: sentences, numbers that JSON can represent, few
// candidates, an experiment.
func check(t *testing.T, x *evidence.Finding) {
	t.Helper()
	if _, err := json.Marshal(x); err != nil {
		t.Errorf("%s: %v", x.Code, err)
	}
	if x.Confidence <= 0 || x.Confidence >= 1 || math.IsNaN(x.Confidence) || x.Where == "" || len(x.Evidence) == 0 ||
		x.Remedy.Text == "" ||
		x.Remedy.Proof == "" || len(x.Remedy.Settings) > 5 {
		t.Errorf("%s: incomplete: %+v", x.Code, x)
	}
	for _, s := range append([]string{x.Title, x.Remedy.Text, x.Remedy.Proof}, x.Rejected...) {
		if !strings.HasSuffix(s, ".") || strings.Contains(s, "%!") || strings.Contains(s, "NaN") ||
			strings.Contains(s, "Inf") {
			t.Errorf("%s: not a sentence: %q", x.Code, s)
		}
	}
}

// expect is one row of a table: a case, and the severity of its finding; none means no finding.
type expect struct {
	name string
	c    *evidence.Case
	want evidence.Severity
}

const none evidence.Severity = ""

// hold applies a rule to every row.
func hold(t *testing.T, code evidence.Code, rows []expect) {
	t.Helper()
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			got := none
			x := ask(t, code, row.c)
			if x != nil {
				got = x.Severity
			}
			if got != row.want {
				t.Errorf("%s: severity %q, want %q: %+v", code, got, row.want, x)
			}
		})
	}
}

// probes returns a single probe by its name.
func probes(p evidence.Probe, r traffic.Result) map[evidence.Probe]traffic.Result {
	return map[evidence.Probe]traffic.Result{p: r}
}

// watched returns a case of a host that was watched for three seconds with one connection.
func watched(c watch.Connection, counters map[string]uint64) *evidence.Case {
	if !c.Local.IsValid() {
		c.Local, c.Remote = netip.MustParseAddrPort("192.0.2.1:40000"), netip.MustParseAddrPort("198.51.100.7:443")
	}
	near := snapshot("near", "192.0.2.1/24")
	return &evidence.Case{Near: near, Watched: []evidence.Span{{
		Side: "near", Host: near, Seconds: 3, Counters: counters,
		Sockets: &watch.Sockets{Seconds: 3, ConnectionsSeen: 1, Connections: []watch.Connection{c}},
	}}}
}

// idleCPUs returns one second of CPUs that were idle for these shares of it.
func idleCPUs(idle ...float64) []host.CPUTimes {
	var all []host.CPUTimes
	for i, x := range idle {
		all = append(all, host.CPUTimes{CPU: i, System: 1 - x, Idle: x})
	}
	return all
}
