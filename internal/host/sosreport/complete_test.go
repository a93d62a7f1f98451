package sosreport

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/optic"
	"github.com/linerate/linerate/internal/kernel/hostfs"
)

// networking is the output of a command of that plugin.
func networkingFile(command, output string) hostfs.Entry {
	return hostfs.Entry{Name: "sos_commands/networking/" + mangle(command), Content: []byte(output)}
}

// warned reports whether a report has a warning that contains a text.
func warned(r *Report, text string) bool {
	return slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, text) })
}

// Reports of support engineers often lack ethtool -i or /sys. A card is not software for that, and
// software no card. The lines are from the hosts in the tests of hotsos (Ubuntu 20.04) and of
// insights-core (RHEL 6 to 9, Fedora).
func TestHardwareWithoutItsBus(t *testing.T) {
	const vnet = "    link/ether 52:54:00:17:84:7d brd ff:ff:ff:ff:ff:ff"
	r := collected(t, []hostfs.Entry{
		networkingFile("ip -d address", `4: ens5: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc fq_codel state UP group default qlen 1000
    link/ether 52:54:00:5c:d9:47 brd ff:ff:ff:ff:ff:ff promiscuity 0 minmtu 68 maxmtu 65535 numtxqueues 1 numrxqueues 1 gso_max_size 65536
6: ens7: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc fq_codel master ovs-system state UP group default qlen 1000
    link/ether 52:54:00:78:19:c3 brd ff:ff:ff:ff:ff:ff promiscuity 1 minmtu 68 maxmtu 65535
    openvswitch_slave numtxqueues 1 numrxqueues 1 gso_max_size 65536 gso_max_segs 65535
10: ovs-system: <BROADCAST,MULTICAST> mtu 1500 qdisc noop state DOWN group default qlen 1000
    link/ether 1a:d8:a5:27:9b:61 brd ff:ff:ff:ff:ff:ff promiscuity 1 minmtu 68 maxmtu 65535
    openvswitch numtxqueues 1 numrxqueues 1 gso_max_size 65536 gso_max_segs 65535
17: veth1883dceb@if16: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP group default qlen 1000
    link/ether 4e:68:29:1e:ed:52 brd ff:ff:ff:ff:ff:ff link-netnsid 0 promiscuity 1 minmtu 68 maxmtu 65535
    veth
20: ens1f0np0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP group default qlen 1000
    link/ether b8:ce:f6:ca:e6:c4 brd ff:ff:ff:ff:ff:ff promiscuity 0 numtxqueues 8 parentbus pci parentdev 0000:98:00.0
21: br7: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP
    link/ether 52:54:00:17:84:7d brd ff:ff:ff:ff:ff:ff promiscuity 0
22: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN
    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00 promiscuity 0
`),
		networkingFile("ethtool -i br7", "driver: bridge\nversion: 2.3\nfirmware-version: N/A\nbus-info: N/A\n"),
	})
	s, err := r.Root().Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]bool)
	for _, i := range s.Interfaces {
		got[i.Name] = i.Virtual
	}
	for name, virtual := range map[string]bool{"ens5": false, "ens7": false, "ens1f0np0": false, "ovs-system": true,
		"veth1883dceb": true, "br7": true, "lo": true} {
		if is, there := got[name]; !there || is != virtual {
			t.Errorf("%s: there %v, software %v", name, there, is)
		}
	}
	if !warned(r, "ethtool -i of ens5, ens7, ens1f0np0") {
		t.Errorf("the missing drivers are not named: %q", r.Warnings)
	}
	i := s.Interfaces[slices.IndexFunc(s.Interfaces, func(i host.Interface) bool { return i.Name == "ens1f0np0" })]
	if i.Bus == nil || i.Bus.Address != "0000:98:00.0" {
		t.Errorf("the bus that ip names: %+v", i.Bus)
	}

	// Without -d only ethtool distinguishes them.
	r = collected(t, []hostfs.Entry{
		networkingFile("ip address", `Message truncated
2: eth7: <NO-CARRIER,BROADCAST,MULTICAST,SLAVE,UP> mtu 1500 qdisc mq state DOWN qlen 1000
    link/ether 00:11:3f:e2:f5:9f brd ff:ff:ff:ff:ff:ff
4: virbr0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP mode DEFAULT group default qlen 1000
`+vnet+`
5: eth7.57@eth7: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP
    link/ether 00:11:3f:e2:f5:9f brd ff:ff:ff:ff:ff:ff
8: tun0: <POINTOPOINT,MULTICAST,NOARP,UP,LOWER_UP> mtu 1360 qdisc fq_codel state UNKNOWN qlen 100
    link/none
`),
		networkingFile("ethtool -g eth7", "Ring parameters for eth7:\nPre-set maximums:\nRX:     2047\nTX:     511\n\n"+
			"Current hardware settings:\nRX:     200\nTX:     511\n"),
		networkingFile("ethtool -i virbr0", "driver: bridge\nversion: 2.3\nfirmware-version: N/A\nbus-info: N/A\n"),
		networkingFile("ethtool -i tun0", "driver: tun\nversion: 1.6\nfirmware-version:\nbus-info: tun\n"),
		networkingFile("ethtool eth7.57",
			"Settings for eth7.57:\n    Supported link modes: 1000baseT/Full\n    Speed: 1000Mb/s\n"),
	})
	if s, err = r.Root().Snapshot(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, i := range s.Interfaces {
		if i.Virtual != (i.Name != "eth7") {
			t.Errorf("%s: software %v", i.Name, i.Virtual)
		}
	}
	if !warned(r, "Message truncated") {
		t.Errorf("ip itself says that it is incomplete: %q", r.Warnings)
	}
}

