package reporttest

import (
	"fmt"
	"math"
	"time"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/change/bootconf"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/experiment/tune"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/ceiling"
	"github.com/linerate/linerate/internal/host/drops"
	"github.com/linerate/linerate/internal/host/tcpinfo"
	"github.com/linerate/linerate/internal/profile"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/traffic"
)

// Noon is the time of every sample, with a fixed zone so that no test depends on that of the
// machine.
var Noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// Envelope begins every document.
func Envelope() report.Envelope {
	return report.Envelope{Linerate: "v0.1.0", Time: Noon, Host: report.Host{Name: "near", OS: "linux", Arch: "amd64"}}
}

// Snapshot is a host with three interfaces.
func Snapshot() *host.Snapshot {
	return &host.Snapshot{
		Name: "db1", OS: "linux", Kernel: "6.12.4-amd64", Arch: "amd64", Virtualization: "kvm",
		MemoryBytes: 8 << 30, Time: Noon,
		Interfaces: []host.Interface{
			{Name: "lo", Index: 1, Up: true, Carrier: true, Virtual: true, MTUBytes: 65536,
				Addresses: []string{"127.0.0.1/8"}},
			{Name: "eth0", Index: 2, Driver: "e1000e", MAC: "02:00:00:00:00:01", Up: true, Carrier: true,
				MTUBytes: 1500, TxQueueLen: 1000,
				SpeedBitsPerSec: 1e9, Duplex: "full", Qdisc: "fq_codel",
				Bus: &host.Bus{Kind: "pcie", CapacityBitsPerSec: 2e9, MaxCapacityBitsPerSec: 2e9, Width: 1,
					SpeedGigatransfers: 2.5},
				Rings:    &host.Rings{Rx: host.Ring{Current: 256, Max: 4096}, Tx: host.Ring{Current: 256, Max: 4096}},
				Coalesce: map[string]uint32{"rx-usecs": 3},
				Features: map[string]host.Feature{"tx-tcp-segmentation": {On: false}, "rx-gro": {On: true},
					"rx-lro": {Fixed: true}},
				Queues:    []host.Queue{{Name: "rx-0", RPSCPUs: "0"}, {Name: "tx-0"}},
				Addresses: []string{"192.0.2.1/24", "2001:db8::1/64"},
				Counters:  map[string]uint64{"rx_dropped": 3, "rx_packets": 123456789}},
			{Name: "eth1", Index: 3, Driver: "virtio_net", MTUBytes: 9000},
		},
		CPUs: []host.CPU{{ID: 0, Model: "Some CPU", CurrentMHz: 2400}, {ID: 1, Model: "Some CPU"}},
		Settings: []host.Setting{{Knob: "sysctl:net.core.rmem_max", Value: "212992"},
			{Knob: "sysctl:net.ipv4.tcp_rmem", Value: "4096 131072 6291456"},
			{Knob: "sysctl:net.ipv4.tcp_wmem", Value: "4096 16384 4194304"},
			{Knob: "sysctl:net.ipv4.tcp_sack", Value: "1"}},
		Routes:   []host.Route{{Destination: "default", Gateway: "192.0.2.254", Interface: "eth0"}},
		Warnings: []string{"/proc/sys/net/core/optmem_max: permission denied"},
	}
}

