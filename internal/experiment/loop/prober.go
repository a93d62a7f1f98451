package loop

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/experiment/goal"
	"github.com/linerate/linerate/internal/experiment/tune"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/engine"
)

// smallPacketBytes is the payload of the datagrams of the packets goal: with headers a packet of
// about a hundred bytes, like those of voice, games and name servers. The cost of a packet hardly
// depends on its size; the cost of a byte is the subject of the throughput goal.
const smallPacketBytes = 64

// besideSegment is the time between the pings beside a segment: forty in the shortest one suffice
// for a median, and for a 99th percentile, which is then the worst.
const besideSegment = 20 * time.Millisecond

// probing describes the segments of a prober.
type probing struct {
	objective       goal.Objective
	direction       traffic.Direction
	streams         int
	segment, warmUp time.Duration
	floodWarmUp     time.Duration // for tests of the packets goal
	echoes          bool          // the path answers pings, so they can run beside the load
	cards           [2]string     // the NICs that carry the test, near and far; empty: unknown
}

// prober measures one short segment with new connections.
type prober struct {
	far     Far
	goal    goal.Goal
	bounded bool           // the objective has a bound on the goal's own quantity
	specs   []traffic.Spec // the goal's own test first, then those for other bounds
	cross   crossTraffic
	notes   []string // doubts of the tests about the whole run, each once

	samplers map[tune.Side]Sampler // of the hosts, beside the goal's own test; nil: none
}

// newProber returns a prober with the tests of a segment: the goal's own, and one for every bound
// on a quantity that it does not measure.
func newProber(far Far, p probing) *prober {
	out := &prober{far: far, goal: p.objective.Goal, bounded: p.objective.Asks(ownGuard(p.objective.Goal)),
		specs: []traffic.Spec{p.spec(p.objective.Goal)}, cross: crossTraffic{cards: p.cards}}
	for _, g := range []goal.Goal{goal.Throughput, goal.Latency, goal.Packets} {
		if g != p.objective.Goal && slices.ContainsFunc(measuredBy[g], p.objective.Asks) {
			out.specs = append(out.specs, p.spec(g))
		}
	}
	return out
}

// measuredBy are the guard-rails that only the test of one goal measures.
var measuredBy = map[goal.Goal][]string{
	goal.Throughput: {goal.GuardThroughput, goal.GuardLoadedRTT, goal.GuardRetransmits},
	goal.Latency:    {goal.GuardLatency, goal.GuardTransactions},
	goal.Packets:    {goal.GuardPackets, goal.GuardLoss},
}

// spec returns the test of one goal. It has a single interval: interim results are unused, and each
// costs a message on the path under test.
func (p probing) spec(g goal.Goal) traffic.Spec {
	// What the kernels learnt about the path in one arm must not affect the other.
	s := traffic.Spec{Direction: p.direction, Streams: p.streams, Duration: p.segment, WarmUp: p.warmUp,
		Interval: p.segment, ForgetPeer: true}
	switch g {
	case goal.Latency:
		// One byte in each direction is the smallest transaction of TCP.
		s.Test, s.Direction, s.RequestBytes, s.ResponseBytes = traffic.RR, traffic.Up, 1, 1
		return s
	case goal.Packets:
		// At full speed, and each datagram as a packet of its own: the kernel would split a batch
		// late and relieve the path under test.
		s.Test, s.PacketBytes, s.Batch = traffic.UDP, smallPacketBytes, "mmsg"
		// Such a flood has its rate from the first packet. Agreeing on the end of a warm-up in the
		// middle of a flood can take the two hosts as long as the flood lasts.
		s.WarmUp = p.floodWarmUp
	default:
		// With the copies that programs make, as in a diagnosis: a knob is kept for its effect on
		// programs.
		s.Test, s.SendMethod, s.ReceiveMethod = traffic.Stream, engine.SendCopy, engine.ReceiveCopy
	}
	if p.echoes {
		s.ProbeGap = besideSegment
	}
	return s
}

// Measure runs one segment and returns its results as an observation for the experiment.
func (p *prober) Measure(ctx context.Context) (tune.Observation, error) {
	var o tune.Observation
	for i, spec := range p.specs {
		var beside *sampling
		if i == 0 {
			beside = beginSampling(ctx, p.samplers, spec.WarmUp, spec.Duration)
		}
		r, err := p.far.Run(ctx, spec, nil)
		profiles := beside.end(p.refuse)
		if err != nil {
			return tune.Observation{}, err
		}
		for _, w := range r.Warnings {
			if strings.HasPrefix(w, traffic.NotForgotten) && !slices.Contains(p.notes, w) {
				p.notes = append(p.notes, w)
			}
		}
		discard, loss := disturbed(r)
		// What other traffic costs on top of what was stolen is unknown.
		if cross := p.cross.judge(i, r); cross != "" {
			discard, loss = cmp.Or(discard, cross), 0
		}
		part := observe(r)
		if i == 0 {
			o = part
			o.Profiles = profiles
			o.Objective = figure(p.goal, r)
			if !p.bounded {
				delete(o.Guards, ownGuard(p.goal))
			}
		} else {
			// The goal's own test takes precedence over that of another goal.
			own := o.Guards
			o.Guards = part.Guards
			maps.Copy(o.Guards, own)
		}
		switch {
		case discard == "":
		case o.Discard == "":
			o.Discard, o.LossRatio = discard, loss
		case o.LossRatio > 0 && loss > 0:
			o.LossRatio = max(o.LossRatio, loss)
		default:
			o.LossRatio = 0
		}
	}
	return o, nil
}

