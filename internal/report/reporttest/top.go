package reporttest

import (
	"time"

	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/report"
)

// TopReadings are two intervals of a busy host: a card that loses packets, a quiet one, a bridge,
// and one whose name would command a terminal.
func TopReadings() []report.TopReading {
	one := report.TopReading{
		Time: Noon, Seconds: 1.0002,
		Interfaces: []report.TopInterface{
			{Name: "eth0", Driver: "e1000e", Kind: "ethernet", Up: true, Speed: new(1e9), MTU: 1500, Receive: 941e6,
				Transmit: 12.4e6, Share: new(0.941),
				ReceivePackets: 81_274, TransmitPackets: 20_310, ReceiveMulticast: 0.5,
				Drops: []report.TopDrop{{Place: "ring", Direction: "receive", Rate: 120, Total: 4321},
					{Place: "unwanted", Direction: "receive", Rate: 2, Total: 17}},
				Errors: []report.TopDrop{{Place: "crc", Direction: "receive", Rate: 0, Total: 3}},
				Qdisc:  &report.TopQdisc{Overlimit: 3, Backlog: 4542},
				Queues: []report.TopQueue{{Queue: "rx-0", Packets: new(81_274.0), Bits: new(941e6), Drops: new(120.0),
					Interrupts: new(20_000.0)},
					{Queue: "tx-0", Packets: new(20_310.0), Interrupts: new(0.0)}}},
			{Name: "eth1", Driver: "virtio_net", Kind: "ethernet", MTU: 9000, CarrierChanges: 2},
			{Name: "br0", Kind: "bridge", Up: true, MTU: 1500, Receive: 2048, Transmit: 512, ReceivePackets: 4,
				TransmitPackets: 1},
			{Name: "e\x1b[2Jvil", Kind: "veth", Parent: "eth0", Up: true, MTU: 1500},
		},
		CPUs: []report.TopCPU{
			{CPU: 0, Busy: 0.97, User: 0.02, System: 0.1, Softirq: 0.84, IRQ: 0.01, CardInterrupts: 20_000,
				NetRX: 81_300, NetTX: 12, Packets: 81_274, Squeezes: 4},
			{CPU: 1, Busy: 0.12, User: 0.1, System: 0.02, Steal: 0.001},
		},
		TCP: report.TopTCP{Sent: 20_300, Received: 81_200, Retransmits: 12, Retransmitted: 12.0 / 20_300,
			Connections: 34},
		UDP:   report.TopUDP{Received: 10, Sent: 9},
		Drops: []report.TopDrop{{Place: "softnet", Rate: 7, Total: 7}, {Place: "socket"}},
		Events: []report.TopEvent{{Time: Noon, Change: "link-down", Interface: "eth1",
			Text: "eth1 lost its carrier"}},
		Warnings: []string{"/proc/net/stat/nf_conntrack: permission denied"},
	}
	two := one
	two.Time, two.Events = Noon.Add(time.Second), nil
	return []report.TopReading{one, two}
}

// TopFindings are what such a host is judged for.
func TopFindings() []evidence.Finding {
	return []evidence.Finding{
		{Code: evidence.RXRingOverrun, Severity: evidence.Warning, Confidence: 0.9, Where: "near",
			Title:  "The receive ring of eth0 was full for 120 packets/s.",
			Remedy: evidence.Remedy{Text: "Make the ring larger, or give its interrupts a processor that has time."}},
		{Code: evidence.SoftirqCPUSaturated, Severity: evidence.Notice, Confidence: 0.7, Where: "near",
			Title: "CPU 0 spends 84 % of its time in softirqs."},
	}
}

// topDocuments are documents of the live view: a busy host, and one where nothing could be judged.
func topDocuments() []Document {
	changes := Changes()
	newestFirst := []journal.Change{changes[2], changes[1], changes[0]}
	full := report.NewTop(Envelope(), TopReadings(), TopFindings(), newestFirst, nil)
	full.Hidden = 3
	blind := report.NewTop(Envelope(), []report.TopReading{{Time: Noon, Seconds: 0.1}}, nil, nil,
		[]string{"it takes a second or more to judge a host"})
	return []Document{{"top", full}, {"top-blind", blind}}
}