// Tests are results of the common tests, with losses and warnings.
func Tests() []traffic.Result {
	stream := traffic.Result{
		Test: traffic.Stream, Direction: traffic.Up, Method: "tcp, blocking, pinned", StartTime: Noon,
		DurationSeconds: 3.0001, WarmUpSeconds: 0.5, Streams: 1,
		Bytes: 86_600_000, ThroughputBitsPerSec: 231e6, RetransmitsTotal: new(uint64(0)), MTUBytes: 1500,
		MSSBytes: 1448, CongestionControl: "bbr",
		RTT: &stats.Latencies{Count: 300, Min: 0.0201, Mean: 0.0204, P50: 0.0204, P90: 0.0206, P99: 0.0211,
			P999: 0.0213, Max: 0.0214, StdDev: 0.0001},
		Ends: traffic.Ends{
			Local: traffic.End{Host: "near", CPUSeconds: 0.4, CPUSecondsPerGigabyte: 4.61,
				CPUs: []host.CPUTimes{{CPU: -1, User: 0.1, System: 0.3, Idle: 5.6}},
				TCP:  []tcpinfo.TCPInfo{{Sender: true, BusySeconds: 3, RwndLimitedSeconds: 2.8, WScaleOK: true}}},
			Remote: traffic.End{Host: "far", CPUSeconds: 0.2, CPUSecondsPerGigabyte: 2.3,
				Drops:    []drops.Drop{{Place: "softnet.dropped", Total: 12}},
				Counters: map[string]uint64{"softnet.dropped": 12}},
		},
		Warnings: []string{"2 % of the processor time was stolen"},
	}
	for i := range 3 {
		stream.Intervals = append(stream.Intervals,
			traffic.Interval{StartSeconds: float64(i), EndSeconds: float64(i + 1), ThroughputBitsPerSec: 231e6,
				RTTSeconds: 0.0204})
	}
	bidir := stream
	bidir.Direction, bidir.UpBitsPerSec, bidir.DownBitsPerSec, bidir.ThroughputBitsPerSec,
		bidir.Warnings = traffic.Bidir, 231e6, 700e6, 931e6, nil
	bidir.Ends.Remote.Drops = nil
	return []traffic.Result{
		{Test: traffic.Ping, Direction: traffic.Up, Method: "udp echo", StartTime: Noon, DurationSeconds: 1, Streams: 1,
			LossRatio: new(0.0),
			RTT: &stats.Latencies{Count: 20, Min: 0.0201, Mean: 0.0202, P50: 0.0202, P90: 0.0203, P99: 0.0205,
				P999: 0.0205, Max: 0.0205, StdDev: 0.00005}},
		{Test: traffic.RR, Direction: traffic.Up, StartTime: Noon, DurationSeconds: 2, Streams: 1,
			TransactionsPerSec: 49.1,
			RTT: &stats.Latencies{Count: 98, Min: 0.0201, Mean: 0.0203, P50: 0.0203, P90: 0.0204, P99: 0.0209,
				P999: 0.021, Max: 0.021, StdDev: 0.0001}},
		stream, bidir,
	}
}

func findings() []evidence.Finding {
	return []evidence.Finding{{
		Code: evidence.ReceiveWindowLimited, Severity: evidence.Warning, Confidence: 0.97, Where: "far",
		Title: "The receive window of the far host holds the flow at 231 Mb/s: 576 KiB per round trip of 20.4 ms.",
		Evidence: []evidence.Evidence{
			{Name: "throughput", Value: 231e6, Unit: "bits_per_second",
				Source: "payload counted at the receiver (far)"},
			{Name: "round trip under load", Value: 0.0204, Unit: "seconds", Source: "tcp_info tcpi_rtt (near)"},
			{Name: "largest receive window offered", Value: 589824.0, Unit: "bytes",
				Source: "tcp_info tcpi_snd_wnd (near)"},
			{Name: "busy time limited by the receive window", Value: 0.93, Unit: "ratio",
				Source: "tcp_info tcpi_rwnd_limited / tcpi_busy_time (near)"},
			{Name: "not a number", Value: math.NaN(), Unit: "ratio", Source: "a counter that was not there"},
			{Name: "window scaling agreed on", Value: true, Source: "tcp_info tcpi_options (near)"},
		},
		Rejected: []string{"Not the send buffer: it held the sender for 0 % of its busy time.",
			"Not loss: 0 of 59.8 k segments were sent again (0 %)."},
		Remedy: evidence.Remedy{
			Text:  "Raise the third field of net.ipv4.tcp_rmem at the far host to 9 MiB or more.",
			Knobs: []string{"sysctl:net.ipv4.tcp_rmem"},
			Settings: []evidence.Candidate{{Knob: "sysctl:net.ipv4.tcp_rmem", Side: "far",
				Levels: []knob.Value{"4096 87380 9437184", "4096 87380 18874368"},
				Why:    "the receiver's buffer bounds the window"}},
		},
		Causes: []evidence.Code{evidence.SendBufferLimited},
	}, {
		Code: evidence.MeasurementUnreliable, Severity: evidence.Info, Confidence: 0.6, Where: "path",
		Title: "The figures are less certain than usual at 231 Mb/s: 7 % of the processor time of the near " +
			"host was stolen.",
	}}
}

