package top_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/reporttest"
	"github.com/linerate/linerate/internal/top"
)

// readings are two intervals of a busy host: a NIC that loses packets, a quiet NIC, a bridge, and
// an interface whose name contains terminal commands.
func readings() []top.Reading {
	one := top.Reading{
		Time: reporttest.Noon, Seconds: 1.0002,
		Interfaces: []top.Interface{
			{Name: "eth0", Driver: "e1000e", Kind: "ethernet", Up: true, Speed: new(1e9), MTU: 1500, Receive: 941e6,
				Transmit: 12.4e6, Share: new(0.941),
				ReceivePackets: 81_274, TransmitPackets: 20_310, ReceiveMulticast: 0.5,
				Drops: []top.Drop{{Place: "ring", Direction: "receive", Rate: 120, Total: 4321},
					{Place: "unwanted", Direction: "receive", Rate: 2, Total: 17}},
				Errors: []top.Drop{{Place: "crc", Direction: "receive", Rate: 0, Total: 3}},
				Qdisc:  &top.Qdisc{Overlimit: 3, Backlog: 4542},
				Queues: []top.Queue{{Queue: "rx-0", Packets: new(81_274.0), Bits: new(941e6), Drops: new(120.0),
					Interrupts: new(20_000.0)},
					{Queue: "tx-0", Packets: new(20_310.0), Interrupts: new(0.0)}}},
			{Name: "eth1", Driver: "virtio_net", Kind: "ethernet", MTU: 9000, CarrierChanges: 2},
			{Name: "br0", Kind: "bridge", Up: true, MTU: 1500, Receive: 2048, Transmit: 512, ReceivePackets: 4,
				TransmitPackets: 1},
			{Name: "e\x1b[2Jvil", Kind: "veth", Parent: "eth0", Up: true, MTU: 1500},
		},
		CPUs: []top.CPU{
			{CPU: 0, Busy: 0.97, User: 0.02, System: 0.1, Softirq: 0.84, IRQ: 0.01, CardInterrupts: 20_000,
				NetRX: 81_300, NetTX: 12, Packets: 81_274, Squeezes: 4},
			{CPU: 1, Busy: 0.12, User: 0.1, System: 0.02, Steal: 0.001},
		},
		TCP: top.TCP{Sent: 20_300, Received: 81_200, Retransmits: 12, Retransmitted: 12.0 / 20_300,
			Connections: 34},
		UDP:       top.UDP{Received: 10, Sent: 9},
		Processes: talk().Processes(), Connections: talk().Connections,
		Drops: []top.Drop{{Place: "softnet", Rate: 7, Total: 7}, {Place: "socket"}},
		Events: []top.Event{{Time: reporttest.Noon, Change: "link-down", Interface: "eth1",
			Text: "eth1 lost its carrier"}},
		Warnings: []string{"/proc/net/stat/nf_conntrack: permission denied"},
	}
	two := one
	two.Time, two.Events = reporttest.Noon.Add(time.Second), nil
	return []top.Reading{one, two}
}

// findings are the findings for such a host.
func findings() []evidence.Finding {
	return []evidence.Finding{
		{Code: evidence.RXRingOverrun, Severity: evidence.Warning, Confidence: 0.9, Where: "near",
			Title:  "The receive ring of eth0 was full for 120 packets/s.",
			Remedy: evidence.Remedy{Text: "Make the ring larger, or give its interrupts a processor that has time."}},
		{Code: evidence.SoftirqCPUSaturated, Severity: evidence.Notice, Confidence: 0.7, Where: "near",
			Title: "CPU 0 spends 84 % of its time in softirqs."},
	}
}

// TestDocuments checks that each document of the live view fits its schema and equals its golden
// file: a busy host, and one that could not be judged.
func TestDocuments(t *testing.T) {
	changes := reporttest.Changes()
	newestFirst := []journal.Change{changes[2], changes[1], changes[0]}
	full := top.NewDocument(reporttest.Envelope(), readings(), findings(), newestFirst, nil)
	full.Hidden = 3
	blind := top.NewDocument(reporttest.Envelope(), []top.Reading{{Time: reporttest.Noon, Seconds: 0.1}}, nil, nil,
		[]string{"it takes a second or more to judge a host"})
	for name, d := range map[string]*top.Document{"document": full, "document-blind": blind} {
		var b bytes.Buffer
		if err := report.EncodeIndent(&b, d); err != nil {
			t.Fatal(err)
		}
		if err := reporttest.Validate(b.Bytes(), report.Described{Name: top.Schema, Value: top.Document{}}); err != nil {
			t.Error(err)
		}
		golden(t, name+".json", b.String())
	}
}
