package transfer

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/host/calc"
	"github.com/linerate/linerate/internal/host/drops"
	"github.com/linerate/linerate/internal/storage/nfs/mount"
)

// Point is one set of options with the means of its segments and the sums of its losses.
type Point struct {
	mount.Effective
	Segments    int     `json:"segments_total"`
	Throughput  float64 `json:"throughput_bytes_per_second"` // geometric mean of read and write, where both were measured
	ReadRate    float64 `json:"read_bytes_per_second,omitempty"`
	WriteRate   float64 `json:"write_bytes_per_second,omitempty"`
	Waits       string  `json:"waits,omitempty"` // where most segments waited
	ReadFrames  int     `json:"frames_per_read"`
	WriteFrames int     `json:"frames_per_write"`
	// Fits reports whether the receive ring holds the frames of one read; absent: unknown.
	Fits           *bool        `json:"read_fits_ring,omitempty"`
	Resent         uint64       `json:"calls_resent_total"`
	Timeouts       uint64       `json:"calls_timed_out_total"`
	TCPRetransmits uint64       `json:"tcp_retransmits_total"`
	OutOfOrder     uint64       `json:"tcp_out_of_order_total"`
	Drops          []drops.Drop `json:"drops"`
}

// Lost returns how many packets and calls were lost, as far as this host knows. A packet that this
// host dropped leaves a gap, behind which segments arrive out of order: the larger of the two
// counts is used, and not their sum.
func (p Point) Lost() uint64 {
	dropped := uint64(0)
	for _, d := range p.Drops {
		dropped += d.Total
	}
	return p.Resent + p.TCPRetransmits + max(dropped, p.OutOfOrder)
}

// defaultMTU is that of Ethernet.
const defaultMTU = 1500

// points gathers samples by what their mounts had, small reads first.
func points(samples []mount.Sample, card Card) []Point {
	type sums struct {
		Point
		read, write float64 // sums of logarithms
		waits       map[string]int
	}
	var all []*sums
	for _, s := range samples {
		i := slices.IndexFunc(all, func(x *sums) bool { return x.Effective == s.Effective })
		if i < 0 {
			i = len(all)
			all = append(all, &sums{Point: Point{Effective: s.Effective, Drops: []drops.Drop{}}, waits: map[string]int{}})
		}
		x := all[i]
		x.Segments++
		x.read += math.Log(max(s.Read.Rate(), 1))
		x.write += math.Log(max(s.Write.Rate(), 1))
		x.waits[s.Waits]++
		x.Resent, x.Timeouts = x.Resent+s.Resent, x.Timeouts+s.Timeouts
		x.TCPRetransmits, x.OutOfOrder = x.TCPRetransmits+s.TCPRetransmits, x.OutOfOrder+s.OutOfOrder
		for _, d := range s.Drops {
			if j := slices.IndexFunc(x.Drops, func(o drops.Drop) bool { return o.Place == d.Place }); j >= 0 {
				x.Drops[j].Total += d.Total
			} else {
				x.Drops = append(x.Drops, d)
			}
		}
	}
	mtu := cmp.Or(card.MTU, defaultMTU)
	out := make([]Point, 0, len(all))
	for _, x := range all {
		n := float64(x.Segments)
		udp := x.Protocol == "udp"
		x.ReadFrames = calc.TransferFrames(unit.Bytes(x.ReadSize), mtu, udp)
		x.WriteFrames = calc.TransferFrames(unit.Bytes(x.WriteSize), mtu, udp)
		if card.Ring > 0 {
			fits := x.ReadFrames <= card.Ring
			x.Fits = &fits
		}
		x.ReadRate, x.WriteRate = rate(x.read/n), rate(x.write/n)
		switch {
		case x.ReadRate > 0 && x.WriteRate > 0:
			x.Throughput = math.Sqrt(x.ReadRate * x.WriteRate)
		default:
			x.Throughput = max(x.ReadRate, x.WriteRate)
		}
		for w, k := range x.waits {
			if k > x.waits[x.Waits] || k == x.waits[x.Waits] && w < x.Waits {
				x.Waits = w
			}
		}
		x.Drops = drops.Along(x.Drops)
		out = append(out, x.Point)
	}
	sorting.StableFunc(out, func(a, b Point) int {
		return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.ReadSize, b.ReadSize),
			cmp.Compare(a.WriteSize, b.WriteSize), cmp.Compare(a.Connections, b.Connections),
			cmp.Compare(a.ReadAhead, b.ReadAhead))
	})
	return out
}

// rate returns the mean of logarithms as a rate; what was not measured is 0.
func rate(log float64) float64 {
	if log <= 0 {
		return 0
	}
	return math.Exp(log)
}

// strays bounds losses that do not count as the matter of a smaller read size: any path loses a
// packet now and then.
const strays = 1.0 / 20

// lossesFrom returns the smallest read size that lost packets in each of its points, as all larger
// ones did, when smaller sizes had points that lost less than a twentieth of that. Losses at every
// size, or at none, are not a matter of size.
func lossesFrom(all []Point) int64 {
	least := map[int64]float64{} // losses of a size in the point that had fewest
	for _, p := range all {
		if lost, known := least[p.ReadSize]; !known || perSegment(p) < lost {
			least[p.ReadSize] = perSegment(p)
		}
	}
	sizes := slices.Sorted(maps.Keys(least))
	for i, size := range sizes {
		stray := strays * least[size]
		few := func(other int64) bool { return least[other] <= stray }
		if i == 0 || least[size] == 0 || slices.ContainsFunc(sizes[:i], func(s int64) bool { return !few(s) }) {
			continue
		}
		if slices.ContainsFunc(sizes[i:], few) {
			return 0
		}
		return size
	}
	return 0
}

// perSegment returns the losses of a segment, in the mean.
func perSegment(p Point) float64 { return float64(p.Lost()) / float64(max(p.Segments, 1)) }