// A file that ended early is named, and half a number at its end is no number. A command that sos
// stopped leaves such a file or an empty one, and a long output only its end.
func TestIncompleteFiles(t *testing.T) {
	r := collected(t, []hostfs.Entry{
		networkingFile("ip -d address",
			"2: eth0: <UP,LOWER_UP> mtu 1500\n    link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff promiscuity 0\n"),
		networkingFile("ethtool -i eth0", "driver: e1000e\nbus-info: 0000:00:19.0\n"),
		networkingFile("ethtool -S eth0", "NIC statistics:\n    rx_packets: 912398\n    rx_missed_errors: 65"),
		networkingFile("ethtool -g eth0", ""),
		networkingFile("ip -6 route show table all", ""),
		{Name: "sos_commands/date/date", Content: []byte("Mon Dec 25 22:13:20 UTC 2023")},
		{Name: "sos_commands/networking/ss_-peaonmi", Target: "../../sos_strings/networking/ss_-peaonmi.tailed"},
		{Name: "sos_strings/networking/ss_-peaonmi.tailed",
			Content: []byte("0.0.1:5000 0.0.0.0:*\ntcp LISTEN 0 128 0.0.0.0:22 0.0.0.0:*\n")},
		{Name: "proc/net/snmp", Content: []byte("Tcp: RetransSegs\nTcp: 7\nUdp: InDatagrams\nUdp: 12")},
		{Name: "proc/self/net/netstat", Content: []byte("TcpExt: TCPTimeouts\nTcpExt: 3\n")},
	})
	s, err := r.Root().Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c, err := r.Root().Counters()
	if err != nil {
		t.Fatal(err)
	}
	if _, known := c.Values["nic.eth0.rx_missed_errors"]; known || c.Values["Tcp.RetransSegs"] != 7 {
		t.Errorf("counters %v", c.Values)
	}
	if s.Time.IsZero() || len(r.Sockets()) != 1 {
		t.Errorf("time %v, sockets %+v", s.Time, r.Sockets())
	}
	for _, want := range []string{
		"ethtool_-S_eth0: incomplete: its last line has no end", "proc/net/snmp: incomplete",
		"ss_-peaonmi: incomplete: sos kept only the end",
		"empty outputs, so what they show is not known: ethtool_-g_eth0",
	} {
		if !warned(r, want) {
			t.Errorf("no warning with %q: %q", want, r.Warnings)
		}
	}
	// sos 2 cut all of them, which says nothing.
	r = collected(t, []hostfs.Entry{
		networkingFile("ip address", "1: lo: <UP> mtu 16436\n    inet 127.0.0.1/8 scope host lo"),
		networkingFile("ethtool -i eth0", "driver: e1000e\nbus-info: 0000:00:19.0")})
	if warned(r, "incomplete") {
		t.Errorf("sos 2: %q", r.Warnings)
	}
}

