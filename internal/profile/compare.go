package profile

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/linerate/linerate/internal/base/sorting"
)

// Comparison is what differs between two profiles, A before and B after.
type Comparison struct {
	// Unit is what was compared: nanoseconds per packet where both profiles counted packets and time,
	// or per kilobyte where their packets differ in size; otherwise the share of the busy samples.
	Unit string `json:"unit"`
	// Differs reports that at least one row differs beyond chance.
	Differs   bool     `json:"differs"`
	Total     *Change  `json:"total,omitempty"` // all busy time per packet
	Stages    []Change `json:"stages"`
	Work      []Change `json:"work"`
	Functions []Change `json:"functions"` // with at least half a percent of the samples on one side
	Warnings  []string `json:"warnings,omitempty"`
}

// Units of a comparison.
const (
	UnitPerPacket = "nanoseconds per packet"
	UnitPerKB     = "nanoseconds per kilobyte"
	UnitShare     = "share of the busy samples"
)

// Change is one row on both sides, in the unit of the comparison.
type Change struct {
	Name   string  `json:"name"`
	Before float64 `json:"before"`
	After  float64 `json:"after"`
	// Difference is after minus before, with its 95 % interval.
	Difference float64 `json:"difference"`
	Low        float64 `json:"low_difference"`
	High       float64 `json:"high_difference"`
	// Differs reports a difference beyond chance, of all rows of its table together.
	Differs bool `json:"differs"`
}

// leastShare is the share of the samples below which a function is not compared: its interval is
// wider than itself.
const leastShare = 0.005

// falseShare is the part of the rows marked as different that may be so by chance (Benjamini and
// Hochberg 1995).
const falseShare = 0.05

// Compare returns what differs from a to b. It compares time per packet where both have it, since a
// share falls when something else grows.
func Compare(a, b *Profile) *Comparison {
	c := &Comparison{Unit: UnitShare}
	if priced(a) && priced(b) {
		c.Unit = UnitPerPacket
		if before, after := packetSize(a), packetSize(b); before > 0 && after > 0 &&
			math.Abs(math.Log(after/before)) > otherSize {
			c.Unit = UnitPerKB
			c.Warnings = append(c.Warnings, fmt.Sprintf("packets had %.0f bytes before and %.0f after, "+
				"so the cost of a packet cannot be compared: these figures are per kilobyte", before, after))
		}
		total := c.total(a).change(c.total(b))
		total.Differs = !within(0, total.Low, total.High)
		c.Total = &total
	}
	if a.Event != b.Event {
		c.Warnings = append(c.Warnings, "the profiles sampled different events: "+a.Event+" and "+b.Event)
	}
	for _, side := range []*Profile{a, b} {
		if side.Slices < 2 && side.Source != "" {
			c.Warnings = append(c.Warnings, "a profile without slices of time ("+side.Source+
				"): its intervals take samples as independent, and may be half as wide as they should be")
		}
	}
	c.Stages = c.changes(a, b, a.Stages, b.Stages, 0)
	c.Work = c.changes(a, b, a.Work, b.Work, 0)
	c.Functions = c.changes(a, b, a.Functions, b.Functions, leastShare)
	for _, rows := range [][]Change{c.Stages, c.Work, c.Functions} {
		c.Differs = c.Differs || slices.ContainsFunc(rows, func(r Change) bool { return r.Differs })
	}
	c.Differs = c.Differs || c.Total != nil && c.Total.Differs
	return c
}

// otherSize is the logarithm of the ratio of two sizes from which on packets are not the same: GRO,
// segmentation or the MTU differ, and one packet stands for another number of bytes.
const otherSize = 0.1

// packetSize returns the mean size of a packet in bytes; 0: not counted.
func packetSize(p *Profile) float64 {
	if p.PacketsTotal == nil || p.BytesTotal == nil || *p.PacketsTotal == 0 {
		return 0
	}
	return float64(*p.BytesTotal) / float64(*p.PacketsTotal)
}

// scale is what a time per packet of this profile becomes in the unit of the comparison.
func (c *Comparison) scale(p *Profile) float64 {
	if c.Unit == UnitPerKB {
		return 1000 / packetSize(p)
	}
	return 1
}

func within(x, low, high float64) bool { return low <= x && x <= high }