// Run returns an experiment like that of the receive-window scenario: one remedy kept, two
// candidates without an effect, one refused.
func Run() report.TuneRun {
	o := &tune.Outcome{
		Baseline: &tune.Baseline{Objective: 231.2e6, Segments: 12,
			Guards: map[string]float64{"rtt_loaded_seconds": 0.0204, "retransmit_ratio": 0,
				"cpu_seconds_per_gigabyte": 6.9}},
		Pilot: &tune.Pilot{Effect: tune.Effect{Pairs: 6, Ratio: 1.001, Low: 0.994, High: 1.009, Confidence: 0.95},
			PairNoise: 0.0062, NoiseFloor: 0.0016, MinUsefulEffect: 0.01, ResolvableEffect: 0.0152, Attempts: 1},
		Trials: []tune.Trial{
			{Knob: "sysctl:net.ipv4.tcp_rmem", From: "4096 87380 1048576", To: "4096 87380 9437184", Side: tune.Far,
				Effect: tune.Effect{Pairs: 6, Ratio: 3.91, Low: 3.84, High: 3.97, Confidence: 0.95}, Verdict: tune.Kept,
				Reason: "gains ×3.91 (×3.84…×3.97), more than the 1.0 % needed",
				Why:    "the receiver's buffer bounds the window it can offer",
				Levels: []tune.Level{{Value: "4096 87380 9437184", Segments: 4, Mean: 904e6, Chosen: true},
					{Value: "4096 87380 37748736", Segments: 4, Mean: 902e6}}},
			{Knob: "sysctl:net.ipv4.tcp_wmem", From: "4096 16384 4194304", To: "4096 16384 37748736", Side: tune.Near,
				Effect:  tune.Effect{Pairs: 10, Ratio: 1.002, Low: 0.991, High: 1.013, Confidence: 0.95},
				Verdict: tune.RevertedUnproven,
				Reason:  "not proven: +0.2 % (-0.9 %…+1.3 %) after 10 pairs and no prospect of the 1.0 % needed"},
			{Knob: "sysctl:net.core.rmem_max", Side: tune.Far, From: "212992", To: "37748736", Verdict: tune.Refused,
				Reason: "global, and this is a container"},
			{Knob: "link:lan0/txqueuelen", From: "500", To: "10000", Side: tune.Near,
				Effect:  tune.Effect{Pairs: 6, Ratio: 0.956, Low: 0.941, High: 0.968, Confidence: 0.95},
				Verdict: tune.RevertedWorse,
				Reason:  "worse: -4.4 % (-5.9 %…-3.2 %)"},
		},
		Final: &tune.Effect{Pairs: 6, Ratio: 3.92, Low: 3.87, High: 3.98, Confidence: 0.95},
		Kept: []tune.Change{{Knob: "sysctl:net.ipv4.tcp_rmem", Side: tune.Far, From: "4096 87380 1048576",
			To: "4096 87380 9437184", ID: "01JD"}},
		State:    tune.StateCommitted,
		Reason:   "confirmed: ×3.92 (×3.87…×3.98)",
		Warnings: []string{"one segment was disturbed and measured again"}, Discarded: 1,
	}
	clock := 0.0
	wobble := func(i int) float64 { return 1 + 0.008*math.Sin(float64(i)*2.4) }
	add := func(phase tune.Phase, trial, pair int, arm string, level float64) {
		s := tune.Segment{Phase: phase, Trial: trial, Pair: pair, Arm: arm, StartSeconds: clock, DurationSeconds: 1.5,
			Objective: level * wobble(len(o.Segments)),
			Guards: map[string]float64{"rtt_loaded_seconds": 0.0204 + level/4e11, "retransmit_ratio": level / 1e13,
				"cpu_seconds_per_gigabyte": 3.1, "unknown": math.Inf(1)}}
		if phase == tune.PhaseTrial && trial == 1 && pair == 3 && arm == "A" {
			s.Discard, s.Objective = "7 % of the CPU time of the near host was stolen", s.Objective*0.7
		}
		if phase == tune.PhaseTrial && trial == 1 && pair == 4 {
			s.LossRatio = 0.07
		}
		o.Segments = append(o.Segments, s)
		clock += 1.6
	}
	pairs := func(phase tune.Phase, trial, n int, a, b float64) {
		for i := range n {
			if i%3 == 1 { // the coin
				add(phase, trial, i, "B", b)
				add(phase, trial, i, "A", a)
			} else {
				add(phase, trial, i, "A", a)
				add(phase, trial, i, "B", b)
			}
		}
	}
	pairs(tune.PhasePilot, 0, 6, 231.2e6, 231.2e6)
	for round := range 4 {
		add(tune.PhaseLevels, 0, round, "4096 87380 9437184", 904e6)
		add(tune.PhaseLevels, 0, round, "4096 87380 37748736", 902e6)
	}
	pairs(tune.PhaseTrial, 0, 6, 231.2e6, 904e6)
	pairs(tune.PhaseTrial, 1, 10, 904e6, 906e6)
	pairs(tune.PhaseTrial, 3, 6, 904e6, 864e6)
	pairs(tune.PhaseConfirmation, 0, 6, 230.9e6, 905e6)
	return report.TuneRun{
		Target: "10.77.0.2:7070", Goal: "throughput", Findings: findings(), Outcome: o, Duration: 131 * time.Second,
		Changes: []journal.Change{{ID: "01JD", Time: Noon, Knob: "sysctl:net.ipv4.tcp_rmem", Side: "far",
			From: "4096 87380 1048576", To: "4096 87380 9437184", State: journal.Committed}},
	}
}

