package rules

import (
	"time"

	"github.com/linerate/linerate/internal/firewall/tally"
	"github.com/linerate/linerate/internal/host/sample"
)

// Interval is the time between two readings: to read rules runs programs.
const Interval = 10 * time.Second

var labels = []string{"table", "chain", "rule", "match"}

var (
	bytesTotal = &sample.Metric{Name: "linerate_firewall_rule_bytes_total", Kind: sample.Counter, Labels: labels,
		Help: "Bytes of the packets that a rule of the packet filter counted; rule is its comment, or the name of its " +
			"counter (nft, iptables-save)."}
	packetsTotal = &sample.Metric{Name: "linerate_firewall_rule_packets_total", Kind: sample.Counter, Labels: labels,
		Help: "Packets that a rule of the packet filter counted; match is what the rule compares (nft, iptables-save)."}
	leftOut = &sample.Metric{Name: "linerate_firewall_rules_left_out", Kind: sample.Gauge,
		Help: "Counting rules that the history leaves out, because there are more than it keeps."}
)

// Metrics returns the metrics of rules.
func Metrics() []*sample.Metric { return []*sample.Metric{bytesTotal, packetsTotal, leftOut} }

// identity is what distinguishes counts.
type identity struct{ table, chain, name, match string }

// kept is a count that the history has.
type kept struct {
	bytes, packets         *sample.Series
	lastBytes, lastPackets uint64
	sumBytes, sumPackets   float64
	seen                   bool
}

// Keeper makes readings of counts. One goroutine at a time may use it.
type Keeper struct {
	counts map[identity]*kept
	left   *sample.Series
}

// Take returns the reading of some counts at a time. left is how many were left out.
func (k *Keeper) Take(at time.Time, counts []tally.Count, left int) *sample.Reading {
	r := &sample.Reading{Time: at}
	if k.counts == nil {
		k.counts = make(map[identity]*kept)
		k.left = &sample.Series{Metric: leftOut}
	}
	for _, one := range k.counts {
		one.seen = false
	}
	for _, c := range counts {
		id := identity{c.Table, c.Chain, c.Name, c.Match}
		one := k.counts[id]
		if one == nil {
			values := []string{c.Table, c.Chain, c.Name, c.Match}
			one = &kept{bytes: &sample.Series{Metric: bytesTotal, Values: values},
				packets: &sample.Series{Metric: packetsTotal, Values: values}, lastBytes: c.Bytes, lastPackets: c.Packets}
			k.counts[id] = one
		}
		if c.Bytes >= one.lastBytes && c.Packets >= one.lastPackets {
			one.sumBytes += float64(c.Bytes - one.lastBytes)
			one.sumPackets += float64(c.Packets - one.lastPackets)
		}
		one.lastBytes, one.lastPackets, one.seen = c.Bytes, c.Packets, true
		r.Points = append(r.Points, sample.Point{Series: one.bytes, Value: one.sumBytes},
			sample.Point{Series: one.packets, Value: one.sumPackets})
	}
	for id, one := range k.counts {
		if !one.seen {
			r.Ended = append(r.Ended, one.bytes, one.packets)
			delete(k.counts, id)
		}
	}
	if len(counts) > 0 || left > 0 {
		r.Points = append(r.Points, sample.Point{Series: k.left, Value: float64(left)})
	}
	return r
}
