package printed

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/linerate/linerate/internal/host"
)

// equal compares what a parser made of a text.
func equal(t *testing.T, name string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func TestParseDriver(t *testing.T) {
	equal(t, "e1000", Driver{"e1000", "7.3.21-k8-NAPI", "N/A", "0000:00:03.0"},
		ParseDriver("driver: e1000\r\nversion: 7.3.21-k8-NAPI\r\nfirmware-version: N/A\r\nbus-info: 0000:00:03.0\r\n"+
			"supports-statistics: yes\r\n"))
	equal(t, "tap", Driver{Name: "tun", Version: "1.6"},
		ParseDriver("driver: tun\nversion: 1.6\nfirmware-version: \nbus-info: tap\n"))
	equal(t, "bridge", Driver{Name: "bridge", Version: "2.3", Firmware: "N/A"},
		ParseDriver("driver: bridge\nversion: 2.3\nfirmware-version: N/A\nbus-info: N/A\n"))
	equal(t, "none", Driver{}, ParseDriver("Cannot get driver information: Operation not supported\n"))
}

func TestParseStatistics(t *testing.T) {
	equal(t, "names of all sorts", map[string]uint64{
		"rx_packets": 1<<64 - 1, "[0]: rx_ucast_packets": 12, "Tx Queue#": 0, "rx0 packets": 7, "fec: corrected": 3,
	}, ParseStatistics("NIC statistics:\n     rx_packets: 18446744073709551615\n     [0]: rx_ucast_packets: 12\n"+
		"      Tx Queue#: 0\n     rx0 packets: 7\n     fec: corrected: 3\n     broken: x\n     : 4\n"))
	for _, none := range []string{"", "no stats available\n", "NIC statistics:\n", "Cannot get stats: 5\n"} {
		if got := ParseStatistics(none); got != nil {
			t.Errorf("%q: %v", none, got)
		}
	}
}

func TestParseRings(t *testing.T) {
	equal(t, "ethtool 6.1", &host.Rings{Rx: host.Ring{Current: 256, Max: 4096}, Tx: host.Ring{Current: 128, Max: 4096}},
		ParseRings(
			"Ring parameters for eth0:\nPre-set maximums:\nRX:\t\t4096\nRX Mini:\tn/a\nRX Jumbo:\tn/a\nTX:\t\t4096\n"+
				"Current hardware settings:\nRX:\t\t256\nRX Mini:\tn/a\nRX Jumbo:\tn/a\nTX:\t\t128\nRX Buf Len:\t\tn/a\n"+
				"TX Push:\toff\n"))
	equal(t, "ethtool 4.8", &host.Rings{Rx: host.Ring{Current: 512, Max: 512}, Tx: host.Ring{Current: 512, Max: 512}},
		ParseRings(
			"Ring parameters for em1:\nPre-set maximums:\nRX:\t\t512\nRX Mini:\t0\nRX Jumbo:\t0\nTX:\t\t512\n"+
				"Current hardware settings:\nRX:\t\t512\nRX Mini:\t0\nRX Jumbo:\t0\nTX:\t\t512\n\n"))
	for _, none := range []string{"", "netlink error: Operation not supported\n",
		"Ring parameters for lo:\nCannot get device ring settings: Operation not supported\n"} {
		if got := ParseRings(none); got != nil {
			t.Errorf("%q: %v", none, got)
		}
	}
}

func TestParseChannels(t *testing.T) {
	equal(t, "combined", &host.Channels{Combined: 4, MaxCombined: 63}, ParseChannels(
		"Channel parameters for eth0:\nPre-set maximums:\nRX:\t\tn/a\nTX:\t\tn/a\nOther:\t\t1\nCombined:\t63\n"+
			"Current hardware settings:\nRX:\t\tn/a\nTX:\t\tn/a\nOther:\t\t1\nCombined:\t4\n"))
	if got := ParseChannels("netlink error: Operation not supported\n"); got != nil {
		t.Errorf("no channels: %v", got)
	}
}

func TestParseFeatures(t *testing.T) {
	equal(t, "ethtool 6.1", map[string]host.Feature{
		"rx-checksum": {On: true}, "tx-checksum-ipv4": {Fixed: true}, "tx-checksum-ip-generic": {On: true},
		"tx-scatter-gather":   {On: true},
		"tx-tcp-segmentation": {}, "tx-generic-segmentation": {On: true}, "rx-gro": {On: true}, "rx-lro": {Fixed: true},
		"highdma": {On: true, Fixed: true},
	}, ParseFeatures("Features for eth0:\nrx-checksumming: on\ntx-checksumming: on\n\ttx-checksum-ipv4: off [fixed]\n"+
		"\ttx-checksum-ip-generic: on\nscatter-gather: on\n\ttx-scatter-gather: on\n"+
		"tcp-segmentation-offload: off\n\ttx-tcp-segmentation: off [requested on]\ngeneric-segmentation-offload: on\n"+
		"generic-receive-offload: on\nlarge-receive-offload: off [fixed]\nhighdma: on [fixed]\n"))
	equal(t, "ethtool 2.6", map[string]host.Feature{
		"rx-checksum": {On: true}, "tx-scatter-gather": {On: true}, "tx-tcp-segmentation": {On: true},
		"tx-udp-fragmentation":    {},
		"tx-generic-segmentation": {On: true}, "rx-gro": {}, "rx-lro": {},
	}, ParseFeatures("Offload parameters for eth0:\nrx-checksumming: on\ntx-checksumming: on\nscatter-gather: on\n"+
		"tcp-segmentation-offload: on\nudp-fragmentation-offload: off\n"+
		"generic-segmentation-offload: on\ngeneric-receive-offload: off\nlarge-receive-offload: off\n"))
	if got := ParseFeatures("Cannot get device feature names: No such device\n"); got != nil {
		t.Errorf("no features: %v", got)
	}
}

func TestParseCoalesce(t *testing.T) {
	equal(t, "ethtool 6.1", map[string]uint32{"adaptive-rx": 1, "adaptive-tx": 0, "rx-usecs": 3, "rx-frames-low": 9,
		"cqe-mode-rx": 0, "tx-frames": 64}, ParseCoalesce(
		"Coalesce parameters for eth0:\nAdaptive RX: on  TX: off\nstats-block-usecs:\tn/a\n\nrx-usecs:\t3\n"+
			"rx-frames:\tn/a\n\ntx-frames:\t64\n\nrx-frame-low:\t9\n\nCQE mode RX: off  TX: n/a\n\n"))
	if got := ParseCoalesce("netlink error: Operation not supported\n"); got != nil {
		t.Errorf("no coalescing: %v", got)
	}
}

func TestParseSettings(t *testing.T) {
	equal(t, "a gigabit link", Settings{SpeedBitsPerSec: 1e9, Duplex: "full", Port: "twisted-pair",
		Modes: &host.LinkModes{
			Autoneg: true, Supported: []string{"1000baseT/Full", "100baseT/Full", "10baseT/Half"},
			Advertised: []string{"1000baseT/Full"},
			Partner:    []string{"1000baseT/Full", "100baseT/Full"}, Lanes: 1,
		}}, ParseSettings("Settings for eth0:\n\tSupported ports: [ TP ]\n"+
		"\tSupported link modes:   10baseT/Half 100baseT/Full \n\t                        1000baseT/Full \n"+
		"\tSupported pause frame use: No\n\tAdvertised link modes:  1000baseT/Full \n"+
		"\tLink partner advertised link modes:  100baseT/Full\n\t                                     1000baseT/Full\n"+
		"\tSpeed: 1000Mb/s\n\tLanes: 1\n\tDuplex: Full\n\tAuto-negotiation: on\n\tPort: Twisted Pair\n"+
		"\tLink detected: yes\n"))
	equal(t, "no link", Settings{Port: "fibre", Modes: &host.LinkModes{Supported: []string{"10000baseSR/Full"}}},
		ParseSettings(
			"Settings for p1p1:\n\tSupported link modes:   10000baseSR/Full \n\tAdvertised link modes:  Not reported\n"+
				"\tSpeed: Unknown!\n\tDuplex: Unknown! (255)\n\tPort: FIBRE\n\tAuto-negotiation: off\n"))
	equal(t, "the old unknown", Settings{},
		ParseSettings("Settings for eth0:\n\tSpeed: 65535Mb/s\n\tDuplex: Unknown!\n\tSpeed: 4294967295Mb/s\n\tPort: Other\n"))
}

func TestParseCard(t *testing.T) {
	equal(t, "pause", &host.Pause{Autoneg: true, Tx: true},
		ParsePause("Pause parameters for eth0:\nAutonegotiate:\ton\nRX:\t\toff\nTX:\t\ton\nRX negotiated: on\n"+
			"TX negotiated: on\n"))
	equal(t, "no pause", (*host.Pause)(nil), ParsePause("netlink error: Operation not supported\n"))
	equal(t, "EEE", &host.EEE{Enabled: true, Active: true, TxLPI: true, TxLPITimerInSeconds: 17e-6},
		ParseEEE("EEE settings for eth0:\n\tEEE status: enabled - active\n\tTx LPI: 17 (us)\n"))
	equal(t, "EEE off", &host.EEE{}, ParseEEE("EEE Settings for eth0:\n\tEEE status: disabled\n\tTx LPI: disabled\n"))
	equal(t, "no EEE", (*host.EEE)(nil), ParseEEE("EEE Settings for eth0:\n\tEEE status: not supported\n"))
	equal(t, "flags", map[string]bool{"legacy-rx": false, "vf-true-promisc": true},
		ParsePrivateFlags("Private flags for eth0:\nlegacy-rx      : off\nvf-true-promisc: on\n"))
	for text, want := range map[string]string{
		"Permanent address: 52:54:00:00:00:01\n": "52:54:00:00:00:01", "Permanent address: not set\n": "",
		"Permanent address: 00:00:00:00:00:00\n": "", "": "",
	} {
		if got := ParsePermanent(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// Text of iproute2 6.1 and of 3.10, whose lines break elsewhere.
func TestParseLinks(t *testing.T) {
	text := `1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN group default qlen 1000
    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00 promiscuity 0  allmulti 0 minmtu 0 maxmtu 0 numtxqueues 1 numrxqueues 1 
    inet 127.0.0.1/8 scope host lo
       valid_lft forever preferred_lft forever
2: eth0: <NO-CARRIER,BROADCAST,MULTICAST,SLAVE,UP> mtu 1500 qdisc mq master bond0 state DOWN mode DEFAULT group default qlen 1000
    link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff permaddr 02:00:00:00:00:09 promiscuity 0 
    bond_slave state ACTIVE mii_status UP link_failure_count 0 perm_hwaddr 02:00:00:00:00:09 queue_id 0 addrgenmode none numtxqueues 8 parentbus virtio parentdev virtio1 
    RX:  bytes packets errors dropped  missed   mcast           
           110       1      2       3       4       5 
    TX:  bytes packets errors dropped carrier collsns           
            90       6      7       8       9      10 
    vf 0     link/ether 02:00:00:00:00:77 brd ff:ff:ff:ff:ff:ff, spoof checking on
    RX: bytes  packets  mcast   bcast   dropped
    110000     1000     500     50      192865
    TX: bytes  packets   dropped
    90000      6000      8000
    vf 1     link/ether 02:00:00:00:00:78 brd ff:ff:ff:ff:ff:ff, spoof checking on, link-state auto, trust off
    RX: bytes  packets  mcast   bcast   dropped
    1          1        1       1       1
    altname enp3s0
5: bond0.100@bond0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc noqueue state UP 
    link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff promiscuity 0 
    vlan id 100 <REORDER_HDR> 
    RX: bytes  packets  errors  dropped overrun mcast   
    110        1        0       0       11      0      
    inet 10.0.0.1 peer 10.0.0.2/32 scope global bond0.100
    inet6 fe80::1/64 scope link tentative 
7: veth0@if9: <BROADCAST> mtu 1500 qdisc noop state DOWN 
    link/ether 02:00:00:00:00:07 brd ff:ff:ff:ff:ff:ff link-netnsid 0 promiscuity 0
    veth addrgenmode eui64
8: sit0@NONE: <NOARP> mtu 1480 qdisc noop state DOWN
    link/sit 0.0.0.0 brd 0.0.0.0
    sit ip6ip remote any
`
	got := ParseLinks(text)
	equal(t, "links", []*Link{
		{Index: 1, Name: "lo", MAC: "00:00:00:00:00:00", Detailed: true, MTUBytes: 65536, TxQueueLen: 1000,
			Up: true, Carrier: true, Qdisc: "noqueue", Addresses: []string{"127.0.0.1/8"}},
		{
			Index: 2, Name: "eth0", MAC: "02:00:00:00:00:01", MTUBytes: 1500, TxQueueLen: 1000, Up: true, Qdisc: "mq",
			Master: "bond0", Totals: map[string]uint64{
				"rx_bytes": 110, "rx_packets": 1, "rx_errors": 2, "rx_dropped": 3, "rx_missed_errors": 4,
				"multicast": 5,
				"tx_bytes":  90, "tx_packets": 6, "tx_errors": 7, "tx_dropped": 8, "tx_carrier_errors": 9,
				"collisions": 10,
			}, ParentDev: "virtio1", Ethernet: true, Detailed: true,
		},
		{
			Index: 5, Name: "bond0.100", Kind: "vlan", MAC: "02:00:00:00:00:01", MTUBytes: 9000, Up: true,
			Carrier: true, Qdisc: "noqueue", VLANID: 100, VLANProtocol: "802.1Q",
			Peer: "bond0", Ethernet: true, Detailed: true, Addresses: []string{"10.0.0.1/32", "fe80::1/64"},
			Totals: map[string]uint64{"rx_bytes": 110, "rx_packets": 1, "rx_errors": 0, "rx_dropped": 0,
				"rx_over_errors": 11, "multicast": 0},
		},
		{Index: 7, Name: "veth0", Kind: "veth", MAC: "02:00:00:00:00:07", MTUBytes: 1500, Qdisc: "noop", Peer: "if9",
			Ethernet: true, Detailed: true},
		{Index: 8, Name: "sit0", Kind: "sit", MTUBytes: 1480, Qdisc: "noop", Peer: "NONE"},
	}, got)
	short := ParseLinks(
		"1: lo    inet 127.0.0.1/8 scope host lo\\       valid_lft forever preferred_lft forever\n" +
			"1: lo    inet6 ::1/128 scope host \\ valid_lft forever\n")
	equal(t, "ip -o addr", []*Link{{Index: 1, Name: "lo", Addresses: []string{"127.0.0.1/8", "::1/128"}}}, short)
	// RHEL 6, from the tests of insights-core: without -d no line names a kind.
	old := ParseLinks(`1: lo: <LOOPBACK,UP,LOWER_UP> mtu 16436 qdisc noqueue state UNKNOWN
    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00
    inet 127.0.0.1/8 scope host lo
    inet6 ::1/128 scope host
    valid_lft forever preferred_lft forever
`)
	if len(old) != 1 || old[0].Kind != "" || old[0].Detailed {
		t.Errorf("RHEL 6: %+v", old)
	}
}

func TestParseRoutes(t *testing.T) {
	text := `default via 192.0.2.254 dev v0 metric 100 
default dev tun0 table 7 scope link 
192.0.2.0/24 dev v0 proto kernel scope link src 192.0.2.1 
198.51.100.0/24 via 192.0.2.9 dev v0 mtu lock 1400 window 65535 initcwnd 20 features ecn rto_min lock 200ms quickack 1 congctl lock cubic 
blackhole 198.51.101.0/24 
203.0.113.0/24 proto 18 
	nexthop via 192.0.2.9 dev v0 weight 1 
	nexthop via 192.0.2.8 dev v0 weight 1 
203.0.113.9 via inet6 fe80::9 dev v0 proto keepalived advmss 1000 initrwnd 30 congctl bbr rto_min 1s mtu 1300
local 127.0.0.1 dev lo table local proto kernel scope host src 127.0.0.1 
2001:db8::/64 dev v0 proto kernel metric 256 pref medium
default via 2001:db8::ff dev v0 proto ra metric 1024 expires 1700sec hoplimit 64 pref medium
unreachable default dev lo metric 4294967295 error -101 pref medium
`
	want := []host.Route{
		{Destination: "default", Gateway: "192.0.2.254", Interface: "v0", Priority: 100, Protocol: "boot"},
		{Destination: "192.0.2.0/24", Interface: "v0", Source: "192.0.2.1", Protocol: "kernel"},
		{
			Destination: "198.51.100.0/24", Gateway: "192.0.2.9", Interface: "v0", Protocol: "boot", MTUBytes: 1400,
			WindowBytes: 65535, InitCwnd: 20, ECN: true,
			RTOMinSec: 0.2, Quickack: true, Congestion: "cubic", Locked: []string{"congctl_lock", "mtu_lock"},
		},
		{Destination: "203.0.113.0/24", Protocol: "18"},
		{
			Destination: "203.0.113.9/32", Gateway: "fe80::9", Interface: "v0", Protocol: "18", AdvMSSBytes: 1000,
			InitRwnd: 30, Congestion: "bbr", RTOMinSec: 1, MTUBytes: 1300,
		},
		{Destination: "2001:db8::/64", Interface: "v0", Protocol: "kernel", Priority: 256},
		{Destination: "::/0", Gateway: "2001:db8::ff", Interface: "v0", Protocol: "ra", Priority: 1024},
	}
	equal(t, "both versions", want, ParseRoutes(text, false))
	// RHEL 7, from the tests of insights-core.
	equal(t, "with clones", []host.Route{
		{
			Destination: "2001:44b8:1110:f800::/64", Interface: "enp0s25", Protocol: "kernel", Priority: 256,
			MTUBytes: 1492,
		},
		{Destination: "fe80::/64", Interface: "enp0s25", Protocol: "kernel", Priority: 256, MTUBytes: 1492},
	}, ParseRoutes(`2001:708:40:2001:a822:baff:fec4:2428 via fe80::a96:d7ff:fe38:d757 dev enp0s25  metric 0
    cache  mtu 1492 hoplimit 255
2001:44b8:1110:f800::/64 dev enp0s25  proto kernel  metric 256  expires 6403sec mtu 1492
unreachable 2002:a00::/24 dev lo  metric 1024  error -101
2404:6800:4006:802::200e via fe80::a96:d7ff:fe38:d757 dev enp0s25  metric 0
    cache  mtu 1492 hoplimit 255
fe80::/64 dev enp0s25  proto kernel  metric 256  mtu 1492
multicast 2001:dbc::/64 dev enp0s25
ff02::fb dev enp0s25  metric 0
    cache  mtu 1492
`, true))
	equal(t, "IPv6 alone", []host.Route{{Destination: "::/0", Interface: "tun0", Protocol: "boot"}},
		ParseRoutes("default dev tun0\n", true))
	equal(t, "IPv4 alone", []host.Route{{Destination: "default", Interface: "tun0", Protocol: "boot"}},
		ParseRoutes("unicast default dev tun0 scope link\n", false))
}

func TestParseQdiscs(t *testing.T) {
	text := `qdisc noqueue 0: dev lo root refcnt 2 
 Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0) 
 backlog 0b 0p requeues 0
qdisc mq 8001: dev eth0 root 
 Sent 1234567 bytes 890 pkt (dropped 5, overlimits 6 requeues 7) 
 backlog 12Kb 8p requeues 7
qdisc fq_codel 0: dev eth0 parent 8001:1f limit 10240p flows 1024 quantum 1514 target 5ms interval 100ms memory_limit 32Mb ecn drop_batch 64 
 Sent 1 bytes 2 pkt (dropped 3, overlimits 0 requeues 0) 
 backlog 1514b 1p requeues 0
  maxpacket 66 drop_overlimit 0 new_flow_count 4 ecn_mark 0
  new_flows_len 0 old_flows_len 0
qdisc fq 8002: dev eth1 root refcnt 2 limit 10000p flow_limit 100p buckets 1024 orphan_mask 1023 quantum 3028b initial_quantum 15140b low_rate_threshold 550Kbit refill_delay 40ms timer_slack 10us horizon 10s horizon_drop
qdisc ingress ffff: dev eth1 parent ffff:fff1 ---------------- 
 Sent 9 bytes 1 pkt (dropped 0, overlimits 0 requeues 0) 
qdisc broken
`
	equal(t, "qdiscs", []Qdisc{
		{Interface: "lo", Kind: "noqueue", Parent: root},
		{Interface: "eth0", Kind: "mq", Parent: root, Handle: 0x80010000, QdiscState: host.QdiscState{
			Bytes: 1234567, Packets: 890, Drops: 5, Overlimits: 6, Requeues: 7, BacklogBytes: 12 << 10,
			BacklogPackets: 8}},
		{Interface: "eth0", Kind: "fq_codel", Parent: 0x8001001f,
			QdiscState: host.QdiscState{Bytes: 1, Packets: 2, Drops: 3, BacklogBytes: 1514, BacklogPackets: 1,
				Parameters: map[string]string{
					"limit": "10240", "flows": "1024", "quantum": "1514", "target": "5000", "interval": "100000",
					"memory_limit": "33554432", "ecn": "on", "drop_batch": "64",
				}}},
		{Interface: "eth1", Kind: "fq", Parent: root, Handle: 0x80020000,
			QdiscState: host.QdiscState{Parameters: map[string]string{
				"limit": "10000", "flow_limit": "100", "buckets": "1024", "orphan_mask": "1023", "quantum": "3028",
				"initial_quantum": "15140", "low_rate_threshold": "550000",
				"refill_delay": "40000", "horizon": "10000000", "horizon_drop": "on", "pacing": "on",
			}}},
		{Interface: "eth1", Kind: "ingress", Parent: 0xfffffff1, Handle: 0xffff0000,
			QdiscState: host.QdiscState{Bytes: 9, Packets: 1}},
	}, ParseQdiscs(text))
}

func TestParseSysctls(t *testing.T) {
	equal(t, "sysctl -a", map[string]string{
		"net/ipv4/tcp_rmem": "4096\t131072\t6291456", "net/ipv4/conf/eth0.100/rp_filter": "1", "net/core/empty": "",
		"dev/cdrom/info": "", "kernel/x": "a = b",
	}, ParseSysctls("net.ipv4.tcp_rmem = 4096\t131072\t6291456\nnet.ipv4.conf.eth0/100.rp_filter = 1\n"+
		"net.core.empty =\nsysctl: reading key \"net.ipv6.conf.all.stable_secret\"\n"+
		"sysctl: permission denied on key 'kernel.y' = 3\ndev.cdrom.info = \ndev.cdrom.info = CD-ROM information\n"+
		"kernel.x = a = b\n"))
}

func TestParseNstat(t *testing.T) {
	got := ParseNstat("#kernel\nIpInReceives                    5                  0.0\nIp6InReceives 6 0.0\n" +
		"IpExtInOctets 7 0.0\nTcpExtTCPTimeouts 8 0.0\nTcpRetransSegs 9 0.0\nIcmpMsgInType8 1 0.0\n" +
		"Icmp6InMsgs 2 0.0\nUdpLite6InErrors 3 0.0\nUdpRcvbufErrors 4 0.0\nSctpInPackets 5 0.0\nTcpBroken x 0.0\nTcp 1 0.0\n")
	equal(t, "nstat", Counters{
		"Ip": {"InReceives": 5}, "Ip6": {"InReceives": 6}, "IpExt": {"InOctets": 7}, "TcpExt": {"TCPTimeouts": 8},
		"Tcp": {"RetransSegs": 9}, "IcmpMsg": {"InType8": 1},
		"Icmp6": {"InMsgs": 2}, "UdpLite6": {"InErrors": 3}, "Udp": {"RcvbufErrors": 4},
	}, got)
	equal(t, "tables", map[string]string{
		"snmp": "Ip: InReceives\nIp: 5\nIcmpMsg: InType8\nIcmpMsg: 1\nTcp: RetransSegs\nTcp: 9\nUdp: RcvbufErrors\n" +
			"Udp: 4\n",
		"netstat": "TcpExt: TCPTimeouts\nTcpExt: 8\nIpExt: InOctets\nIpExt: 7\n",
		"snmp6":   "Ip6InReceives 6\nIcmp6InMsgs 2\nUdpLite6InErrors 3\n",
	}, got.Tables())
}

func TestParseNetstat(t *testing.T) {
	text := `Ip:
    Forwarding: 2
    1021 total packets received
    8 with invalid addresses
Icmp:
    1147 ICMP messages received
    ICMP input histogram:
        destination unreachable: 1168
Tcp:
    1420 active connection openings
    17 segments retransmited
Udp:
    1525 receive buffer errors
    MemErrors: 3
TcpExt:
    Quick ack mode was activated 1770 times
    1777 times the listen queue of a socket overflowed
    Detected reordering 1833 times using SACK
    12 other TCP timeouts
    TCPLossProbes: 1931
    5 words without a counter
    a 5 b 6
IpExt:
    InOctets: 2715
Whatever:
    Name: 1
`
	equal(t, "net-tools", Counters{
		"Ip": {"Forwarding": 2, "InReceives": 1021, "InAddrErrors": 8}, "Icmp": {"InMsgs": 1147},
		"Tcp": {"ActiveOpens": 1420, "RetransSegs": 17},
		"Udp": {"RcvbufErrors": 1525, "MemErrors": 3}, "TcpExt": {"DelayedACKLost": 1770, "ListenOverflows": 1777,
			"TCPSACKReorder": 1833, "TCPTimeouts": 12, "TCPLossProbes": 1931},
		"IpExt": {"InOctets": 2715},
	}, ParseNetstat(text))
	// Each sentence has one number and no name that another sentence of the group means by other
	// words than by version.
	for group, table := range sentences {
		for sentence, name := range table {
			if strings.Count(sentence, "#") != 1 || name == "" {
				t.Errorf("%s: %q", group, sentence)
			}
		}
	}
}

func TestParsePCI(t *testing.T) {
	text := `00:01.0 PCI bridge [0604]: Intel Corporation Xeon Root Port [8086:0c01] (rev 06) (prog-if 00 [Normal decode])
	Interrupt: pin A routed to IRQ 26
	Bus: primary=00, secondary=01, subordinate=01, sec-latency=0

01:00.0 Ethernet controller [0200]: Intel Corporation Ethernet Controller X710 [8086:1572] (rev 02)
	Subsystem: Intel Corporation Ethernet Converged Network Adapter [8086:0007]
	Interrupt: pin A routed to IRQ 16
	NUMA node: 1
	Capabilities: [a0] Express (v2) Endpoint, MSI 00
		DevCap:	MaxPayload 2048 bytes, PhantFunc 0, Latency L0s <512ns, L1 <64us
			ExtTag+ AttnBtn- AttnInd- PwrInd- RBE+ FLReset+ SlotPowerLimit 0W
		DevCtl:	CorrErr+ NonFatalErr+ FatalErr+ UnsupReq+
			RlxdOrd+ ExtTag+ PhantFunc- AuxPwr- NoSnoop- FLReset-
			MaxPayload 256 bytes, MaxReadReq 512 bytes
		DevSta:	CorrErr+ NonFatalErr- FatalErr- UnsupReq+ AuxPwr+ TransPend-
		LnkCap:	Port #0, Speed 8GT/s, Width x8, ASPM L1, Exit Latency L1 <16us
		LnkCtl:	ASPM L0s L1 Enabled; RCB 64 bytes, Disabled- CommClk+
		LnkSta:	Speed 5GT/s (downgraded), Width x4 (downgraded)
		LnkCap2: Supported Link Speeds: 2.5-8GT/s, Crosslink- Retimer- 2Retimers- DRS-
	Kernel driver in use: i40e
0001:02:00.1 Ethernet controller [0200]: Maker [1234:5678]
`
	equal(t, "lspci", []*PCIDevice{
		{Address: "0000:00:01.0", Vendor: "0x8086", Device: "0x0c01", IRQ: 26, NUMANode: -1, SecondaryBus: 1},
		{
			Address: "0000:01:00.0", Vendor: "0x8086", Device: "0x1572", SubsystemVendor: "0x8086",
			SubsystemDevice: "0x0007", IRQ: 16, NUMANode: 1, Speed: "5.0 GT/s PCIe",
			MaxSpeed: "8.0 GT/s PCIe", Width: 4, MaxWidth: 8, PayloadBytes: 256, PayloadSupportedBytes: 2048,
			ReadRequestBytes: 512, ASPM: []string{"l0s", "l1"},
		},
		{Address: "0001:02:00.1", Vendor: "0x1234", Device: "0x5678", NUMANode: -1},
	}, ParsePCI(text))
}

func TestParseFirmware(t *testing.T) {
	equal(t, "dmidecode", map[string]string{"bios_vendor": "SeaBIOS", "sys_vendor": "QEMU",
		"product_name": "Standard PC", "board_vendor": "First"}, ParseFirmware(
		"# dmidecode 3.4\nHandle 0x0000, DMI type 0, 24 bytes\nBIOS Information\n\tVendor: SeaBIOS\n\nSystem Information\n"+
			"\tManufacturer: QEMU\n\tProduct Name: Standard PC\n\tSerial Number: 12\n"+
			"Base Board Information\n\tManufacturer: First\nBase Board Information\n\tManufacturer: Second\n"+
			"Chassis Information\n\tManufacturer: Other\n"))
}

func TestParseDate(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2024, 6, 1, 12, 0, 9, 0, time.UTC)
	for _, c := range []struct {
		text string
		zone *time.Location
		ok   bool
	}{
		{"Sat Jun  1 12:00:09 UTC 2024\n", nil, true},
		{"Sat Jun  1 12:00:09 PM UTC 2024\n", nil, true},
		{"Sat Jun  1 14:00:09 CEST 2024\n", berlin, true},
		{"Sat Jun  1 12:00:09 UTC 2024\n", berlin, true},
		{"Sat 01 Jun 2024 02:00:09 PM CEST\n", berlin, true},
		{"Sat Jun  1 14:00:09 CEST 2024\n", nil, false},
		{"Sat Jun  1 14:00:09 CST 2024\n", berlin, false},
		{"Sam 1. Jun 14:00:09 CEST 2024\n", berlin, false},
		{"", nil, false},
	} {
		got, ok := ParseDate(c.text, c.zone)
		if ok != c.ok || ok && !got.Equal(at) {
			t.Errorf("%q in %v: %v %v", c.text, c.zone, got, ok)
		}
	}
}

func TestParseUptime(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		" 12:03:04 up 41 days,  3:02,  2 users,  load average: 0.00, 0.01, 0.05\n": 41*day + 3*time.Hour +
			2*time.Minute,
		" 12:03:04 up 1 day, 12 min,  1 user,  load average: 0.00": day + 12*time.Minute,
		" 12:03:04 up 3:02,  2 users":                              3*time.Hour + 2*time.Minute,
		" 12:03:04 up 5 min,  0 users,":                            5 * time.Minute,
		"up 2 hours, x":                                            2 * time.Hour,
	} {
		if got, ok := ParseUptime(text); !ok || got != want {
			t.Errorf("%q: %v %v, want %v", text, got, ok, want)
		}
	}
	for _, bad := range []string{"", "uptime: command not found", "up , 2 users", "up 99999999999 days, 1:00,"} {
		if got, ok := ParseUptime(bad); ok {
			t.Errorf("%q: %v", bad, got)
		}
	}
	if up, ok := ParseSeconds("3543211.55 13456123.10\n"); !ok || up != 3543211550*time.Millisecond {
		t.Errorf("%v %v", up, ok)
	}
	for _, bad := range []string{"", "x 1", "-1 2", "NaN 1", "1e300 1"} {
		if up, ok := ParseSeconds(bad); ok {
			t.Errorf("%q: %v", bad, up)
		}
	}
}

func TestParseUname(t *testing.T) {
	for text, want := range map[string][3]string{
		"Linux web1 5.14.0-427.el9.x86_64 #1 SMP PREEMPT_DYNAMIC Wed Apr 24 x86_64 x86_64 x86_64 GNU/Linux\n": {"web1",
			"5.14.0-427.el9.x86_64", "x86_64"},
		"Linux web1 6.1.0-9-arm64 #1 SMP Debian 6.1.27-1 (2023-05-08) aarch64 GNU/Linux\n": {"web1",
			"6.1.0-9-arm64", "aarch64"},
		"SunOS web1 5.11 x i86pc\n": {},
		"":                          {},
	} {
		name, release, machine := ParseUname(text)
		if got := [3]string{name, release, machine}; got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// Whatever the text of a tool is, its parser ends, and what it gives is no larger than the text.
func FuzzParsers(f *testing.F) {
	parsers := []func(string) int{
		func(s string) int { ParseDriver(s); return 0 },
		func(s string) int { return len(ParseStatistics(s)) },
		func(s string) int { ParseRings(s); ParseChannels(s); return 0 },
		func(s string) int { return len(ParseFeatures(s)) },
		func(s string) int { return len(ParseCoalesce(s)) },
		func(s string) int { return len(wire(s)) + len(ParseSettings(s).Port) },
		func(s string) int {
			ParsePause(s)
			ParseEEE(s)
			ParseFEC(s)
			ParseBond(s)
			return len(ParsePrivateFlags(s)) + len(ParsePermanent(s))
		},
		func(s string) int {
			n := 0
			for _, l := range ParseLinks(s) {
				n += 1 + len(l.Addresses)/8
			}
			return n
		},
		func(s string) int { return len(ParseRoutes(s, false)) + len(ParseRoutes(s, true)) },
		func(s string) int { return len(ParseQdiscs(s)) },
		func(s string) int { return len(ParseSysctls(s)) },
		func(s string) int { return len(ParseNstat(s).Tables()) },
		func(s string) int { return len(ParseNetstat(s).Tables()) },
		func(s string) int { return len(ParsePCI(s)) },
		func(s string) int { return len(ParseFirmware(s)) },
		func(s string) int { ParseDate(s, nil); ParseUptime(s); ParseSeconds(s); ParseUname(s); return 0 },
	}
	for which, seed := range []string{
		"driver: e1000\nbus-info: 0000:00:03.0\n", "NIC statistics:\n     a: 1\n",
		"Pre-set maximums:\nRX: 4\nCurrent hardware settings:\nRX: 2\nTX: 1\nCombined: 3\n",
		"Features for e:\nscatter-gather: on\n\ttx-scatter-gather: on [fixed]\n",
		"Adaptive RX: on  TX: off\nrx-usecs: 3\n",
		"\tSupported link modes:   10baseT/Half\n\t   100baseT/Full\n\tSpeed: 100Mb/s\n",
		"Autonegotiate: on\nEEE status: enabled - active\nTx LPI: 4 (us)\nx : on\n",
		"2: v@w: <UP> mtu 1 qdisc x\n    link/ether 02:00:00:00:00:01\n    vlan id 3\n    RX: bytes\n    1\n" +
			"    inet 1.2.3.4/8\n", "default via 1.2.3.4 dev x mtu lock 3\n2001::/3 dev y\n",
		"qdisc fq 1: dev e root limit 3p\n Sent 1 bytes 2 pkt (dropped 3, overlimits 4 requeues 5)\n backlog 1Kb 2p\n",
		"net.ipv4.x = 1\n",
		"#k\nIpInReceives 5 0.0\nIp6X 3 0.0\n", "Tcp:\n    3 resets sent\n    X: 4\n",
		"00:01.0 X [0604]: Y [8086:0c01]\n\tBus: primary=00, secondary=01\n\t\tLnkSta: Speed 5GT/s, Width x4\n",
		"System Information\n\tManufacturer: QEMU\n", "Sat Jun  1 12:00:09 UTC 2024\n up 3 days, 1:02,",
	} {
		f.Add(which, seed)
	}
	f.Fuzz(func(t *testing.T, which int, text string) {
		if n := parsers[uint(which)%uint(len(parsers))](text); n > 2*len(text)+8 {
			t.Errorf("%d things out of %d bytes", n, len(text))
		}
	})
}