// nothingRun is the outcome when the path is the limit.
func nothingRun() report.TuneRun {
	return report.TuneRun{
		Target: "10.77.0.2:7070", Goal: "throughput", Duration: 6 * time.Second,
		Findings: []evidence.Finding{{Code: evidence.LinkRateReached, Severity: evidence.Info, Confidence: 0.9,
			Where: "path",
			Title: "The path delivers a steady 95.5 Mb/s and neither host holds it back; nothing to tune here."}},
		Outcome: &tune.Outcome{State: tune.StateUndone, Final: &tune.Effect{Ratio: 1},
			Baseline: &tune.Baseline{Objective: 95.5e6, Segments: 1},
			Reason: "nothing to tune: The path delivers a steady 95.5 Mb/s and neither host holds it back; " +
				"nothing to tune here."},
	}
}

// hostileRun has names and texts that try to break out of their place in the output.
func hostileRun() report.TuneRun {
	r := Run()
	evil := `"><script>alert(1)</script>`
	r.Target = evil
	r.Findings[0].Title = evil
	r.Findings[0].Evidence[0].Source = evil
	r.Outcome.Trials[0].Knob, r.Outcome.Trials[0].To, r.Outcome.Trials[0].Reason = knob.ID(evil), knob.Value(evil), evil
	r.Outcome.Segments[0].Discard = evil
	r.Outcome.Trials[3].Effect = tune.Effect{Pairs: 2, Ratio: 0.9} // both ends open
	r.Changes[0].Knob = knob.ID(evil)
	r.Outcome.Warnings = []string{evil}
	return r
}

