package loop

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/engine"
	"github.com/linerate/linerate/internal/tune"
)

// Goal is what a tune is to improve.
type Goal string

// The goals of this version: bulk throughput, or the rate of small transactions (which is one over the round trip).
const (
	Throughput Goal = "throughput"
	Latency    Goal = "latency"
)

// maxStealRatio is the share of stolen CPU time above which a segment says more about the neighbours than about the knob.
//
// It is the share at which a diagnosis mentions stolen time too. The loss of throughput is at least that of the time,
// and five per cent are several times the least useful effect.
const maxStealRatio = 0.05

// prober measures one short segment with new connections.
type prober struct {
	far  Far
	goal Goal
	spec traffic.Spec
}

// One interval for the whole segment: interim results are not used, and each costs a message on the path under test.
// For latency one byte each way is the smallest transaction that TCP has.
func newProber(far Far, goal Goal, direction traffic.Direction, streams int, segment, warmUp time.Duration) *prober {
	p := &prober{far: far, goal: goal}
	p.spec = traffic.Spec{
		Test: traffic.Stream, Direction: direction, Streams: streams,
		Duration: segment, WarmUp: warmUp, Interval: segment,
		// With the copies that programs make, as in a diagnosis: a knob is kept for what it does for them.
		SendMethod: engine.SendCopy, ReceiveMethod: engine.ReceiveCopy,
	}
	if goal == Latency {
		p.spec.SendMethod, p.spec.ReceiveMethod = "", ""
		p.spec.Test, p.spec.Direction = traffic.RR, traffic.Up
		p.spec.RequestBytes, p.spec.ResponseBytes = 1, 1
	}
	return p
}

// Measure runs one segment and turns its result into an observation for the experiment.
func (p *prober) Measure(ctx context.Context) (tune.Observation, error) {
	r, err := p.far.Run(ctx, p.spec, nil)
	if err != nil {
		return tune.Observation{}, err
	}
	return observe(p.goal, r), nil
}

// observe names the objective and the guard-rails of one segment.
//
// An absent guard-rail is left out of the map and not set to zero: without TCP_INFO nothing is known of
// retransmissions, and zero would be the best value there is. Retransmissions are those of the sender, which alone
// knows them; cost and drops are of both ends, because a change at one end can move the work to the other.
func observe(goal Goal, r *traffic.Result) tune.Observation {
	o := tune.Observation{Objective: r.ThroughputBitsPerSec, Guards: map[string]float64{}, Discard: disturbed(r)}
	if goal == Latency {
		o.Objective = r.TransactionsPerSec
	}
	if r.RTT != nil {
		o.Guards["rtt_p99_seconds"] = r.RTT.P99
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
	if sent > 0 {
		o.Guards["retransmit_ratio"] = retransmitted / sent
	}
	if flows > 0 {
		o.Guards["rtt_loaded_seconds"] = rtt / float64(flows)
	}
	if cost := r.Ends.Local.CPUSecondsPerGigabyte + r.Ends.Remote.CPUSecondsPerGigabyte; cost > 0 {
		o.Guards["cpu_seconds_per_gigabyte"] = cost
	}
	if r.Bytes > 0 {
		var drops uint64
		for _, end := range []traffic.End{r.Ends.Local, r.Ends.Remote} {
			for _, d := range end.Drops {
				drops += d.Total
			}
		}
		o.Guards["drops_per_gigabyte"] = float64(drops) / (float64(r.Bytes) / 1e9)
	}
	return o
}

// disturbed tells why a segment must not count: stolen CPU time, or a link that went down or up meanwhile.
//
// Only what cannot come from the knob under test may discard a segment, or discarding would choose the results. A
// change of class d3 moves the link itself, but before the segment and not within it.
func disturbed(r *traffic.Result) string {
	for _, end := range []struct {
		name string
		end  traffic.End
	}{{"near", r.Ends.Local}, {"far", r.Ends.Remote}} {
		var steal, all float64
		for _, c := range end.end.CPUs {
			if c.CPU < 0 {
				continue
			}
			steal += c.Steal
			all += c.User + c.System + c.IRQ + c.SoftIRQ + c.Steal + c.Idle
		}
		if all > 0 && steal/all > maxStealRatio {
			return fmt.Sprintf("%.0f %% of the CPU time of the %s host was stolen", 100*steal/all, end.name)
		}
		for name, n := range end.end.Counters {
			if n > 0 && strings.HasPrefix(name, "nic.") && strings.HasSuffix(name, ".carrier_changes") {
				return fmt.Sprintf("link event on the %s host: %s moved by %d", end.name, name, n)
			}
		}
	}
	return ""
}
