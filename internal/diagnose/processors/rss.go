package processors

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/nicstat"
)

const (
	// skewed is how many times the mean the fullest queue must get for its share not to be chance:
	// with dozens of flows hashed over a few queues a factor of two is common.
	skewed = 3
	// manyPackets per second make a skew worth a finding: below that, one CPU serves them in a few
	// per cent of its time.
	manyPackets = 20e3
	// manyStreams are needed before a test run shows anything about spreading: a flow has one queue
	// by design.
	manyStreams = 8
)

// rssImbalance finds a NIC with several receive queues that puts most packets into one of them.
//
// The hash spreads flows and not packets, so a few flows cannot be spread. Tunnels with a constant
// outer header, and fragments, look like one flow (udp4 hashing by addresses alone). It costs
// something if the CPU of that queue is saturated and others are not.
func rssImbalance(s *evidence.Span) *evidence.Finding {
	if s.Host == nil || s.SinceBoot || s.Seconds < shortest {
		return nil
	}
	if s.Run != nil && s.Run.Streams < manyStreams {
		return nil
	}
	for i := range s.Host.Interfaces {
		if x := imbalanceOf(s, &s.Host.Interfaces[i]); x != nil {
			return x
		}
	}
	return nil
}

// imbalanceOf examines one interface.
func imbalanceOf(s *evidence.Span, card *host.Interface) *evidence.Finding {
	queues := receiveQueues(s, card)
	if len(queues) < 2 {
		return nil
	}
	var sum, worst float64
	var hot int
	for q, n := range queues {
		sum += n
		if n > worst {
			hot, worst = q, n
		}
	}
	average := sum / float64(len(queues))
	if s.PerSecond(sum) < manyPackets || worst < min(skewed, 0.75*float64(len(queues)))*average {
		return nil
	}
	x := &evidence.Finding{
		Code: evidence.RSSImbalance, Severity: evidence.Notice, Where: s.Side,
		Title: fmt.Sprintf("Receive queue %d of %s at the %s host got %s of the packets, "+
			"with %d queues to spread them over.",
			hot, card.Name, s.Side, evidence.Percent(worst/sum), len(queues)),
		Evidence: []evidence.Evidence{
			{Name: fmt.Sprintf("packets of queue %d", hot), Value: worst, Unit: "packets",
				Source: s.Source("ethtool -S " + card.Name)},
			{Name: "packets of all queues", Value: sum, Unit: "packets", Source: s.Source("ethtool -S " + card.Name)},
			{Name: "times the mean of all queues", Value: worst / average, Unit: "times",
				Source: "fullest queue / mean"},
		},
		Confidence: 0.6,
	}
	all := judged(s)
	if c, ok := most(all, packetWork); ok {
		rest := others(all, c.CPU)
		x.Evidence = append(x.Evidence, classes(s, c)...)
		if packetWork(c) >= softirqFull && rest <= idleEnough {
			x.Severity, x.Confidence = evidence.Warning, 0.9
			x.Rejected = append(x.Rejected,
				fmt.Sprintf("Not too few CPUs: CPU %d is saturated with packets, and the others are %s busy.", c.CPU,
					evidence.Percent(rest)))
		} else {
			x.Rejected = append(x.Rejected,
				fmt.Sprintf("Not shown to cost anything: the CPU with the most packet work, CPU %d, "+
					"has %s of its time left.",
					c.CPU, evidence.Percent(1-packetWork(c))))
		}
	}
	x.Remedy.Text = "Include ports in the hash (ethtool -N … rx-flow-hash udp4 sdfn), " +
		"check the indirection table, or spread by software (RPS) if one tunnel carries everything."
	x.Remedy.Proof = "Send many UDP flows with different ports: with ports in the hash they spread over the " +
		"queues. A single flow stays on one queue either way."
	if card.Card != nil && card.Card.RSS != nil {
		x.Remedy.Add(evidence.Candidate{Knob: knob.ID("ethtool:" + card.Name + "/rss.indirection"), Side: s.Side,
			Levels: []knob.Value{knob.Value("equal " + strconv.Itoa(len(queues)))},
			Why:    "an uneven table sends most flows to a few queues"})
	}
	return x
}

// receiveQueues returns the packets of each receive queue in the span, by the counter names of the
// drivers. Some list all queues that the NIC can have, and not those in use alone (ixgbe,
// IXGBE_NUM_RX_QUEUES).
func receiveQueues(s *evidence.Span, card *host.Interface) map[int]float64 {
	queues := make(map[int]float64)
	prefix := "ethtool." + card.Name + "."
	inUse := math.MaxInt
	if c := card.Channels; c != nil && c.Combined+c.Rx > 0 {
		inUse = int(c.Combined + c.Rx)
	}
	packets := nicstat.PacketNames()
	for name, n := range s.Counters {
		rest, ok := strings.CutPrefix(name, prefix)
		if !ok {
			continue
		}
		queue, counter, ok := nicstat.Queue(rest)
		number, receives := strings.CutPrefix(queue, "rx-")
		if !ok || !receives || !slices.Contains(packets, counter) {
			continue
		}
		if q, err := strconv.Atoi(number); err == nil && q < inUse {
			queues[q] += float64(n)
		}
	}
	return queues
}