// soakedRun kept two overlapping changes and tested them again after an hour: the gain lasts or is
// gone.
func soakedRun(lasts bool) report.TuneRun {
	r := Run()
	o := r.Outcome
	mtu := tune.Trial{Knob: "link:lan0/mtu", From: "1500", To: "9000", Side: tune.Near, Verdict: tune.Kept,
		Profiles: []tune.ArmProfile{
			{Side: tune.Near, SamplesBefore: 240, SamplesAfter: 480, Comparison: *profile.Compare(profiled(1), profiled(3))},
			{Side: tune.Far, SamplesBefore: 240, SamplesAfter: 240, Comparison: *profile.Compare(profiled(1), profiled(1))},
		},
		Effect: tune.Effect{Pairs: 6, Ratio: 1.12, Low: 1.1, High: 1.14, Confidence: 0.95},
		Reason: "gains +12.0 % (+10.0 %…+14.0 %), more than the 1.0 % needed"}
	o.Trials[1] = mtu
	o.Ablation = []tune.Ablation{{Knob: mtu.Knob, Side: mtu.Side,
		Effect: tune.Effect{Pairs: 6, Ratio: 1.03, Low: 1.02, High: 1.04, Confidence: 0.95}, Needed: true}}
	o.Kept = append(o.Kept, tune.Change{Knob: mtu.Knob, Side: mtu.Side, From: mtu.From, To: mtu.To, ID: "01JE"})
	o.Interaction = &tune.Interaction{Product: 4.38, Ratio: 0.895, Low: 0.872, High: 0.918,
		Text: "together they give ×3.92, and one by one they promised ×4.38"}
	o.Warnings = []string{"the changes do not act as they did one by one: " + o.Interaction.Text}
	last := o.Segments[len(o.Segments)-1]
	b := 903e6
	if !lasts {
		b = 231.5e6
	}
	for i := range 6 {
		for _, half := range []tune.Segment{{Arm: "A", Objective: 231e6}, {Arm: "B", Objective: b}} {
			half.Phase, half.Pair, half.DurationSeconds = tune.PhaseSoak, i, 1.5
			half.StartSeconds = last.StartSeconds + 3600 + 1.6*float64(len(o.Segments)%12)
			half.Objective *= 1 + 0.008*math.Sin(float64(len(o.Segments))*2.4)
			o.Segments = append(o.Segments, half)
		}
	}
	o.Soak = &tune.Soak{Effect: tune.Effect{Pairs: 6, Ratio: 3.91, Low: 3.86, High: 3.96, Confidence: 0.95},
		Waited: 3600, Held: true, Reason: "gains ×3.91 (×3.86…×3.96) beyond doubt"}
	r.Changes = append(r.Changes, journal.Change{ID: "01JE", Time: Noon, Knob: mtu.Knob, Side: "near", From: mtu.From,
		To: mtu.To, State: journal.Committed})
	if !lasts {
		o.Soak = &tune.Soak{Effect: tune.Effect{Pairs: 6, Ratio: 1.002, Low: 0.994, High: 1.011, Confidence: 0.95},
			Waited: 3600,
			Reason: "not proven: +0.2 % (-0.6 %…+1.1 %) after 6 pairs and no prospect of any gain"}
		o.RolledBack, o.State, o.Kept, r.Changes = true, tune.StateUndone, nil, nil
		o.Reason = "the gain did not last 1 h 00 min: " + o.Soak.Reason
		for i := range o.Trials {
			if t := &o.Trials[i]; t.Verdict == tune.Kept {
				t.Verdict, t.Reason = tune.RevertedUnproven, t.Reason+"; taken back: "+o.Reason
			}
		}
	}
	return r
}

// shortRun had too little time for one trial with its confirmation.
func shortRun() report.TuneRun {
	r := Run()
	r.Outcome = &tune.Outcome{
		Baseline: r.Outcome.Baseline, Pilot: r.Outcome.Pilot, Segments: r.Outcome.Segments[:12],
		State: tune.StateUndone, Partial: true, BudgetTooSmall: true, BudgetNeeded: 270,
		Reason: "the budget of 30.0 s is too small for one trial and its confirmation: this path can resolve " +
			"gains from 6.04 % on in 1 min 00 s; ask for 4 min 30 s to resolve 1.52 %",
	}
	r.Outcome.Pilot.ResolvableEffect, r.Outcome.Pilot.Unhurried = 0.0604, &tune.Resolution{Effect: 0.0152, Seconds: 251}
	r.Changes, r.Duration = nil, 29*time.Second
	return r
}

// brokenPathRun repaired a path that carried no data.
func brokenPathRun() report.TuneRun {
	r := Run()
	o := r.Outcome
	nothing := tune.Effect{Pairs: 6, Ratio: 1e6, Low: 1e6, High: 1e6, Confidence: 0.95}
	o.Baseline.Objective = 0
	o.Trials = []tune.Trial{{Knob: "sysctl:net.ipv4.tcp_mtu_probing", From: "0", To: "1", Side: tune.Near,
		Effect: nothing, Verdict: tune.Kept,
		Reason: "gains something where there was nothing, more than the 1.0 % needed"}}
	o.Final = &nothing
	o.Kept = []tune.Change{{Knob: "sysctl:net.ipv4.tcp_mtu_probing", Side: tune.Near, From: "0", To: "1", ID: "01JD"}}
	r.Changes = []journal.Change{{ID: "01JD", Time: Noon, Knob: "sysctl:net.ipv4.tcp_mtu_probing", Side: "near",
		From: "0", To: "1", State: journal.Committed}}
	o.Segments = nil
	for i := range 24 {
		s := tune.Segment{Phase: tune.PhasePilot, Pair: i / 2, Arm: string("AB"[i%2]), StartSeconds: 1.6 * float64(i),
			DurationSeconds: 1.5}
		if i >= 12 {
			s.Phase, s.Pair = tune.PhaseConfirmation, (i-12)/2
			if i%2 == 1 {
				s.Objective = 93.6e6
			}
		}
		o.Segments = append(o.Segments, s)
	}
	return r
}

