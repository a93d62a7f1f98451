package printed

import (
	"testing"

	"github.com/linerate/linerate/internal/host"
)

// TestParseQdiscRates has the line of a wireless card of VyOS, with tc of iproute2 2.6, and of fq
// with an estimator of its rate (Linux 6.17).
func TestParseQdiscRates(t *testing.T) {
	equal(t, "backlog", []Qdisc{
		{Interface: "wlan0", Kind: "pfifo_fast", Parent: root, QdiscState: host.QdiscState{Bytes: 810323, Packets: 6016,
			BacklogBytes: 100, BacklogPackets: 3}},
		{Interface: "eth1", Kind: "fq", Parent: root, Handle: 0x80010000, QdiscState: host.QdiscState{Bytes: 236460814,
			Packets: 792991, BacklogBytes: 1 << 20, BacklogPackets: 40}},
	}, ParseQdiscs("qdisc pfifo_fast 0: dev wlan0 root bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1\n"+
		" Sent 810323 bytes 6016 pkt (dropped 0, overlimits 0 requeues 0)\n rate 0bit 0pps backlog 100b 3p requeues 0\n"+
		"qdisc fq 8001: dev eth1 root refcnt 5\n Sent 236460814 bytes 792991 pkt (dropped 0, overlimits 0 requeues 0)\n"+
		" rate 25816bit 10pps backlog 1Mb 40p requeues 0\n  flows 4 (inactive 4 throttled 0)\n rate 5bit backlog\n"))
}
