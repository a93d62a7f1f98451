package drops

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhichCountersAreDrops(t *testing.T) {
	for name, want := range map[string]Stage{
		"nic.eth0.rx_dropped": Card, "nic.eth0.100.tx_dropped": Card, "nic.eth0.rx_missed_errors": Ring,
		"nic.eth0.rx_fifo_errors": Ring, "nic.eth0.tx_fifo_errors": Card,
		"softnet.dropped": Softnet, "softnet.flow_limit": Softnet, "softnet.0.dropped": "", "softnet.time_squeeze": "",
		"qdisc.eth0.drops": Qdisc, "qdisc.eth0.overlimits": "", "qdisc.eth0.requeues": "",
		"conntrack.drop": Conntrack, "conntrack.insert_failed": Conntrack, "conntrack.early_drop": "",
		"conntrack.invalid": "", "conntrack.max": "",
		"nfqueue.dropped": NFQueue, "nfqueue.user_dropped": NFQueue, "nfqueue.waiting": "",
		"neigh.ipv4.table_fulls": Neighbour, "neigh.ipv6.unresolved_discards": Neighbour, "neigh.ipv4.entries": "",
		"TcpExt.TCPBacklogDrop": TCP, "TcpExt.ListenDrops": TCP, "TcpExt.TCPRcvQDrop": TCP,
		"TcpExt.PFMemallocDrop": TCP, "TcpExt.OfoPruned": TCP,
		"TcpExt.PruneCalled": "", "TcpExt.LockDroppedIcmps": "", "TcpExt.TCPDeferAcceptDrop": "",
		"TcpExt.TCPTimeouts": "", "Tcp.RetransSegs": "",
		"Udp.RcvbufErrors": Socket, "Udp.MemErrors": Socket, "Udp.InErrors": "", "Ip.InDiscards": IP,
		"Ip6.OutDiscards":        IP,
		"nic.eth0.rx_crc_errors": "", "nic.eth0.rx_nohandler": "", "nic.eth0.rx_bytes": "",
		"ethtool.eth0.rx_missed_errors": "", "nic.": "", "": "",
	} {
		var wanted []Drop
		if want != "" {
			wanted = []Drop{{name, 7, want}}
		}
		if d := cmp.Diff(append([]Drop{}, wanted...), Find(map[string]uint64{name: 7}, nil)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func TestDropsAreSortedAndNeverNil(t *testing.T) {
	if d := Find(nil, nil); d == nil || len(d) != 0 {
		t.Errorf("%#v", d)
	}
	got := Find(map[string]uint64{"qdisc.b.drops": 5, "qdisc.a.drops": 5, "nic.a.rx_dropped": 9, "Tcp.InSegs": 100,
		"softnet.dropped": 0}, nil)
	want := []Drop{{"nic.a.rx_dropped", 9, Card}, {"qdisc.a.drops", 5, Qdisc}, {"qdisc.b.drops", 5, Qdisc}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	along := Along([]Drop{{"Udp.RcvbufErrors", 9, Socket}, {"qdisc.a.drops", 5, Qdisc}, {"nic.a.rx_dropped", 1, Card},
		{"qdisc.b.drops", 6, Qdisc}})
	want = []Drop{{"nic.a.rx_dropped", 1, Card}, {"qdisc.b.drops", 6, Qdisc}, {"qdisc.a.drops", 5, Qdisc},
		{"Udp.RcvbufErrors", 9, Socket}}
	if d := cmp.Diff(want, along); d != "" {
		t.Errorf("along the way (-want +got):\n%s", d)
	}
}

// TestNoPacketIsReportedTwice has, for each way in which two counters count one packet, the drops
// that remain to be reported.
func TestNoPacketIsReportedTwice(t *testing.T) {
	for _, c := range []struct {
		name     string
		counters map[string]uint64
		drivers  map[string]string
		want     []Drop
	}{
		{"the backlog, and the device that the packets came by",
			map[string]uint64{"softnet.dropped": 40, "nic.eth0.rx_dropped": 45, "nic.eth1.rx_dropped": 3}, nil,
			[]Drop{{"softnet.dropped", 40, Softnet}, {"nic.eth0.rx_dropped", 5, Card},
				{"nic.eth1.rx_dropped", 3, Card}}},
		{"the backlog, over two devices", map[string]uint64{"softnet.dropped": 40, "nic.eth0.rx_dropped": 30,
			"nic.eth1.rx_dropped": 12}, nil,
			[]Drop{{"softnet.dropped", 40, Softnet}, {"nic.eth1.rx_dropped", 2, Card}}},
		{"the backlog behind a veth", map[string]uint64{"softnet.dropped": 40, "nic.a.tx_dropped": 40,
			"nic.b.rx_dropped": 40, "nic.eth0.tx_dropped": 7},
			map[string]string{"a": "veth", "b": "veth", "eth0": "e1000e"},
			[]Drop{{"softnet.dropped", 40, Softnet}, {"nic.eth0.tx_dropped", 7, Card}}},
		{"the flow limit is in the backlog's", map[string]uint64{"softnet.dropped": 10, "softnet.flow_limit": 4}, nil,
			[]Drop{{"softnet.dropped", 6, Softnet}, {"softnet.flow_limit", 4, Softnet}}},
		{"a ring by three names", map[string]uint64{"nic.eth0.rx_missed_errors": 9, "nic.eth0.rx_fifo_errors": 9,
			"nic.eth0.rx_over_errors": 2}, nil,
			[]Drop{{"nic.eth0.rx_missed_errors", 9, Ring}}},
		{"a ring, counted by the queues too",
			map[string]uint64{"nic.eth0.rx_missed_errors": 9, "ethtool.eth0.rx_queue_0_drops": 5,
				"ethtool.eth0.rx_queue_13_drops":  4,
				"ethtool.eth0.rx_no_buffer_count": 1000}, map[string]string{"eth0": "igb"},
			[]Drop{{"nic.eth0.rx_missed_errors", 9, Ring}}},
		{"two cards of one driver", map[string]uint64{"ethtool.eth0.rx_queue_0_drops": 5,
			"ethtool.eth1.rx_queue_0_drops": 6, "ethtool.eth1.rx_queue_1_drops": 1},
			map[string]string{"eth0": "igb", "eth1": "igb"},
			[]Drop{{"ethtool.eth1.rx_queue_#_drops", 7, Ring}, {"ethtool.eth0.rx_queue_0_drops", 5, Ring}}},
		{"a driver that puts its ring into rx_dropped",
			map[string]uint64{"nic.ens5.rx_dropped": 12, "ethtool.ens5.rx_overruns": 10, "ethtool.ens5.rx_drops": 9},
			map[string]string{"ens5": "ena"},
			[]Drop{{"ethtool.ens5.rx_overruns", 10, Ring}, {"nic.ens5.rx_dropped", 2, Card}}},
		{"ring and bus are two places", map[string]uint64{"ethtool.p1.rx_out_of_buffer": 8,
			"nic.p1.rx_missed_errors": 8, "ethtool.p1.rx_discards_phy": 5, "ethtool.p1.rx_prio0_discards": 5},
			map[string]string{"p1": "mlx5_core"},
			[]Drop{{"nic.p1.rx_missed_errors", 8, Ring}, {"ethtool.p1.rx_discards_phy", 5, Card}}},
		{"a counter with a dot, of an interface with a dot", map[string]uint64{"ethtool.eth0.5.port.rx_dropped": 3},
			map[string]string{"eth0": "igb", "eth0.5": "i40e"},
			[]Drop{{"ethtool.eth0.5.port.rx_dropped", 3, Ring}}},
		{"a bond, which is the sum of its members",
			map[string]uint64{"nic.bond0.rx_dropped": 6, "nic.eth0.rx_dropped": 6, "nic.bond0.rx_missed_errors": 4},
			map[string]string{"bond0": "bonding"}, []Drop{{"nic.eth0.rx_dropped", 6, Card}}},
		{"the qdisc, the IP layer above it, and the socket",
			map[string]uint64{"qdisc.eth0.drops": 20, "Ip.OutDiscards": 26, "Udp.SndbufErrors": 30}, nil,
			[]Drop{{"qdisc.eth0.drops", 20, Qdisc}, {"Ip.OutDiscards", 6, IP}, {"Udp.SndbufErrors", 4, Socket}}},
		{"no link address", map[string]uint64{"neigh.ipv4.table_fulls": 5, "Ip.OutDiscards": 5, "Ip6.OutDiscards": 5},
			nil,
			[]Drop{{"Ip6.OutDiscards", 5, IP}, {"neigh.ipv4.table_fulls", 5, Neighbour}}},
		{"a clash of connections", map[string]uint64{"conntrack.drop": 5, "conntrack.insert_failed": 9,
			"conntrack.clashres": 3}, nil,
			[]Drop{{"conntrack.drop", 5, Conntrack}, {"conntrack.insert_failed", 1, Conntrack}}},
		{"refused handshakes", map[string]uint64{"TcpExt.ListenDrops": 9, "TcpExt.ListenOverflows": 5,
			"TcpExt.TCPReqQFullDrop": 4}, nil,
			[]Drop{{"TcpExt.ListenOverflows", 5, TCP}, {"TcpExt.TCPReqQFullDrop", 4, TCP}}},
		{"a receive queue that was pruned in vain", map[string]uint64{"TcpExt.RcvPruned": 9, "TcpExt.TCPRcvQDrop": 6,
			"TcpExt.TCPOFODrop": 2, "TcpExt.PruneCalled": 80}, nil,
			[]Drop{{"TcpExt.TCPRcvQDrop", 6, TCP}, {"TcpExt.TCPOFODrop", 2, TCP}, {"TcpExt.RcvPruned", 1, TCP}}},
	} {
		if d := cmp.Diff(c.want, Find(c.counters, c.drivers)); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
}

func TestPerGigabyte(t *testing.T) {
	d := Drop{Total: 30}
	if got := d.PerGigabyte(5e9); got != 6 {
		t.Errorf("30 in 5 GB: %v", got)
	}
	if got := d.PerGigabyte(0); got != 0 {
		t.Errorf("nothing carried: %v", got)
	}
}

// FuzzDrops: for any names of counters, each place has a stage, was counted, and is reported
// once.
func FuzzDrops(f *testing.F) {
	f.Add("nic.eth0.rx_dropped ethtool.eth0.rx_queue_0_drops ethtool.eth0.rx_queue_1_drops "+
		"softnet.dropped TcpExt.ListenDrops", "eth0", "igb", uint64(3))
	f.Fuzz(func(t *testing.T, names, card, driver string, n uint64) {
		counters := make(map[string]uint64)
		for i, name := range strings.Fields(names) {
			counters[name] = n>>(i%64) + uint64(i)
		}
		seen := make(map[string]bool)
		for _, d := range Find(counters, map[string]string{card: driver}) {
			if _, counted := counters[d.Place]; !counted && !strings.Contains(d.Place, "#") || d.Total == 0 ||
				d.Stage == "" || seen[d.Place] {
				t.Errorf("%+v of %v", d, counters)
			}
			seen[d.Place] = true
		}
	})
}