// latencyRun is a tune for transactions, with a change that is no longer needed.
func latencyRun() report.TuneRun {
	r := Run()
	r.Goal = "latency"
	r.Findings = nil
	for i := range r.Outcome.Segments {
		r.Outcome.Segments[i].Objective /= 1e4
	}
	r.Outcome.Baseline.Objective = 23120
	r.Outcome.Ablation = []tune.Ablation{
		{Knob: "sysctl:net.ipv4.tcp_rmem", Side: tune.Far, Effect: tune.Effect{Pairs: 6, Ratio: 3.9, Low: 3.8, High: 4},
			Needed: true, Reused: true},
		{Knob: "ethtool:eth0/coalesce.rx-usecs", Side: tune.Near,
			Effect: tune.Effect{Pairs: 6, Ratio: 1.001, Low: 0.99, High: 1.01}},
	}
	return r
}

// Changes are changes in every state.
func Changes() []journal.Change {
	return []journal.Change{
		{ID: "01JA", Time: Noon, Knob: "sysctl:net.ipv4.tcp_rmem", Side: "near", From: "4096 131072 6291456",
			To: "4096 131072 33554432", State: journal.Committed, Reason: "linerate set"},
		{ID: "01JB", Time: Noon.Add(time.Minute), Knob: "link:eth0/txqueuelen", Side: "near", From: "1000", To: "10000",
			State: journal.Trial, Deadline: new(Noon.Add(2 * time.Minute))},
		{ID: "01JC", Time: Noon.Add(2 * time.Minute), Knob: "sysctl:net.ipv4.tcp_congestion_control", Side: "near",
			From: "cubic", To: "bbr", State: journal.Undone, Note: "undone by guard: the writer died"},
	}
}

// sideEffects is a change that set more than its knob.
func sideEffects() journal.Change {
	c := journal.Change{ID: "01JD", Time: Noon.Add(3 * time.Minute), Knob: "block:sda/scheduler", Side: "near",
		From: "mq-deadline", To: "none", State: journal.Trial, Deadline: new(Noon.Add(4 * time.Minute)),
		SideEffects: []journal.SideEffect{{Knob: "block:sda/nr_requests", From: "64", To: "1023"}}}
	for _, own := range []knob.ID{"async_depth", "fifo_batch", "front_merges", "read_expire", "write_expire"} {
		c.SideEffects = append(c.SideEffects,
			journal.SideEffect{Knob: "block:sda/iosched." + own, From: "16", To: knob.Absent})
	}
	return c
}

// runChanges are those of a tune that tried three values and kept one, of another one whose guard
// acted, and of a user between them.
func runChanges() []journal.Change {
	all := Changes()[:1]
	for i, to := range []knob.Value{"4096 16384 8388608", "4096 16384 16777216", "4096 16384 33554432"} {
		all = append(all, journal.Change{ID: fmt.Sprintf("01JD%d", i), Time: Noon.Add(time.Duration(i) * time.Second),
			Knob: "sysctl:net.ipv4.tcp_wmem", Side: "near", From: "4096 16384 4194304", To: to, State: journal.Undone,
			Note: "undone", Run: "20261120-120000-7f3a"})
	}
	kept, lost := all[len(all)-1], all[len(all)-1]
	kept.ID, kept.State, kept.Note = "01JE", journal.Committed, ""
	lost.ID, lost.Run, lost.Note = "01JF", "20261120-130000-0c1d", "undone by guard: the writer died"
	return append(all, kept, lost)
}

func outcomes() []journal.Outcome {
	c := Changes()
	return []journal.Outcome{
		{Change: c[0], Restored: true},
		{Change: c[1], Foreign: "2000"},
		{Change: c[2], Error: "write sysctl net.ipv4.tcp_congestion_control: permission denied"},
	}
}

