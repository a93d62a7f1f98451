package traffic

// part is one interval as one end saw it; parts of both ends with the same Measured and Index
// belong together.
type part struct {
	Measured bool `json:"measured"` // false: warm-up
	Index    int  `json:"index"`    // from 0 in the warm-up and again in the measured window
	// edges of further intervals that passed within it, while this end stood still; their indexes
	// follow its own
	Skipped      int     `json:"skipped,omitempty"`
	Start        float64 `json:"start_seconds"`
	End          float64 `json:"end_seconds"` // since this end started
	Bytes        int64   `json:"bytes"`       // received here
	Transactions int64   `json:"transactions,omitempty"`
	RTTSum       float64 `json:"rtt_sum_seconds,omitempty"` // over Transactions
	Packets      int64   `json:"packets,omitempty"`         // datagrams received here
	// datagrams not received so far; negative when more of older ones arrived late
	Missing  int64   `json:"missing,omitempty"`
	Probes   int64   `json:"probes,omitempty"` // answered pings beside the test
	ProbeSum float64 `json:"probe_sum_seconds,omitempty"`

	// What the kernel reports about the connections that send from here: times and shares are means
	// over them, the other figures sums.
	RTT           float64 `json:"rtt_seconds,omitempty"` // smoothed
	RTTVar        float64 `json:"rtt_variation_seconds,omitempty"`
	Cwnd          float64 `json:"cwnd_bytes,omitempty"`
	Ssthresh      float64 `json:"ssthresh_bytes,omitempty"`
	DeliveryRate  float64 `json:"delivery_rate_bits_per_second,omitempty"`
	RwndLimited   float64 `json:"rwnd_limited_seconds,omitempty"`
	SndbufLimited float64 `json:"sndbuf_limited_seconds,omitempty"`
	Retransmits   uint64  `json:"retransmits_total,omitempty"`
}

// plausible reports whether the figures of the other end are possible; impossible ones would make
// infinite rates.
func (p part) plausible() bool {
	const most = 1e18 // of anything, in any unit
	for _, f := range []float64{
		p.Start, p.RTTSum, p.ProbeSum, p.RTT, p.RTTVar, p.Cwnd, p.Ssthresh, p.DeliveryRate, p.RwndLimited,
		p.SndbufLimited,
	} {
		if f < 0 || f > most {
			return false
		}
	}
	if p.Index < 0 || p.Index > maxIntervals || p.Skipped < 0 || p.Skipped > maxIntervals {
		return false
	}
	return p.End-p.Start >= shortestPart.Seconds()/1000 && p.End < most && p.Bytes >= 0 && p.Transactions >= 0 &&
		p.Packets >= 0 && p.Probes >= 0
}

// bitRate returns the payload received in bits per second. Each end's bytes are divided by that
// end's own time: the intervals of the two ends are not the same moments, and a rate of one end's
// bytes over the other's seconds would show the difference of the clocks.
func (p part) bitRate() float64 {
	if p.End <= p.Start {
		return 0
	}
	return float64(p.Bytes) * 8 / (p.End - p.Start)
}

// meanRTT returns the mean round trip of the transactions in seconds; 0: there were none.
func (p part) meanRTT() float64 {
	if p.Transactions <= 0 {
		return 0
	}
	return p.RTTSum / float64(p.Transactions)
}

// shares divides a part that passed several edges among its indexes evenly: how it was spread, this
// end could not see.
func (p part) shares() []part {
	n := p.Skipped + 1
	if n == 1 {
		return []part{p}
	}
	all := make([]part, n)
	length := (p.End - p.Start) / float64(n)
	for i := range all {
		// The remainders of whole numbers go to the later ones, so that the sums stay the same.
		of := func(v int64) int64 { return v*int64(i+1)/int64(n) - v*int64(i)/int64(n) }
		q := p
		q.Index, q.Skipped = p.Index+i, 0
		q.Start, q.End = p.Start+float64(i)*length, p.Start+float64(i+1)*length
		q.Bytes, q.Packets, q.Missing = of(p.Bytes), of(p.Packets), of(p.Missing)
		q.Transactions, q.Probes, q.Retransmits = of(p.Transactions), of(p.Probes), uint64(of(int64(p.Retransmits)))
		for _, v := range []*float64{&q.RTTSum, &q.ProbeSum, &q.RwndLimited, &q.SndbufLimited} {
			*v /= float64(n)
		}
		all[i] = q
	}
	return all
}

// and joins a part and the one that follows it. The states of connections are those at its end.
func (p part) and(next part) part {
	sum := next
	sum.Index, sum.Start = p.Index, p.Start
	sum.Bytes, sum.Packets, sum.Missing = p.Bytes+next.Bytes, p.Packets+next.Packets, p.Missing+next.Missing
	sum.Transactions, sum.RTTSum = p.Transactions+next.Transactions, p.RTTSum+next.RTTSum
	sum.Probes, sum.ProbeSum = p.Probes+next.Probes, p.ProbeSum+next.ProbeSum
	sum.RwndLimited, sum.SndbufLimited = p.RwndLimited+next.RwndLimited, p.SndbufLimited+next.SndbufLimited
	sum.Retransmits = p.Retransmits + next.Retransmits
	return sum
}