// The kernel takes any bytes as a name, and sos writes what the tools print.
func TestOddNames(t *testing.T) {
	r := collected(t, []hostfs.Entry{
		networkingFile("ip -d address",
			"2: \xff\xfe0: <UP,LOWER_UP> mtu 1500\r\n    link/ether 02:00:00:00:00:01 promiscuity 0\r\n"+
				"3: enp101s0f1np1.9@enp101s0f1np1: <UP,LOWER_UP> mtu 1500 qdisc noqueue state UP\r\n"+
				"    link/ether 02:00:00:00:00:02 brd ff:ff:ff:ff:ff:ff promiscuity 0\r\n"+
				"    vlan protocol 802.1Q id 9 <REORDER_HDR>\r\n"+
				"4: enp101s0f1np1: <UP,LOWER_UP> mtu 1500\r\n    link/ether 02:00:00:00:00:02 promiscuity 0\r\n"+
				"    altname enp101s0f1np1alias\r\n"),
		networkingFile("ethtool -i enp101s0f1np1", "driver: mlx5_core\r\nbus-info: 0000:65:00.1\r\n"),
		networkingFile("ethtool -S enp101s0f1np1", "NIC statistics:\r\n     rx_packets: 18446744073709551615\r\n"+
			"     rx_bytes: 18446744073709551616\r\n"+
			"     rx_out_of_buffer: -1\r\n"),
	})
	s, err := r.Root().Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Interfaces) != 2 || s.Interfaces[0].Name != "enp101s0f1np1.9" || s.Interfaces[1].Bus == nil ||
		!slices.Equal(s.Interfaces[0].Below, []string{"enp101s0f1np1"}) {
		t.Errorf("%+v", s.Interfaces)
	}
	if !warned(r, "left out: not a valid name") {
		t.Errorf("%q", r.Warnings)
	}
}

// Without /proc the totals of ip -s are the counters of the interfaces: two reports of such a host
// show what happened between them. From RHEL 7 in the tests of insights-core.
func TestCountersOfIP(t *testing.T) {
	r := collected(t, []hostfs.Entry{networkingFile("ip -s -d link",
		`2: eno1: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq master ovs-system state UP qlen 1000
    link/ether 38:90:a5:80:43:c9 brd ff:ff:ff:ff:ff:ff promiscuity 1
    openvswitch_slave addrgenmode eui64 numtxqueues 8 numrxqueues 8 gso_max_size 65536 gso_max_segs 65535
    RX: bytes  packets  errors  dropped overrun mcast
    108341661705196 87334303936 0       5632499 0       7110182
    TX: bytes  packets  errors  dropped carrier collsns
    297580787699558 95024371467 0       0       0       0
`)})
	c, err := r.Root().Counters()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]uint64{"rx_bytes": 108341661705196, "rx_packets": 87334303936,
		"rx_dropped": 5632499, "multicast": 7110182, "tx_bytes": 297580787699558, "tx_packets": 95024371467} {
		if got := c.Values["nic.eno1."+name]; got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}

