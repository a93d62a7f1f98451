package nicstat

import (
	"strings"

	"github.com/linerate/linerate/internal/base/pattern"
)

// queueForms are the forms in which drivers name the counters of one queue, with an example each.
// The driver's name does not decide: a driver changes its form from one kernel to the next, as
// virtio_net did.
var queueForms = [...]struct {
	form                       *pattern.Pattern
	direction, number, counter int // submatches
}{
	// rx_queue_0_packets: igb, ixgbe, ice, hv_netvsc, veth
	{pattern.New(`^(rx|tx)_queue_(\d{1,5})_(.+)$`), 1, 2, 3},
	// rx0_packets: mlx5, mlx4, virtio_net since Linux 6.8
	{pattern.New(`^(rx|tx)(\d{1,5})_(.+)$`), 1, 2, 3},
	// rx-0.packets: i40e, iavf; rx-0.rx_packets: sfc
	{pattern.New(`^(rx|tx)-(\d{1,5})\.(?:(?:rx|tx)_)?(.+)$`), 1, 2, 3},
	{pattern.New(`^queue_(\d{1,5})_(rx|tx)_(.+)$`), 2, 1, 3},      // queue_0_rx_cnt: ena
	{pattern.New(`^(rx|tx)_(\w+)\[(\d{1,5})\]$`), 1, 3, 2},        // rx_packets[0]: gve
	{pattern.New(`^\[(\d{1,5})\]: (rx|tx)_(.+)$`), 2, 1, 3},       // [0]: rx_ucast_packets: bnxt_en, bnx2x
	{pattern.New(`^(rx|tx)q(\d{1,5}): (?:rx|tx)_(.+)$`), 1, 2, 3}, // rxq0: rx_pkts: be2net
	{pattern.New(`^(rx|tx)q_?(\d{1,5})_(.+)$`), 1, 2, 3},          // rxq0_packets: hns3; rxq_0_pkts: nfp
	{pattern.New(`^(rx|tx)_q-(\d{1,5})_(.+)$`), 1, 2, 3},          // rx_q-0_pkts: idpf
	// rx_0_packets: mana; rx_0_pkts: ionic. Other names of this form are of sizes (rx_64_bytes).
	{pattern.New(`^(rx|tx)_(\d{1,5})_(packets|pkts|dropped|alloc_err)$`), 1, 2, 3},
	{pattern.New(`^(rx|tx)_([1-5]?\d|6[0-3])_(bytes|xdp_\w+)$`), 1, 2, 3},
	{pattern.New(`^(rq|wq)\[(\d{1,5})\]_(\w+)$`), 1, 2, 3}, // rq[0]_packets: enic
	// 0: rcv_pkts, 0_0: xmit_pkts (its first traffic class; the others are queues of their own): qede
	{pattern.New(`^(\d{1,5})(?:_0)?: (rx|tx|rcv|xmit)_(\w+)$`), 2, 1, 3},
	{pattern.New(`^Queue\[(\d{1,5})\] (In|Out)(\w+)$`), 2, 1, 3}, // Queue[0] InPackets: atlantic
}

// outbound is a counter of transmission: tx as a word, or with the queue's number behind it, and
// the words of enic and qede.
var outbound = pattern.New(`(?:^|[^a-z])(?:txq?(?:[^a-z]|$)|wq\[|xmit_)`)

// Outbound reports whether a counter is one of transmission, as its name says. Some counters say
// nothing and are of both directions or of reception.
func Outbound(counter string) bool { return outbound.MatchString(counter) }

// PacketNames returns the names that [Queue] gives a counter of packets. Some drivers count them by
// destination, and the sum is that of the queue.
func PacketNames() []string {
	return []string{"packets", "cnt", "pkts", "ucast_packets", "mcast_packets", "bcast_packets"}
}

// directions translates what some drivers call receive and transmit queues.
var directions = map[string]string{"rq": "rx", "wq": "tx", "rcv": "rx", "xmit": "tx", "In": "rx", "Out": "tx"}

// Queue splits the name of a counter that belongs to one queue: "rx_queue_3_drops" is "drops" of
// "rx-3", the queue's name in sysfs. ok is false for a counter of no queue and for an unknown form.
func Queue(name string) (queue, counter string, ok bool) {
	// Most names have no digit, and callers ask for hundreds of them.
	if !strings.ContainsAny(name, "0123456789") {
		return "", "", false
	}
	for _, f := range queueForms {
		if m := f.form.FindStringSubmatch(name); m != nil {
			number := strings.TrimLeft(m[f.number], "0")
			if number == "" {
				number = "0"
			}
			direction, counter := m[f.direction], m[f.counter]
			if ours, ok := directions[direction]; ok {
				direction, counter = ours, strings.ToLower(counter) // InPackets
			}
			return direction + "-" + number, counter, true
		}
	}
	return "", "", false
}
