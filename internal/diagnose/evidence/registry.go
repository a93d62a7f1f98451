package evidence

import (
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// The codes: the path and its windows, losses, interrupts and queues, CPUs, frames, hardware,
// tables, sockets, TCP behaviour, and the verdicts about the others.
const (
	LinkRateReached            Code = "link-rate-reached"
	ReceiveWindowLimited       Code = "receive-window-limited"
	SendBufferLimited          Code = "send-buffer-limited"
	WindowScalingOff           Code = "window-scaling-off"
	RouteWindowClamped         Code = "route-window-clamped"
	PathLoss                   Code = "path-loss"
	CongestionControlMismatch  Code = "congestion-control-mismatch"
	Bufferbloat                Code = "bufferbloat"
	Policer                    Code = "policer"
	InterruptModerationLatency Code = "interrupt-moderation-latency"
	InterruptStorm             Code = "interrupt-storm"
	NAPIBudgetExhausted        Code = "napi-budget-exhausted"
	SoftnetBacklogDrops        Code = "softnet-backlog-drops"
	RXRingOverrun              Code = "rx-ring-overrun"
	TXQueueDrops               Code = "tx-queue-drops"
	QdiscDrops                 Code = "qdisc-drops"
	PauseFrames                Code = "pause-frames"
	SoftirqCPUSaturated        Code = "softirq-cpu-saturated"
	CPUSaturated               Code = "cpu-saturated"
	CPUSteal                   Code = "cpu-steal"
	CPUPowerState              Code = "cpu-power-state"
	NUMAMisplaced              Code = "numa-misplaced"
	RSSImbalance               Code = "rss-imbalance"
	OffloadsOff                Code = "offloads-off"
	MTUSmall                   Code = "mtu-small"
	MTUBlackHole               Code = "mtu-black-hole"
	MTUMismatch                Code = "mtu-mismatch"
	LinkNegotiatedLow          Code = "link-negotiated-low"
	HalfDuplex                 Code = "half-duplex"
	CRCErrors                  Code = "crc-errors"
	BusLimited                 Code = "bus-limited"
	EmulatedNIC                Code = "emulated-nic"
	LockContention             Code = "lock-contention"
	CopyCost                   Code = "copy-cost"
	ChecksumInSoftware         Code = "checksum-in-software"
	DriverPollCost             Code = "driver-poll-cost"
	AllocationCost             Code = "allocation-cost"
	BPFCost                    Code = "bpf-cost"
	FirewallCost               Code = "firewall-cost"
	ConntrackFull              Code = "conntrack-full"
	NeighbourTableFull         Code = "neighbour-table-full"
	PortExhaustion             Code = "port-exhaustion"
	ListenOverflow             Code = "listen-overflow"
	UDPSocketOverflow          Code = "udp-socket-overflow"
	FragmentLoss               Code = "fragment-loss"
	TCPMemoryPressure          Code = "tcp-memory-pressure"
	ApplicationLimited         Code = "application-limited"
	Reordering                 Code = "reordering"
	TimeoutsIncast             Code = "timeouts-incast"
	DelayedACKStall            Code = "delayed-ack-stall"
	SlowStartAfterIdle         Code = "slow-start-after-idle"
	DiskCacheMeasured          Code = "disk-cache-measured"
	DiskScheduler              Code = "disk-scheduler"
	DiskReadAhead              Code = "disk-readahead"
	DiskQueueDepth             Code = "disk-queue-depth"
	DiskWriteCache             Code = "disk-write-cache"
	DiskLinkLow                Code = "disk-link-low"
	DiskSaturated              Code = "disk-saturated"
	DiskIOErrors               Code = "disk-io-errors"
	ResolverSingleWorker       Code = "resolver-single-worker"
	ResolverUDPDrops           Code = "resolver-udp-drops"
	ResolverTCPBound           Code = "resolver-tcp-bound"
	ResolverRecursiveClients   Code = "resolver-recursive-clients"
	ResolverLameUpstream       Code = "resolver-lame-upstream"
	ResolverUpstreamSlow       Code = "resolver-upstream-slow"
	ResolverCacheTooSmall      Code = "resolver-cache-too-small"
	ResolverLogCost            Code = "resolver-log-cost"
	ResolverDNSSECCost         Code = "resolver-dnssec-cost"
	ResolverNothingToTune      Code = "resolver-nothing-to-tune"
	SwitchHalfDuplex           Code = "switch-half-duplex"
	SwitchPortErrors           Code = "switch-port-errors"
	SwitchPortDiscards         Code = "switch-port-discards"
	LossAtSwitch               Code = "loss-at-switch"
	MeasurementUnreliable      Code = "measurement-unreliable"
	DriverFault                Code = "driver-fault"
	LinkFlapping               Code = "link-flapping"
	LocalDrops                 Code = "local-drops"
	NoTraffic                  Code = "no-traffic"
	Healthy                    Code = "healthy"
)

// codes is the order of the registry, and that of findings of equal severity: the more certain
// a code is by its nature, the earlier it stands.
var codes = []Code{
	// Facts about the hardware.
	HalfDuplex, LinkNegotiatedLow, LinkFlapping, DriverFault, CRCErrors, BusLimited,

	// What makes traffic fail outright.
	MTUBlackHole, MTUMismatch, ConntrackFull, NeighbourTableFull, ListenOverflow, PortExhaustion,

	// Places with counted drops.
	RXRingOverrun, SoftnetBacklogDrops, QdiscDrops, TXQueueDrops, PauseFrames, UDPSocketOverflow,
	FragmentLoss, TCPMemoryPressure,

	// Limits that the kernel itself reports.
	WindowScalingOff, RouteWindowClamped, ReceiveWindowLimited, SendBufferLimited, ApplicationLimited,

	// Conclusions from rates and round trips.
	Policer, Reordering, TimeoutsIncast, PathLoss, CongestionControlMismatch, Bufferbloat,

	// CPUs.
	CPUSteal, RSSImbalance, FirewallCost, LockContention, ChecksumInSoftware, BPFCost, NUMAMisplaced,
	CPUPowerState, InterruptStorm, OffloadsOff, MTUSmall,
	AllocationCost, CopyCost, DriverPollCost, SoftirqCPUSaturated, CPUSaturated, NAPIBudgetExhausted, EmulatedNIC,

	// What costs only latency.
	InterruptModerationLatency, DelayedACKStall, SlowStartAfterIdle,

	// Verdicts about the others.
	LinkRateReached, LocalDrops, MeasurementUnreliable, NoTraffic, Healthy,

	// Disks, which have a verdict of their own.
	DiskCacheMeasured, DiskIOErrors, DiskLinkLow, DiskSaturated, DiskQueueDepth, DiskScheduler, DiskReadAhead,
	DiskWriteCache,

	// Name servers, likewise.
	ResolverSingleWorker, ResolverUDPDrops, ResolverTCPBound, ResolverRecursiveClients, ResolverCacheTooSmall,
	ResolverLameUpstream, ResolverUpstreamSlow, ResolverLogCost, ResolverDNSSECCost, ResolverNothingToTune,

	// Ports of switches, which linerate-hub reads.
	LossAtSwitch, SwitchHalfDuplex, SwitchPortErrors, SwitchPortDiscards,
}

// Order returns the place of a code in the order of certainty; -1 if it does not exist.
func Order(code Code) int { return slices.Index(codes, code) }

// Entry is what the registry knows of one code.
type Entry struct {
	Code         Code   `json:"code"`
	Title        string `json:"title"`                   // a few words
	Meaning      string `json:"meaning"`                 // in plain words
	Shows        string `json:"shows,omitempty"`         // the evidence that the rule needs
	ConfusedWith string `json:"confused_with,omitempty"` // the look-alikes that the rule rejects
	Remedy       string `json:"remedy,omitempty"`        // what to do
	Proof        string `json:"proof,omitempty"`         // the experiment that shows it, and its control
	Rule         bool   `json:"rule"`                    // false: the code is reserved and has no rule in this version
}

// Page returns the path of the entry's documentation inside the source tree.
func (e Entry) Page() string { return "docs/findings/" + string(e.Code) + ".md" }

//go:embed findings/*.json
var registryFiles embed.FS

// Registry returns the entry of every code. The slice belongs to the caller. It panics if an
// embedded file is missing or broken, which the tests exclude.
//
// It parses the files at each call: that takes microseconds and avoids a package variable that any
// caller could change.
func Registry() []Entry {
	all := make([]Entry, 0, len(codes))
	for _, code := range codes {
		b, err := registryFiles.ReadFile("findings/" + string(code) + ".json")
		e := Entry{Code: code}
		if err == nil {
			err = json.Unmarshal(b, &e)
		}
		if err != nil {
			panic(fmt.Sprintf("evidence: embedded entry of %s: %v", code, err))
		}
		all = append(all, e)
	}
	return all
}

// Explain returns the entry of one code; false if the code does not exist.
func Explain(code Code) (Entry, bool) {
	all := Registry()
	i := slices.IndexFunc(all, func(e Entry) bool { return e.Code == code })
	if i < 0 {
		return Entry{}, false
	}
	return all[i], true
}

// Page returns the documentation page of a code as Markdown. A test keeps the files in
// docs/findings equal to it, so that page, program and JSON agree.
func Page(e Entry) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n*%s*\n\n%s\n", e.Code, e.Title, e.Meaning)
	section := func(title, text string) {
		if text != "" {
			fmt.Fprintf(&b, "\n## %s\n\n%s\n", title, text)
		}
	}
	section("How it shows", e.Shows)
	section("Easily confused with", e.ConfusedWith)
	section("What to do", e.Remedy)
	section("How to prove it", e.Proof)
	if !e.Rule {
		b.WriteString("\nThis version has no rule for this code yet; the name is reserved.\n")
	}
	return b.String()
}
