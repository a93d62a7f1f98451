package traffic

// timeline pairs the intervals of both sides and hands them on in order. The near side's clock
// rules; a far part that is late is waited for until a later one shows that it will not come, or
// the test is over.
type timeline struct {
	spec      Spec
	emit      func(Interval)
	own       []part
	far       map[partKey]part
	newest    partKey // latest far part
	anyFar    bool
	intervals []Interval
}

type partKey struct {
	measured bool
	index    int
}

func (k partKey) after(o partKey) bool {
	if k.measured != o.measured {
		return k.measured
	}
	return k.index > o.index
}

func (t *timeline) addOwn(p part) {
	t.own = append(t.own, p)
	t.flush(false)
}

func (t *timeline) addFar(p part) {
	t.put(p)
	t.flush(false)
}

// finish takes the far side's complete list, which repeats what came on the way and fills in what
// did not.
func (t *timeline) finish(all []part) {
	for _, p := range all {
		t.put(p)
	}
	t.flush(true)
	for i, own := range t.own {
		t.intervals[i] = join(t.spec, own, t.far[partKey{own.Measured, own.Index}])
	}
}

func (t *timeline) put(p part) {
	if t.far == nil {
		t.far = make(map[partKey]part)
	}
	k := partKey{p.Measured, p.Index}
	// No test has more than MaxIntervals; what is far beyond that is a far side
	// that makes them up to fill our memory.
	if _, known := t.far[k]; !known && len(t.far) >= 2*MaxIntervals {
		return
	}
	t.far[k] = p
	if !t.anyFar || k.after(t.newest) {
		t.newest, t.anyFar = k, true
	}
}

func (t *timeline) flush(all bool) {
	for len(t.intervals) < len(t.own) {
		own := t.own[len(t.intervals)]
		k := partKey{own.Measured, own.Index}
		far, ok := t.far[k]
		// Messages of intervals may be lost (tryPost) but never overtake each other, so a later one
		// proves that this one will not come.
		if !ok && !all && !(t.anyFar && t.newest.after(k)) {
			return
		}
		i := join(t.spec, own, far)
		t.intervals = append(t.intervals, i)
		t.emit(i)
	}
}

// join makes an interval of what both sides saw: the receiver's bytes over the receiver's time, the
// sender's view of the connection.
func join(s Spec, own, far part) Interval {
	i := Interval{StartSeconds: own.Start, EndSeconds: own.End, Omitted: !own.Measured}
	rate := func(p part) float64 {
		if p.End <= p.Start {
			return 0
		}
		return float64(p.Bytes) * 8 / (p.End - p.Start)
	}
	// Each side's bytes are divided by that side's own time: the two intervals are not the same
	// moments, and a rate made of the bytes of one and the seconds of the other would show the
	// difference of the clocks.
	if own.Probes > 0 {
		i.ProbeRTTSeconds = own.ProbeSum / float64(own.Probes)
	}
	switch s.Test {
	case Stream:
		i.ThroughputBitsPerSec = rate(own) + rate(far)
		sender := own
		if s.Direction == Down {
			sender = far
		}
		i.RTTSeconds, i.RTTVarSeconds, i.RetransmitsTotal = sender.RTT, sender.RTTVar, sender.Retransmits
		i.CwndBytes, i.SsthreshBytes, i.DeliveryRateBitsPerSec = sender.Cwnd, sender.Ssthresh, sender.DeliveryRate
		if length := sender.End - sender.Start; length > 0 {
			// The kernel's clock and ours part by a tick; a share is one at most.
			i.RwndLimitedRatio, i.SndbufLimitedRatio = min(1, sender.RwndLimited/length),
				min(1, sender.SndbufLimited/length)
		}
		if s.Direction == Bidir {
			i.RetransmitsTotal += far.Retransmits
		}
	case UDP:
		i.ThroughputBitsPerSec = rate(own) + rate(far)
		i.LostPacketsTotal = uint64(max(0, own.Missing+far.Missing))
		i.PacketsPerSec = perSecond(own.Packets, own.End-own.Start) + perSecond(far.Packets, far.End-far.Start)
	default:
		if own.Transactions > 0 {
			i.RTTSeconds = own.RTTSum / float64(own.Transactions)
		}
		if s.Test != Ping && own.End > own.Start {
			i.TransactionsPerSec = float64(own.Transactions) / (own.End - own.Start)
		}
	}
	return i
}
