package traffic

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/sys"
	"github.com/linerate/linerate/internal/traffic/engine"
)

func TestWhichCountersAreDrops(t *testing.T) {
	for name, want := range map[string]bool{
		"nic.eth0.rx_dropped": true, "nic.eth0.100.tx_dropped": true, "nic.eth0.rx_missed_errors": true, "nic.eth0.rx_fifo_errors": true,
		"softnet.dropped": true, "softnet.0.dropped": false, "softnet.time_squeeze": false,
		"qdisc.eth0.drops": true, "qdisc.eth0.overlimits": false, "qdisc.eth0.requeues": false,
		"TcpExt.TCPBacklogDrop": true, "TcpExt.ListenDrops": true, "TcpExt.TCPRcvQDrop": true, "TcpExt.PruneCalled": true,
		"TcpExt.LockDroppedIcmps": false, "TcpExt.TCPTimeouts": false, "Tcp.RetransSegs": false,
		"Udp.RcvbufErrors": true, "Udp.InErrors": false, "Ip.InDiscards": true,
		"nic.eth0.rx_crc_errors": false, "nic.eth0.rx_bytes": false,
	} {
		if got := isDrop(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestDropsAreSortedAndNeverNil(t *testing.T) {
	if d := dropsIn(nil); d == nil || len(d) != 0 {
		t.Errorf("%#v", d)
	}
	got := dropsIn(map[string]uint64{"qdisc.b.drops": 5, "qdisc.a.drops": 5, "nic.a.rx_dropped": 9, "Tcp.InSegs": 100, "softnet.dropped": 0})
	want := []Drop{{"nic.a.rx_dropped", 9}, {"qdisc.a.drops", 5}, {"qdisc.b.drops", 5}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// windowed is a conductor after its window, with one sender whose kernel said a at the opening edge and b at the closing one.
func windowed(a, b sys.TCPInfo, before, after *host.Counters) *conductor {
	w := &engine.Worker{Role: engine.Sender, Conn: &engine.Conn{}}
	c := newConductor(Spec{Test: Stream}, true, nil, nil, []*engine.Worker{w}, &engine.Phase{})
	c.window = window{
		open: reading{at: time.Second}, shut: reading{at: 3 * time.Second}, before: before, after: after,
		infos: []sys.TCPInfo{a}, ends: []sys.TCPInfo{b}, options: []engine.Buffers{{SendBytes: 87380, Congestion: "cubic"}},
	}
	return c
}

func TestFlowIsTheDifferenceOverTheWindow(t *testing.T) {
	a := sys.TCPInfo{
		Length: 248, BusyMicros: 5e5, RwndLimitedMicros: 1e5, BytesAcked: 1000, SegsOut: 1<<32 - 10, TotalRetrans: 1<<32 - 1, DSACKDups: 3,
	}
	b := sys.TCPInfo{
		Length: 248, BusyMicros: 25e5, RwndLimitedMicros: 11e5, SndbufLimitedMicros: 2e5, BytesAcked: 51_000, SegsOut: 30, TotalRetrans: 1, DSACKDups: 4,
		RTTMicros: 20_000, MinRTTMicros: 1<<32 - 1, SndCwndPackets: 10, SndMSSBytes: 1448, SndWndBytes: 64_000, Options: sys.OptWScale | sys.OptSACK,
		SndWScale: 7, PMTUBytes: 1500,
	}
	c := windowed(a, b, nil, nil)
	for _, sample := range []sys.TCPInfo{
		{RTTMicros: 10_000, SndCwndPackets: 10, SndMSSBytes: 1000, SndWndBytes: 70_000}, {RTTMicros: 30_000, SndCwndPackets: 20, SndMSSBytes: 1000},
	} {
		c.samples[0].add(sample, true)
	}
	c.samples[0].add(sys.TCPInfo{RTTMicros: 1e9, SndWndBytes: 1e9}, false) // outside the window
	got := c.flow(0, c.workers[0])
	want := TCPInfo{
		Sender: true, BusySeconds: 2, RwndLimitedSeconds: 1, SndbufLimitedSeconds: 0.2, RTTSeconds: 0.02, CwndBytes: 14480, SndMSSBytes: 1448,
		SndWndBytes: 64_000, MaxSndWndBytes: 70_000, SndWScale: 7, WScaleOK: true, SACKOK: true, BytesAcked: 50_000,
		SegsOut: 40, RetransSegs: 2, DSACKDups: 1, SndBufBytes: 87380, PMTUBytes: 1500, CongestionControl: "cubic",
		MeanRTTSeconds: 0.02, MeanCwndBytes: 15_000,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestDoubtsAboutTheBench(t *testing.T) {
	at := time.Unix(1000, 0)
	before := &host.Counters{Time: at, Values: map[string]uint64{}, CPUs: []host.CPUTimes{{CPU: -1}, {CPU: 0}, {CPU: 1}}}
	after := &host.Counters{Time: at.Add(2 * time.Second), Values: map[string]uint64{"qdisc.eth0.drops": 4}, CPUs: []host.CPUTimes{
		{CPU: -1, System: 2.5, Steal: 0.2, Idle: 1.3}, {CPU: 0, System: 1.9, SoftIRQ: 0.09, Idle: 0.01}, {CPU: 1, System: 0.51, Steal: 0.2, Idle: 1.29},
	}}
	c := windowed(sys.TCPInfo{}, sys.TCPInfo{}, before, after)
	c.warn("host counters not read: %s", "no coffee")
	e := c.end("lab1")
	if e.CPUSeconds != 2.5 || len(e.Drops) != 1 || len(e.TCP) != 0 {
		t.Errorf("%+v", e)
	}
	// A rate that climbs by half over the window, in bins with a little jitter.
	for i := range 100 {
		c.series = append(c.series, 1e9+float64(i)*5e6+float64(i%7)*1e5)
	}
	got := strings.Join(c.doubts(e, "lab1"), "\n")
	for _, want := range []string{
		"no coffee", "the hypervisor took 5.0 % of the CPU time of lab1 for others",
		"cpu 0 of lab1 was 100 % busy", "series measured at lab1: drifts by",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "cpu 1") || strings.Contains(got, "cpu -1") {
		t.Errorf("false alarm in\n%s", got)
	}
}

func TestTimelinePairsBothSides(t *testing.T) {
	own := func(measured bool, index int, start float64) part {
		return part{Measured: measured, Index: index, Start: start, End: start + 1, RTT: 0.01, Cwnd: 1000, Retransmits: 2}
	}
	far := func(measured bool, index int, bytes int64) part {
		return part{Measured: measured, Index: index, Start: 10, End: 12, Bytes: bytes}
	}
	var live []Interval
	line := timeline{spec: Spec{Test: Stream, Direction: Up}, emit: func(i Interval) { live = append(live, i) }}

	line.addOwn(own(false, 0, 0))
	line.addOwn(own(true, 0, 1))
	if len(live) != 0 {
		t.Fatalf("shown before the far side counted: %+v", live)
	}
	line.addFar(far(true, 0, 1000)) // the one of the warm-up was lost on the way
	if len(live) != 2 || live[0].ThroughputBitsPerSec != 0 || live[1].ThroughputBitsPerSec != 4000 {
		t.Fatalf("%+v", live)
	}
	line.addFar(far(true, 1, 2000)) // early
	line.addOwn(own(true, 1, 2))
	line.addOwn(own(true, 2, 3))
	line.finish([]part{far(false, 0, 500), far(true, 0, 1000), far(true, 1, 2000), far(true, 2, 3000)})
	want := []Interval{
		{StartSeconds: 0, EndSeconds: 1, RTTSeconds: 0.01, CwndBytes: 1000, RetransmitsTotal: 2, Omitted: true},
		{StartSeconds: 1, EndSeconds: 2, ThroughputBitsPerSec: 4000, RTTSeconds: 0.01, CwndBytes: 1000, RetransmitsTotal: 2},
		{StartSeconds: 2, EndSeconds: 3, ThroughputBitsPerSec: 8000, RTTSeconds: 0.01, CwndBytes: 1000, RetransmitsTotal: 2},
		{StartSeconds: 3, EndSeconds: 4, ThroughputBitsPerSec: 12000, RTTSeconds: 0.01, CwndBytes: 1000, RetransmitsTotal: 2},
	}
	if d := cmp.Diff(want, live); d != "" {
		t.Errorf("live (-want +got):\n%s", d)
	}
	want[0].ThroughputBitsPerSec = 2000 // told at last
	if d := cmp.Diff(want, line.intervals); d != "" {
		t.Errorf("final (-want +got):\n%s", d)
	}
}