// Without ip -s the driver's own totals are those of the interface: else each share of its losses
// would be the whole.
func TestCountersOfDriver(t *testing.T) {
	const link = "2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP\n" +
		"    link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff promiscuity 0\n"
	const statistics = "NIC statistics:\n     rx_packets: 900000000\n     tx_packets: 800000000\n" +
		"     rx_bytes: 1300000000000\n     rx_crc_errors: 50000\n"
	for _, more := range []string{"", "     tx_bytes: 7\n"} {
		r := collected(t, []hostfs.Entry{networkingFile("ip -d address", link),
			networkingFile("ethtool -S eth0", statistics+more), networkingFile("netstat -s", "Tcp:\n    5 resets sent\n")})
		c, err := r.Root().Counters()
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]uint64{"nic.eth0.rx_packets": 900000000, "ethtool.eth0.rx_crc_errors": 50000}
		for name, n := range want {
			// With a part of the totals nothing shows what the others are.
			if more == "" {
				n = 0
			}
			if got := c.Values[name]; got != n {
				t.Errorf("%s: %d, want %d", name, got, n)
			}
		}
	}
}

// A report with nothing in it is refused with the reason.
func TestNothingIsLeft(t *testing.T) {
	c := newCollector()
	if err := c.file("sos_commands/networking/ip_-d_address", 0, strings.NewReader("")); err != nil {
		t.Fatal(err)
	}
	_, err := c.report(t.Context(), "")
	if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "empty outputs") {
		t.Error(err)
	}
}

// TestBondOfProc has a bond of RHEL 5, whose ip knows neither kind nor mode of it.
func TestBondOfProc(t *testing.T) {
	r := collected(t, []hostfs.Entry{networkingFile("ip address", `2: eth1: <BROADCAST,MULTICAST,SLAVE,UP,LOWER_UP> mtu 1500 qdisc pfifo_fast master bond0 qlen 1000
    link/ether 00:16:35:5e:42:fc brd ff:ff:ff:ff:ff:ff
3: eth2: <BROADCAST,MULTICAST,SLAVE,UP,LOWER_UP> mtu 1500 qdisc pfifo_fast qlen 1000
    link/ether 00:16:35:5e:42:fc brd ff:ff:ff:ff:ff:ff
5: bond0: <BROADCAST,MULTICAST,MASTER,UP,LOWER_UP> mtu 1500 qdisc noqueue
    link/ether 00:16:35:5e:42:fc brd ff:ff:ff:ff:ff:ff
`), networkingFile("ethtool -i eth1", "driver: bnx2\nbus-info: 0000:03:00.0\n"),
		networkingFile("ethtool -i eth2", "driver: bnx2\nbus-info: 0000:05:00.0\n"),
		{Name: "proc/net/bonding/bond0", Content: []byte("Bonding Mode: IEEE 802.3ad Dynamic link aggregation\n\n" +
			"Slave Interface: eth1\n\nSlave Interface: eth2\n\nSlave Interface: ../../etc\n")}})
	s, err := r.Root().Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cards := []string{"eth1", "eth2"}
	want := host.Layers{Kind: "bond", BondMode: "802.3ad", Below: cards, Carriers: cards}
	if diff := cmp.Diff(want, s.Interfaces[2].Layers); diff != "" || !s.Interfaces[2].Virtual {
		t.Errorf("bond0 (-want +got):\n%s", diff)
	}
	if !wanted("proc/net/bonding/bond0") || wanted("proc/net/bonding/a/b") {
		t.Error("the files of bonds")
	}
}

// TestModuleOfReport reads a module that ethtool -m showed, through to the interface.
func TestModuleOfReport(t *testing.T) {
	b, err := os.ReadFile("printed/testdata/module-cmis-400g-xdr4.txt")
	if err != nil {
		t.Fatal(err)
	}
	r := collected(t, append(render(t, tiny(), sos4), networkingFile("ethtool -m eth0", string(b))))
	s, err := r.Root().Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	card := s.Interfaces[0].Card
	if card == nil || card.Optic == nil || card.Optic.Part != "QDD-400G-XDR4" || len(card.Optic.Readings) != 26 ||
		card.Optic.Readings[0].State != optic.HighWarning {
		t.Errorf("card %+v", card)
	}
}