// priced reports whether a profile has time per packet.
func priced(p *Profile) bool { return len(p.Stages) > 0 && p.Stages[0].PerPacket != nil }

// estimate is a value with the half-widths of its interval, downwards and upwards.
type estimate struct {
	name         string
	at, down, up float64
}

// change is the difference of two independent estimates: half-widths add in squares (Newcombe
// 1998).
func (e estimate) change(after estimate) Change {
	d := after.at - e.at
	return Change{Name: cmp.Or(e.name, after.name), Before: e.at, After: after.at, Difference: d,
		Low: d - math.Hypot(after.down, e.up), High: d + math.Hypot(after.up, e.down)}
}

// total adds what all stages take, with the dispersion of the most frequent one.
func (c *Comparison) total(p *Profile) estimate {
	e := estimate{name: "total"}
	k, worst := 0.0, 1.0
	for _, r := range p.Stages {
		e.at += *r.PerPacket * c.scale(p)
		k += float64(r.Samples)
		worst = max(worst, r.Dispersion)
	}
	if k > 0 {
		low, high := poisson(k/worst, quantileT(p.Slices-1))
		scale := e.at / k * worst
		e.down, e.up = e.at-low*scale, high*scale-e.at
	}
	return e
}

// value returns the row as an estimate in the unit of the comparison. An absent row was seen 0
// times.
func (c *Comparison) value(p *Profile, rows []Row, name string) estimate {
	r := find(rows, name)
	if c.Unit != UnitShare {
		by := c.scale(p)
		if r != nil && r.PerPacket != nil {
			return estimate{name, *r.PerPacket * by, (*r.PerPacket - *r.PerPacketLow) * by,
				(*r.PerPacketHigh - *r.PerPacket) * by}
		}
		_, high := poisson(0, quantileT(p.Slices-1))
		return estimate{name: name, up: high * perSample(p) * by}
	}
	if r != nil {
		return estimate{name, r.Share, r.Share - r.ShareLow, r.ShareHigh - r.Share}
	}
	_, high := wilson(0, float64(p.Busy), quantileT(p.Slices-1))
	return estimate{name: name, up: high}
}

// perSample is what one sample stands for in nanoseconds per packet.
func perSample(p *Profile) float64 {
	for _, r := range p.Stages {
		if r.Samples > 0 && r.PerPacket != nil {
			return *r.PerPacket / float64(r.Samples)
		}
	}
	return 0
}

// changes compares two tables, largest difference first, and marks rows that differ.
func (c *Comparison) changes(a, b *Profile, before, after []Row, least float64) []Change {
	var all []Change
	seen := make(map[string]bool)
	for _, r := range slices.Concat(before, after) {
		if seen[r.Name] {
			continue
		}
		seen[r.Name] = true
		x, y := find(before, r.Name), find(after, r.Name)
		if (x == nil || x.Share < least) && (y == nil || y.Share < least) || x == nil && y != nil && y.Samples == 0 {
			continue
		}
		all = append(all, c.value(a, before, r.Name).change(c.value(b, after, r.Name)))
	}
	mark(all)
	sorting.StableFunc(all, func(x, y Change) int {
		return cmp.Or(cmp.Compare(math.Abs(y.Difference), math.Abs(x.Difference)), cmp.Compare(x.Name, y.Name))
	})
	return all
}

// mark sets Differs where the difference is beyond chance for all rows together: the procedure of
// Benjamini and Hochberg on the two-sided probabilities that the intervals imply.
func mark(rows []Change) {
	probability := make([]float64, len(rows))
	order := make([]int, len(rows))
	for i, r := range rows {
		order[i] = i
		half := r.High - r.Difference
		if r.Difference > 0 {
			half = r.Difference - r.Low
		}
		probability[i] = 1
		if half > 0 {
			probability[i] = math.Erfc(math.Abs(r.Difference) / half * 1.959963984540054 / math.Sqrt2)
		}
	}
	sorting.Func(order, func(x, y int) int { return cmp.Compare(probability[x], probability[y]) })
	last := -1
	for rank, i := range order {
		if probability[i] <= falseShare*float64(rank+1)/float64(len(rows)) {
			last = rank
		}
	}
	for _, i := range order[:last+1] {
		rows[i].Differs = true
	}
}
