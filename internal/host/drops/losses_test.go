package drops

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLossesAddUp(t *testing.T) {
	for _, c := range []struct {
		name             string
		lost             uint64
		own              SocketDrops
		sender, receiver map[string]uint64
		want             []Loss
	}{
		{"nothing lost", 0, SocketDrops{Received: 3}, nil, map[string]uint64{"softnet.dropped": 7}, nil},
		{"nothing known", 10, SocketDrops{}, nil, nil, []Loss{{OnPath, 10, ""}}},
		{"the receiving socket, counted by it and by its host", 10, SocketDrops{Received: 10}, nil,
			map[string]uint64{"Udp.RcvbufErrors": 10},
			[]Loss{{ReceiverSocket, 10, "SO_RXQ_OVFL"}}},
		{"another program's socket on the same host", 12, SocketDrops{Received: 10}, nil,
			map[string]uint64{"Udp.RcvbufErrors": 11},
			[]Loss{{OnPath, 1, ""}, {ReceiverSocket, 10, "SO_RXQ_OVFL"}, {ReceiverSocket, 1, "Udp.RcvbufErrors"}}},
		{"never more than is missing", 5, SocketDrops{}, map[string]uint64{"qdisc.eth0.drops": 100},
			map[string]uint64{"nic.eth0.rx_missed_errors": 3},
			[]Loss{{SenderQdisc, 2, "qdisc.eth0.drops"}, {ReceiverRing, 3, "nic.eth0.rx_missed_errors"}}},
		{"the backlog, counted by the card's device as well", 10, SocketDrops{}, nil,
			map[string]uint64{"softnet.dropped": 4, "nic.eth0.rx_dropped": 6},
			[]Loss{{OnPath, 4, ""}, {ReceiverCard, 2, "nic.eth0.rx_dropped"}, {ReceiverSoftnet, 4, "softnet.dropped"}}},
		{"the qdisc, counted by UDP as well", 10, SocketDrops{},
			map[string]uint64{"qdisc.eth0.drops": 6, "Udp.SndbufErrors": 7}, nil,
			[]Loss{{SenderSocket, 1, "Udp.SndbufErrors"}, {SenderQdisc, 6, "qdisc.eth0.drops"}, {OnPath, 3, ""}}},
		// The qdisc refuses the packets that the sockets could not send; a firewall refused two more.
		{"a full qdisc, which fails the sends", 9, SocketDrops{Sent: 9}, map[string]uint64{"qdisc.eth0.drops": 7}, nil,
			[]Loss{{SenderSocket, 2, "send errors"}, {SenderQdisc, 7, "qdisc.eth0.drops"}}},
		{"a full table of connections at both ends", 12, SocketDrops{Sent: 2},
			map[string]uint64{"conntrack.drop": 5, "neigh.ipv4.unresolved_discards": 1},
			map[string]uint64{"conntrack.drop": 3, "nfqueue.dropped": 1},
			[]Loss{{SenderConntrack, 5, "conntrack.drop"},
				{SenderNeighbour, 1, "neigh.ipv4.unresolved_discards"}, {OnPath, 2, ""},
				{ReceiverConntrack, 3, "conntrack.drop"}, {ReceiverNFQueue, 1, "nfqueue.dropped"}}},
		// Linux 6.18, datagrams of 4000 bytes: 469 later fragments dropped, then 4 MB of such datagrams.
		{"fragments", 470, SocketDrops{Received: 14}, map[string]uint64{"Ip.FragOKs": 8181, "Ip.FragCreates": 24543},
			map[string]uint64{"Ip.ReasmReqds": 24074, "Ip.ReasmOKs": 7723},
			[]Loss{{OnPath, 3, ""}, {PathFragment, 453, "ReasmReqds, ReasmOKs"}, {ReceiverSocket, 14, "SO_RXQ_OVFL"}}},
		{"no memory for fragments", 1719, SocketDrops{}, map[string]uint64{"Ip6.FragOKs": 5586, "Ip6.FragCreates": 16758},
			map[string]uint64{"Ip6.ReasmReqds": 16166, "Ip6.ReasmOKs": 3902, "Ip6.ReasmFails": 3625, "Ip6.ReasmTimeout": 4},
			[]Loss{{OnPath, 92, ""}, {PathFragment, 420, "ReasmReqds, ReasmOKs"},
				{ReceiverFragments, 1207, "ReasmFails"}}},
		// Linux 6.18, `limit rate over 2000/second drop` at output: 8929 datagrams sent, 4049 received.
		{"rules of the sender", 4880, SocketDrops{Sent: 4880}, map[string]uint64{"Ip.OutRequests": 8955,
			"Ip.OutTransmits": 4075, "Ip.OutDiscards": 4880}, nil,
			[]Loss{{SenderFirewall, 4880, "OutRequests, OutTransmits"}}},
		{"bundles, and rules of the sender", 18_400_000, SocketDrops{Sent: 18_400_000}, map[string]uint64{
			"Ip.OutRequests": 402_086, "Ip.OutTransmits": 1011}, nil,
			[]Loss{{SenderFirewall, 18_400_000, "OutRequests, OutTransmits"}}},
		{"failed sends of a kernel without OutTransmits", 9, SocketDrops{Sent: 9}, map[string]uint64{"Ip.OutRequests": 99},
			nil, []Loss{{SenderSocket, 9, "send errors"}}},
		{"fragments, and a failed send", 3, SocketDrops{Sent: 3}, map[string]uint64{"Ip6.OutRequests": 50,
			"Ip6.FragOKs": 10, "Ip6.FragCreates": 30, "Ip6.OutTransmits": 69}, nil,
			[]Loss{{SenderSocket, 2, "send errors"}, {SenderFirewall, 1, "OutRequests, OutTransmits"}}},
		// Linux 6.18, `limit rate over 5000/second drop` at input: 1741 datagrams sent, 432 received.
		{"rules of the receiver", 1309, SocketDrops{}, nil, map[string]uint64{"Ip.InReceives": 1779, "Ip.InDelivers": 470,
			"IpExt.InNoECTPkts": 1779}, []Loss{{ReceiverFirewall, 1309, "InReceives, InDelivers"}}},
		{"four packets for groups that the host has not joined", 9, SocketDrops{}, nil,
			map[string]uint64{"Ip.InReceives": 1779, "Ip.InDelivers": 1775}, []Loss{{OnPath, 9, ""}}},
		{"all along the way", 21, SocketDrops{Sent: 1}, map[string]uint64{"qdisc.e.drops": 2, "nic.e.tx_dropped": 3,
			"nic.e.tx_bytes": 99},
			map[string]uint64{"nic.e.rx_missed_errors": 4, "softnet.dropped": 5, "Udp6.RcvbufErrors": 6},
			[]Loss{{SenderQdisc, 2, "qdisc.e.drops"}, {SenderCard, 3, "nic.e.tx_dropped"}, {OnPath, 1, ""},
				{ReceiverRing, 4, "nic.e.rx_missed_errors"}, {ReceiverSoftnet, 5, "softnet.dropped"},
				{ReceiverSocket, 6, "Udp6.RcvbufErrors"}}},
	} {
		got := Losses(c.lost, c.own, c.sender, c.receiver)
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
		var sum uint64
		for _, l := range got {
			sum += l.Packets
		}
		if sum != c.lost {
			t.Errorf("%s: places explain %d of %d", c.name, sum, c.lost)
		}
	}
}

