package reporttest

import (
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/diagnose/processors"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/watch"
	"github.com/linerate/linerate/internal/report"
)

// triage is the host of the old write-ups: one queue, an interrupt for nearly every frame, and one
// CPU that does only that.
func triage() *report.DiagnoseDocument {
	span := evidence.Span{
		Side: "near", Seconds: 3,
		Host: &host.Snapshot{Interfaces: []host.Interface{{
			Name: "eth0", Driver: "e1000e", MTUBytes: 1500, Coalesce: map[string]uint32{"rx-usecs": 3},
			Queues: []host.Queue{{Name: "rx-0", RPSCPUs: "0"}},
		}}},
		Counters: map[string]uint64{"nic.eth0.rx_packets": 300_000, "nic.eth0.rx_bytes": 27_000_000,
			"softnet.dropped": 1200},
		CPUs: []host.CPUTimes{
			{CPU: 0, System: 0.06, SoftIRQ: 2.7, IRQ: 0.24}, {CPU: 1, User: 0.3, System: 0.15, Idle: 2.55},
		},
		PerCPU: []watch.CPU{{CPUTimes: host.CPUTimes{CPU: 0}, Interrupts: 243_000, Packets: 300_000, Squeezed: 90,
			Dropped: 1200, NetRx: 243_000}},
		Interrupts: []watch.CardInterrupt{{Interface: "eth0", Total: 243_000, Interrupt: host.Interrupt{
			Number: 45, Name: "eth0-rx-0", Counts: []host.CPUCount{{CPU: 0, Total: 243_000}},
		}}},
	}
	c := evidence.Case{Near: span.Host, Watched: []evidence.Span{span}}
	d := report.NewDiagnose(Envelope(), "", c, findings()[:1], nil)
	d.CPU = processors.Examine(&span)
	return d
}