// figure returns the objective in the unit of the goal; more is better.
func figure(g goal.Goal, r *traffic.Result) float64 {
	switch g {
	case goal.Latency:
		return r.TransactionsPerSec
	case goal.Packets:
		return r.PacketsPerSec
	}
	return r.ThroughputBitsPerSec
}

// observe returns the guard-rails of one test.
//
// An unknown guard-rail is absent from the map and not zero: without TCP_INFO retransmissions are
// unknown, and zero would be the best value. Retransmissions are those of the sender, the only end
// that knows them; cost and drops cover both ends, because a change at one end can move the work to
// the other.
func observe(r *traffic.Result) tune.Observation {
	o := tune.Observation{Guards: map[string]float64{}}
	set := func(name string, v float64, is bool) {
		if is {
			o.Guards[name] = v
		}
	}
	if r.RTT != nil {
		o.Guards[goal.GuardP50RTT], o.Guards[goal.GuardP99RTT] = r.RTT.P50, r.RTT.P99
	}
	sender := r.Ends.Local
	if r.Direction == traffic.Down {
		sender = r.Ends.Remote
	}
	var retransmitted, sent, rtt float64
	var flows int
	for _, t := range sender.TCP {
		if !t.Sender {
			continue
		}
		retransmitted += float64(t.RetransSegs)
		sent += float64(t.SegsOut)
		if t.MeanRTTSeconds > 0 {
			rtt += t.MeanRTTSeconds
			flows++
		}
	}
	set(goal.GuardRetransmits, retransmitted/sent, sent > 0)
	set(goal.GuardLoadedRTT, rtt/float64(flows), flows > 0)
	cost := r.Ends.Local.CPUSecondsPerGigabyte + r.Ends.Remote.CPUSecondsPerGigabyte
	set(goal.GuardCPUPerGB, cost, cost > 0)
	each := r.Ends.Local.CPUSecondsPerMillion + r.Ends.Remote.CPUSecondsPerMillion
	set(guardCPUPerMillion, each, each > 0 && r.Test == traffic.UDP)
	if r.Bytes > 0 && r.Test != traffic.UDP {
		var drops uint64
		for _, end := range []traffic.End{r.Ends.Local, r.Ends.Remote} {
			for _, d := range end.Drops {
				drops += d.Total
			}
		}
		o.Guards[goal.GuardDrops] = float64(drops) / (float64(r.Bytes) / 1e9)
	}
	if busiest, total, known := busy(r); known {
		o.Guards[goal.GuardCPU], o.Guards[goal.GuardCPUTotal] = busiest, total
	}
	switch r.Test {
	case traffic.Stream:
		set(goal.GuardThroughput, r.ThroughputBitsPerSec, r.ThroughputBitsPerSec > 0)
	case traffic.RR:
		set(goal.GuardTransactions, r.TransactionsPerSec, r.TransactionsPerSec > 0)
		set(goal.GuardLatency, float64(max(r.Streams, 1))/r.TransactionsPerSec, r.TransactionsPerSec > 0)
	case traffic.UDP:
		set(goal.GuardPackets, r.PacketsPerSec, r.PacketsPerSec > 0)
		if r.LossRatio != nil {
			o.Guards[goal.GuardLoss] = *r.LossRatio
		}
	}
	return o
}

// guardCPUPerMillion is the cost of datagrams, for which a gigabyte is no useful unit.
const guardCPUPerMillion = "cpu_seconds_per_million_packets"

// ownGuard returns the name of the objective as a guard-rail: beside the objective it would only be
// a duplicate.
func ownGuard(g goal.Goal) string {
	return map[goal.Goal]string{goal.Throughput: goal.GuardThroughput, goal.Latency: goal.GuardTransactions,
		goal.Packets: goal.GuardPackets}[g]
}

// busy returns the share of the busiest CPU of either host, and that of all CPUs of the busier
// host.
func busy(r *traffic.Result) (busiest, total float64, known bool) {
	for _, end := range []traffic.End{r.Ends.Local, r.Ends.Remote} {
		var work, all float64
		for _, c := range end.CPUs {
			if c.CPU < 0 {
				continue
			}
			own, whole := worked(c)
			if whole > 0 {
				busiest, known = max(busiest, own/whole), true
			}
			work += own
			all += whole
		}
		if all > 0 {
			total = max(total, work/all)
		}
	}
	return busiest, total, known
}

// worked returns how long a CPU worked and could have worked, in seconds. Stolen time is neither:
// the hypervisor took it.
func worked(c host.CPUTimes) (work, all float64) {
	work = c.User + c.System + c.IRQ + c.SoftIRQ
	return work, work + c.Idle
}