func TestUndelivered(t *testing.T) {
	for _, c := range []struct {
		name     string
		counters map[string]uint64
		want     uint64
		frames   float64
	}{
		{"nothing known", nil, 0, 1},
		// recorded-policed-bbr of package diagnose: a limit at input drops bundles of GRO
		{"bundles", map[string]uint64{"Ip.InReceives": 320, "Ip.InDelivers": 272, "Ip6.InReceives": 1, "Ip6.InMcastPkts": 1,
			"IpExt.InNoECTPkts": 8434, "Ip6.InNoECTPkts": 1}, 48, 8435.0 / 321},
		{"a router", map[string]uint64{"Ip.InReceives": 100, "Ip.InDelivers": 10, "Ip.ForwDatagrams": 90}, 0, 1},
		{"fragments", map[string]uint64{"Ip.InReceives": 90, "Ip.InDelivers": 30, "Ip.ReasmReqds": 90, "Ip.ReasmOKs": 30}, 0,
			1},
		{"refusals that have counters", map[string]uint64{"Ip.InReceives": 90, "Ip.InDelivers": 50, "Ip.InAddrErrors": 10,
			"TcpExt.IPReversePathFilter": 20, "conntrack.drop": 10}, 0, 1},
		{"more delivered than received", map[string]uint64{"Ip6.InReceives": 5, "Ip6.InDelivers": 6}, 0, 1},
		{"IPv6", map[string]uint64{"Ip6.InReceives": 50, "Ip6.InDelivers": 30, "Ip6.InECT0Pkts": 100}, 20, 2},
	} {
		if n, each := Undelivered(c.counters), inOnePacket(c.counters); n != c.want || each != c.frames {
			t.Errorf("%s: %d of %v frames, want %d of %v", c.name, n, each, c.want, c.frames)
		}
	}
}
