package traffic

// timeline pairs the intervals of both ends and emits them in order. The near end's clock rules. It
// waits for a late far part until a later one shows that it will not come, or the test is over. An
// end that stood still for some intervals has one part for all of them.
type timeline struct {
	kind      kind
	direction Direction
	emit      func(Interval)
	own       []part
	far       map[partKey]part
	newest    partKey // latest far part
	anyFar    bool
	intervals []Interval
}

func newTimeline(s Spec, emit func(Interval)) *timeline {
	k, _ := kindOf(s.Test) // known, because the Spec is normalized
	return &timeline{kind: k, direction: s.Direction, emit: emit}
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

// finish takes the far end's complete list, which repeats what arrived during the test and fills
// the gaps.
func (t *timeline) finish(all []part) {
	for _, p := range all {
		t.put(p)
	}
	t.flush(true)
	for i, own := range t.own {
		t.intervals[i] = t.join(own, t.across(own))
	}
}

func (t *timeline) put(p part) {
	if t.far == nil {
		t.far = make(map[partKey]part)
	}
	for _, share := range p.shares() {
		t.keep(share)
	}
}

func (t *timeline) keep(p part) {
	k := partKey{p.Measured, p.Index}
	// No test has more than maxIntervals; a far end that sends many more makes them up to fill this
	// process's memory.
	if _, known := t.far[k]; !known && len(t.far) >= 2*maxIntervals {
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
		k := partKey{own.Measured, own.Index + own.Skipped}
		_, ok := t.far[k]
		// Interval messages may be lost (tryPost) but never overtake each other, so a later one
		// proves that this one will not come.
		if !ok && !all && !(t.anyFar && t.newest.after(k)) {
			return
		}
		i := t.join(own, t.across(own))
		t.intervals = append(t.intervals, i)
		t.emit(i)
	}
}

// across returns what the far end saw in the intervals of one of this end.
func (t *timeline) across(own part) part {
	var all part
	some := false
	for i := own.Index; i <= own.Index+own.Skipped; i++ {
		p, ok := t.far[partKey{own.Measured, i}]
		switch {
		case !ok:
		case some:
			all = all.and(p)
		default:
			all, some = p, true
		}
	}
	return all
}

// join makes an interval of what both ends saw: the receiver's bytes over the receiver's time, the
// sender's view of the connection.
func (t *timeline) join(own, far part) Interval {
	i := Interval{StartSeconds: own.Start, EndSeconds: own.End, Omitted: !own.Measured}
	if own.Probes > 0 {
		i.ProbeRTTSeconds = own.ProbeSum / float64(own.Probes)
	}
	t.kind.interval(&i, t.direction, own, far)
	return i
}
