package reporttest

import (
	"github.com/linerate/linerate/internal/change/advice"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/report"
)

// appliedProfile is a TuneD profile before it is tried: candidates, settings that are left out for
// one reason or for several, an include that is not there, and a name that tries to control the
// terminal.
func appliedProfile() *report.ApplyDocument {
	const other = "not in the catalogue: No setting of the network"
	d := &report.ApplyDocument{Envelope: Envelope().Of(report.SchemaApply), Profile: "network-latency", Goal: "latency",
		Files:   []string{"/usr/lib/tuned/latency-performance/tuned.conf", "/usr/lib/tuned/network-latency/tuned.conf"},
		Missing: []string{"site-latency"}, Candidates: 2, NotUnderstood: 1,
		Settings: []report.ApplySetting{
			{Knob: "tuned:cpu/governor", Value: "performance", Verdict: advice.Unknown, Why: "No setting of the network.",
				Where: "line 6 of latency-performance", LeftOut: other},
			{Knob: "sysctl:kernel.timer_migration", Value: "0", Verdict: advice.Unknown, Why: "No setting of the network.",
				Where: "line 17 of network-latency", LeftOut: other},
			{Knob: "sysctl:net.core.busy_read", From: "0", Value: "50", Disturbance: 1, Verdict: advice.StillRight,
				Why: "Exists.", Where: "line 10 of network-latency"},
			{Knob: "ethtool:eth0/coalesce.rx-usecs", From: "125", Value: "0", Verdict: advice.StillRight,
				Why: "Exists.", Where: "line 11 of network-latency"},
			{Knob: "sysctl:net.ipv4.tcp_tw_recycle\x1b[2J", Value: "1", Verdict: advice.Removed, Why: "Gone.",
				Where: "line 12 of network-latency", LeftOut: "removed: Gone."},
			{Knob: "sysctl:net.ipv4.tcp_rmem", From: "4096 131072 33554432", Value: "4096 131072 16777216",
				Verdict: advice.Harmful, Why: "Lowers the limit.", Where: "line 13 of network-latency",
				LeftOut: "harmful: Lowers the limit of automatic growth of the receive window: 16777216, where the " +
					"default since Linux 6.16 is 33554432."},
			{Knob: "sysctl:net.ipv4.tcp_fastopen", From: "3", Value: "3", Disturbance: 1, Verdict: advice.StillRight,
				Why: "Exists.", Where: "line 14 of network-latency", LeftOut: "this host has it already"},
		}}
	report.FillSlices(d)
	return d
}

// refusedProfile has nothing to try.
func refusedProfile() *report.ApplyDocument {
	d := &report.ApplyDocument{Envelope: Envelope().Of(report.SchemaApply), Profile: "router", Goal: "packets",
		Settings: []report.ApplySetting{{Knob: "sysctl:net.core.netdev_budget", From: "300", Value: "600", Disturbance: 1,
			Verdict: advice.StillRight, Why: "At 10 Gb/s one round of polling takes 300.",
			LeftOut: "not permitted: it belongs to the whole kernel"}}}
	report.FillSlices(d)
	return d
}

// plannedRun is the dry run of a tune, with its plan.
func plannedRun() *report.TuneDocument {
	d := report.NewTune(Envelope(), nothingRun())
	d.Plan = &report.TunePlan{
		Objective: "throughput where p99_rtt<5ms and cpu<80%", RoundTripSeconds: 0.0101, SegmentSeconds: 1.5,
		WarmUpSeconds: 0.5, EstimateSeconds: 96,
		Notes: []string{"nothing is changed on db2: its `linerate serve` runs without --allow-tuning; 1 of 4 candidates " +
			"belong to it"},
		Candidates: []report.PlannedCandidate{
			{Side: "near", Knob: "sysctl:net.ipv4.tcp_wmem", From: "4096 16384 32768",
				Levels: []knob.Value{"4096 16384 4194304", "4096 16384 16777216"}, Why: "send-buffer-limited",
				Risk: "Memory of every connection.", EstimateSeconds: 32},
			{Side: "near", Knob: "ethtool:enp0s31f6/feature.tx-tcp-segmentation", From: "off", Levels: []knob.Value{"on"},
				Why: "offloads-off", Risk: "Some NICs hang or send wrong packets with it.", EstimateSeconds: 24},
			{Side: "near", Knob: "link:enp0s31f6/mtu", From: "1500", Levels: []knob.Value{"9000"}, Disturbance: 3,
				Why: "mtu-small", Refused: "disturbs running traffic (class d3, allowed is d1; --allow d3 widens)"},
			{Side: "far", Knob: "sysctl:net.ipv4.tcp_rmem", From: "4096 131072 6291456",
				Levels: []knob.Value{"4096 131072 33554432"}, Why: "receive-window-limited",
				Refused: "nothing is changed on db2: its `linerate serve` runs without --allow-tuning"},
		},
	}
	return d
}