func labs() []*report.LabDocument {
	return []*report.LabDocument{
		report.NewLab(Envelope(), report.LabOutcome{Scenario: "receive-window", Expected: "receive-window-limited",
			Found:   "receive-window-limited",
			Healthy: 941e6, Before: 231e6, After: 905e6, Pass: true, Kept: []string{"sysctl:net.ipv4.tcp_rmem"},
			Duration: 95 * time.Second}),
		report.NewLab(Envelope(), report.LabOutcome{Scenario: "healthy", Expected: "healthy", Found: "healthy",
			Healthy: 24e9, Before: 24e9, After: math.NaN(), Pass: true}),
		report.NewLab(Envelope(), report.LabOutcome{Scenario: "path-loss", Expected: "path-loss",
			Found: "link-rate-reached", Healthy: 941e6, Before: 95.4e6,
			Reason: fmt.Sprintf("found %s first, expected %s", "link-rate-reached", "path-loss")}),
		report.NewLab(Envelope(), report.LabOutcome{Scenario: "route-window", Expected: "route-window-clamped",
			Found: "cpu-saturated", Healthy: 941e6, Before: 25.4e6, Disturbed: true,
			Reason: "not judged: other programs used 0.5 of the 2 CPUs of this machine meanwhile " +
				"(the first finding is cpu-saturated, expected route-window-clamped)"}),
		report.NewLab(Envelope(),
			report.LabOutcome{Scenario: "replay-moderation", Expected: "interrupt-moderation-latency",
				Found:   "interrupt-moderation-latency",
				Healthy: 4168, Before: 199, After: 4150, Unit: "transactions_per_second", Pass: true,
				Kept: []string{"near ethtool:eth0/coalesce.rx-usecs"},
				Replay: &report.LabReplay{Row: "S8", Source: "a write-up, 2007", Before: 6543.2, After: 23975.03,
					Needed:    3.66,
					Confirmed: &report.LabGain{Pairs: 6, Ratio: 20.9, Low: 18.2, High: 23.1, Confidence: 0.95},
					Trials: []report.LabReplayTrial{{Change: "near ethtool:eth0/coalesce.rx-usecs", From: "10000",
						To: "3", Verdict: "kept", Reason: "gains ×20.9"}}}}),
	}
}

// Ceilings returns two fixed rates for the snapshot.
func Ceilings() []ceiling.Rate {
	return []ceiling.Rate{
		{Name: "link:eth0", BitsPerSec: 1e9, Why: "negotiated link speed"},
		{Name: "goodput:eth0", BitsPerSec: 941.48e6,
			Why: "payload 1448 of 1538 bytes on the wire: Ethernet 38, IPv4 20, TCP 20, timestamps 12; frames " +
				"of 1500 bytes"},
	}
}

func knobs() []knob.Definition {
	return []knob.Definition{
		{Pattern: "sysctl:net.ipv4.tcp_rmem", Title: "TCP receive buffer: minimum, start, maximum",
			What: "The three sizes of a TCP receive buffer. Only a part of the largest, about half, is " +
				"offered as window, so that a flow reaches at most that part per round trip.",
			Form: knob.FormInts, Count: 3, Ascending: true, Min: new(int64(1)), Unit: "bytes",
			Default: "4096 131072 33554432", DefaultOn: "Linux 6.18", Scope: knob.ScopeNamespace,
			Effect: knob.EffectNow, Symptom: "The sender is limited by this window.", Expect: "A wider window.",
			Risk: "Memory per connection.", Persist: "a file in /etc/sysctl.d", Source: "ip-sysctl.rst", Undo: knob.UndoNow},
		{Pattern: "link:*/txqueuelen", Title: "Length of the transmit queue", What: "How many packets wait.",
			Form: knob.FormInt, Default: "1000", Scope: knob.ScopeDevice,
			Disturbance: knob.DisturbsNewSockets, Effect: knob.EffectNewQdisc, Symptom: "Drops at the qdisc.",
			Expect: "Fewer drops.", Risk: "Delay.", Source: "ip-link(8)", Undo: knob.UndoNow},
	}
}

// knobsNow are the values of the sample knobs: one that differs from its file, several equal ones,
// and one that cannot be read.
func knobsNow() map[knob.ID][]report.KnobNow {
	value := func(s knob.Value) *knob.Value { return &s }
	return map[knob.ID][]report.KnobNow{
		"sysctl:net.ipv4.tcp_rmem": {{Knob: "sysctl:net.ipv4.tcp_rmem", Value: value("4096 131072 6291456"),
			SetBy: &bootconf.Line{File: "/etc/sysctl.d/99-net.conf", Number: 3, Value: "4096 87380 6291456",
				By: "sysctl"}, ReadOnly: "read-only here: read-only file system"}},
		"link:*/txqueuelen": {
			{Knob: "link:eth0/txqueuelen", Value: value("1000")}, {Knob: "link:eth1/txqueuelen", Value: value("1000")},
			{Knob: "link:lo/txqueuelen", Value: value("")},
			{Knob: "link:wg0/txqueuelen", Unread: "operation not permitted"},
		},
	}
}
