package diagnose_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/diagnose"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/snapshot"
	"github.com/linerate/linerate/internal/host/tcpinfo"
	"github.com/linerate/linerate/internal/host/watch"
)

// These tests check a property: watching a host without faults never gives a warning. Notices are
// allowed, because they report what a rule saw; a warning says that something costs this host
// something now.

// quietSeconds is how long such a host is watched, in seconds.
const quietSeconds = 3

// quietHost is one fixture: the host, and its counters since boot.
type quietHost struct {
	snapshot *host.Snapshot
	history  *watch.Span
}

// quietHosts returns the recorded and written hosts of package capture, which have every kind of
// NIC that a rule covers.
func quietHosts(t testing.TB) map[string]quietHost {
	t.Helper()
	files, err := filepath.Glob("../host/capture/testdata/hosts/*.capture")
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixture hosts: %v", err)
	}
	hosts := make(map[string]quietHost)
	for _, name := range files {
		f, err := snapshot.Open(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		m, err := f.Moment(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		hosts[strings.TrimSuffix(filepath.Base(name), ".capture")] = quietHost{m.Host, m.SinceBoot()}
	}
	return hosts
}

// quietSpan returns three seconds of the host with these counters and these shares of CPU time on
// each CPU.
func quietSpan(h quietHost, counters map[string]uint64, user, system, softirq float64) *watch.Span {
	s := &watch.Span{Seconds: quietSeconds, Counters: &host.Counters{Values: map[string]uint64{},
		Seconds: quietSeconds}, Sockets: &watch.Sockets{Seconds: quietSeconds}}
	// Levels and limits keep their values; all other counters begin at zero.
	for name, n := range host.Sub(h.history.Counters, h.history.Counters).Values {
		s.Counters.Values[name] = n
	}
	maps.Copy(s.Counters.Values, counters)
	for i := range max(len(h.snapshot.CPUs), 1) {
		t := host.CPUTimes{CPU: i, User: quietSeconds * user, System: quietSeconds * system,
			SoftIRQ: quietSeconds * softirq}
		t.Idle = quietSeconds - t.User - t.System - t.SoftIRQ
		s.CPUs = append(s.CPUs, watch.CPU{CPUTimes: t})
	}
	return s
}

// busySpan returns three seconds of a host that works without a fault. Its first NIC carries a
// third of its capacity, in frames of 1200 bytes on average, with one interrupt per eight frames;
// the CPUs are half idle. Its servers, clients and resolvers communicate, with the losses of the
// Internet.
func busySpan(h quietHost) *watch.Span {
	s := quietSpan(h, nil, 0.25, 0.1, 0.1)
	c := s.Counters.Values
	var packets uint64
	for _, dev := range h.snapshot.Interfaces {
		if dev.Kind == "loopback" || !dev.Up {
			continue
		}
		speed := dev.SpeedBitsPerSec
		if speed <= 0 {
			speed = 1e9
		}
		// An old bus carries less than its NIC, and that for both directions together.
		if dev.Bus != nil && dev.Bus.CapacityBitsPerSec > 0 {
			speed = min(speed, dev.Bus.CapacityBitsPerSec/2)
		}
		bytes := uint64(speed / 8 / 3 * quietSeconds)
		packets = bytes / 1200
		nic := "nic." + dev.Name + "."
		c[nic+"rx_bytes"], c[nic+"tx_bytes"], c[nic+"rx_packets"], c[nic+"tx_packets"] = bytes, bytes, packets, packets
		if dev.Virtual {
			continue
		}
		for i, irq := range dev.Interrupts {
			rate := float64(packets) / 8 / quietSeconds / float64(len(dev.Interrupts))
			irq.PerSec, irq.Counts = &rate,
				[]host.CPUCount{{CPU: i % len(s.CPUs), Total: uint64(rate * quietSeconds), PerSec: &rate}}
			s.Interrupts = append(s.Interrupts,
				watch.CardInterrupt{Interface: dev.Name, Interrupt: irq, Total: uint64(rate * quietSeconds)})
			s.CPUs[i%len(s.CPUs)].Interrupts += uint64(rate * quietSeconds)
		}
		break
	}
	maps.Copy(c, map[string]uint64{
		"Ip.InReceives": packets / 2, "Ip.InDelivers": packets / 2, "Ip.OutRequests": packets / 2,
		"IpExt.InOctets": packets * 1200,
		"Tcp.InSegs":     packets / 2, "Tcp.OutSegs": packets / 2, "Tcp.RetransSegs": packets / 2 / 5000,
		"Tcp.ActiveOpens": 300, "Tcp.PassiveOpens": 3000,
		"Udp.InDatagrams": 9000, "Udp.OutDatagrams": 9000, "Udp.NoPorts": 12,
		"softnet.processed": packets, "TcpExt.DelayedACKs": 2000, "TcpExt.TCPSACKReorder": 4,
		"TcpExt.TCPLossProbes": 30, "TcpExt.TCPAutoCorking": 500,
	})
	for i := range s.CPUs {
		c[fmt.Sprintf("softnet.%d.processed", i)] = packets / uint64(len(s.CPUs))
		s.CPUs[i].Packets, s.CPUs[i].NetRx = packets/uint64(len(s.CPUs)), packets/uint64(len(s.CPUs))/8
	}
	local, remote := netip.MustParseAddrPort("192.0.2.1:443"), netip.MustParseAddrPort("198.51.100.7:51000")
	s.Sockets = &watch.Sockets{
		Seconds:   quietSeconds,
		Listeners: []watch.Listener{{Local: local, Queued: 3, Limit: 511}},
		Connections: []watch.Connection{
			// A download, an upload, a shell and a program that waits.
			{Local: local, Remote: remote, UnackedBytes: 200_000,
				TCP: tcpinfo.TCPInfo{Sender: true, BytesAcked: 30_000_000, BusySeconds: 2.9, SegsOut: 21_000,
					SegsIn:      10_000,
					RetransSegs: 2,
					RTTSeconds:  0.021, MinRTTSeconds: 0.020, CwndBytes: 250_000, SndMSSBytes: 1448,
					MaxSndWndBytes: 3_000_000, SndWndBytes: 3_000_000, SndBufBytes: 4_000_000,
					WScaleOK: true, CongestionControl: "cubic"}},
			{Local: local, Remote: remote, UnreadBytes: 20_000,
				TCP: tcpinfo.TCPInfo{BytesReceived: 30_000_000, SegsIn: 21_000, RTTSeconds: 0.02, MinRTTSeconds: 0.02,
					RcvBufBytes: 6_000_000},
				Memory: watch.Memory{ReceiveBytes: 21_000, ReceiveLimitBytes: 6_000_000}},
			{Local: local, Remote: remote, IdleSeconds: 0.4, TCP: tcpinfo.TCPInfo{Sender: true, BytesAcked: 900,
				BytesReceived: 200, SegsOut: 9, SegsIn: 9, BusySeconds: 0.2,
				RTTSeconds: 0.02, MinRTTSeconds: 0.02}},
			{Local: local, Remote: remote, IdleSeconds: 90},
		},
		Datagrams: []watch.Datagram{
			{Local: local, Memory: watch.Memory{ReceiveBytes: 2000, ReceiveLimitBytes: 212992}}},
	}
	return s
}

// ordinaryHistory adds to the counters since boot what every host counts in months: restarts of
// programs, bursts, an unplugged cable, peers that disappear. The figures are those of a host that
// carried 3 TB in a hundred days.
func ordinaryHistory(h quietHost) *watch.Span {
	s := *h.history
	s.Seconds = 100 * 86400
	s.Counters = &host.Counters{Values: maps.Clone(h.history.Counters.Values), Seconds: s.Seconds,
		CPUs: h.history.Counters.CPUs}
	const packets = 2_500_000_000
	c := s.Counters.Values
	for _, dev := range h.snapshot.Interfaces {
		if nic := "nic." + dev.Name + "."; dev.Kind != "loopback" && dev.Up {
			c[nic+"rx_bytes"], c[nic+"tx_bytes"], c[nic+"rx_packets"], c[nic+"tx_packets"] = 3e12, 3e12,
				packets, packets
			// A frame of a protocol that the host does not speak (LLDP, a foreign VLAN) is a drop
			// as well.
			c[nic+"rx_dropped"], c[nic+"rx_missed_errors"], c[nic+"carrier_changes"] = 9000, 5000, 6
			c["qdisc."+dev.Name+".drops"], c["qdisc."+dev.Name+".requeues"] = 20_000, 40_000
		}
	}
	maps.Copy(c, map[string]uint64{
		"softnet.processed": packets, "softnet.dropped": 1500, "softnet.time_squeeze": 300_000,
		"Ip.InReceives": packets, "Ip.InDelivers": packets, "Ip.OutRequests": packets, "Tcp.InSegs": packets,
		"Tcp.OutSegs": packets, "Tcp.RetransSegs": packets / 2000,
		"Tcp.ActiveOpens": 4_000_000, "Tcp.PassiveOpens": 30_000_000, "Tcp.InErrs": 40, "Tcp.AttemptFails": 90_000,
		"TcpExt.ListenOverflows": 900, "TcpExt.ListenDrops": 2000, "TcpExt.TCPTimeouts": 200_000,
		"TcpExt.TCPSpuriousRTOs": 5000, "TcpExt.PruneCalled": 5000,
		"TcpExt.RcvPruned":   12,
		"TcpExt.TCPRcvQDrop": 80, "TcpExt.TCPZeroWindowDrop": 60, "TcpExt.TCPToZeroWindowAdv": 40_000,
		"TcpExt.TCPFromZeroWindowAdv": 40_000, "TcpExt.TCPBacklogDrop": 900,
		"TcpExt.TCPSACKReorder": 60_000, "TcpExt.TCPAbortOnTimeout": 9000, "TcpExt.TCPTimeWaitOverflow": 0,
		"TcpExt.TCPReqQFullDoCookies": 2000, "TcpExt.TCPMemoryPressures": 1,
		"TcpExt.TCPMemoryPressuresChrono": 800, "Udp.InDatagrams": 80_000_000, "Udp.RcvbufErrors": 9000,
		"Udp.NoPorts": 50_000, "Udp.InErrors": 9100,
		"conntrack.insert_failed": 900, "conntrack.drop": 300, "neigh.ipv4.res_failed": 30_000,
		"neigh.ipv4.table_fulls": 0, "Icmp.InDestUnreachs": 9000,
	})
	return &s
}

// calm fails the test for every finding above notice.
func calm(t testing.TB, c evidence.Case) {
	t.Helper()
	for _, x := range diagnose.Judge(c) {
		if x.Severity == evidence.Warning || x.Severity == evidence.Critical {
			t.Errorf("%s %s: %s %v", x.Severity, x.Code, x.Title, x.Evidence)
		}
	}
}

func passive(h quietHost, span *watch.Span, sinceBoot bool) evidence.Case {
	w := evidence.Watched("near", h.snapshot, span)
	w.SinceBoot = sinceBoot
	return evidence.Case{Near: h.snapshot, Watched: []evidence.Span{w}}
}

func TestQuietHosts(t *testing.T) {
	for name, h := range quietHosts(t) {
		t.Run(name+"/idle", func(t *testing.T) { calm(t, passive(h, quietSpan(h, nil, 0, 0, 0), false)) })
		t.Run(name+"/nearly idle", func(t *testing.T) {
			calm(t, passive(h, quietSpan(h, map[string]uint64{"Ip.InReceives": 40, "Ip.InDelivers": 40,
				"Tcp.InSegs": 20, "Tcp.OutSegs": 20, "Udp.InDatagrams": 10,
				"softnet.processed": 90}, 0.01, 0.01, 0.001), false))
		})
		t.Run(name+"/busy and well", func(t *testing.T) { calm(t, passive(h, busySpan(h), false)) })
		t.Run(name+"/its history", func(t *testing.T) { calm(t, passive(h, h.history, true)) })
		t.Run(name+"/months of history", func(t *testing.T) { calm(t, passive(h, ordinaryHistory(h), true)) })
	}
}

// TestQuietHostsCanShowAFault adds one more movement, which must give a warning: a judge that never
// warns would pass the other tests as well.
func TestQuietHostsCanShowAFault(t *testing.T) {
	for name, h := range quietHosts(t) {
		s := busySpan(h)
		s.Counters.Values["Udp.RcvbufErrors"] = 900
		found := diagnose.Judge(passive(h, s, false))
		if x := found[0]; x.Code != evidence.UDPSocketOverflow || x.Severity != evidence.Warning {
			t.Errorf("%s: %s %s", name, x.Severity, x.Title)
		}
	}
}

// ordinary lists movements that a healthy host may show in three seconds, each with the largest
// that its rule documents as no warning. Shares are of the packets that the host moved.
var ordinary = []struct {
	counter string  // of the first card that is up, where the name has a *
	most    uint64  // alone
	share   float64 // of the packets, if that is more
}{
	// Accidents: one or two are not a state, and of UDP fewer than ten a second.
	{"conntrack.drop", 2, 0}, {"conntrack.insert_failed", 100, 0}, {"conntrack.early_drop", 2, 0},
	{"neigh.ipv4.table_fulls", 2, 0}, {"neigh.ipv6.table_fulls", 2, 0}, {"neigh.ipv4.res_failed", 500, 0},
	{"TcpExt.ListenOverflows", 2, 0}, {"TcpExt.ListenDrops", 50, 0}, {"TcpExt.TCPReqQFullDoCookies", 1000, 0},
	{"Udp.RcvbufErrors", 29, 0}, {"Udp.NoPorts", 1000, 0}, {"Udp.MemErrors", 29, 0},
	{"TcpExt.PruneCalled", 1000, 0}, {"TcpExt.RcvPruned", 20, 0}, {"TcpExt.TCPRcvQDrop", 50, 0},
	{"TcpExt.TCPAbortOnMemory", 2, 0}, {"TcpExt.TCPMemoryPressures", 2, 0},
	{"TcpExt.TCPMemoryPressuresChrono", 140, 0}, {"TcpExt.TCPToZeroWindowAdv", 500, 0},
	{"TcpExt.TCPFromZeroWindowAdv", 500, 0}, {"TcpExt.TCPTimeWaitOverflow", 100, 0},
	{"sockets.tcp_tw", 200_000, 0},
	// Losses that do not slow a flow.
	{"softnet.dropped", 19, 0}, {"softnet.time_squeeze", 290, 0}, {"softnet.flow_limit", 19, 0},
	{"nic.*.rx_missed_errors", 4, 0.9e-3}, {"nic.*.rx_dropped", 4, 0.9e-3}, {"nic.*.rx_fifo_errors", 4, 0},
	{"nic.*.tx_dropped", 4, 0.9e-3}, {"nic.*.rx_crc_errors", 2,
		0.9e-6},
	{"qdisc.*.drops", 4, 0.9e-3}, {"qdisc.*.requeues", 500, 0}, {"nic.*.carrier_changes", 0, 0},
	{"nic.*.multicast", 1000, 0},
	// Losses of the Internet.
	{"Tcp.RetransSegs", 10, 0.9e-3}, {"TcpExt.TCPTimeouts", 2, 0}, {"TcpExt.TCPSpuriousRTOs", 2, 0},
	{"TcpExt.TCPLossProbes", 100, 0}, {"TcpExt.TCPSACKReorder", 20, 0},
	{"TcpExt.TCPDSACKRecv", 20, 0}, {"TcpExt.DelayedACKs", 5000, 0}, {"Tcp.InErrs", 2, 0}, {"Ip.InDiscards", 4, 0},
	{"Icmp.InDestUnreachs", 50, 0},
	{"TcpExt.TCPSynRetrans", 30, 0},
	{"TcpExt.TCPBacklogDrop", 10, 0}, {"TcpExt.TCPOFOQueue", 500, 0}, {"TcpExt.TCPAbortOnTimeout", 5, 0},
}

// FuzzQuiet moves the counters of idle and busy hosts by any mixture of ordinary movements. Each
// two bytes of the input move one counter, from nothing to its ordinary maximum.
func FuzzQuiet(f *testing.F) {
	hosts := quietHosts(f)
	names := slices.Sorted(maps.Keys(hosts))
	most := make([]byte, 2*len(ordinary))
	for i := range most {
		most[i] = 0xff
	}
	for i := range names {
		for _, busy := range []bool{false, true} {
			f.Add(byte(i), busy, byte(0), most)
			f.Add(byte(i), busy, byte(255), most)
		}
	}
	for j := range ordinary { // each alone, on one host after the other
		one := make([]byte, len(most))
		one[2*j], one[2*j+1] = 0xff, 0xff
		f.Add(byte(j), j%2 == 0, byte(128), one)
	}
	f.Fuzz(func(t *testing.T, which byte, busy bool, work byte, moves []byte) {
		h := hosts[names[int(which)%len(names)]]
		s := quietSpan(h, nil, 0, 0, 0)
		if busy {
			s = busySpan(h)
		}
		card, packets := "eth0", uint64(0)
		for _, dev := range h.snapshot.Interfaces {
			if dev.Kind != "loopback" && dev.Up {
				card, packets = dev.Name, s.Counters.Values["nic."+dev.Name+".rx_packets"]
				break
			}
		}
		for i, o := range ordinary {
			if 2*i+1 >= len(moves) {
				break
			}
			limit := max(o.most, uint64(o.share*float64(packets)))
			by := float64(binary.BigEndian.Uint16(moves[2*i:])) / 0xffff
			s.Counters.Values[strings.Replace(o.counter, "*", card, 1)] += uint64(by * float64(limit))
		}
		// Programs use up to 60 % of the CPUs.
		for i := range s.CPUs {
			t := &s.CPUs[i].CPUTimes
			more := min(quietSeconds*0.6*float64(work)/255-t.User, t.Idle)
			if more > 0 {
				t.User, t.Idle = t.User+more, t.Idle-more
			}
		}
		calm(t, passive(h, s, false))
	})
}
