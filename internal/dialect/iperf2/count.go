package iperf2

import "time"

// seenWindow is how many numbers below the highest are remembered, so that a duplicate does not
// count as a late datagram. A path that reorders more than that has worse problems.
const seenWindow = 1024

// count is what arrived of one UDP test. It counts as the program does, except that it recognizes
// duplicates. The zero value is ready to use.
type count struct {
	received   int64 // datagrams, without duplicates
	bytes      int64
	duplicates int64
	reordered  int64 // arrived after one with a higher number
	highest    int64 // number
	first      time.Duration
	last       time.Duration // arrival, by the receiver's monotonic clock
	jitter     float64       // nanoseconds

	transit time.Duration // of the last datagram, plus the offset of the clocks
	delays  delays
	seen    [seenWindow / 64]uint64
}

// add counts a datagram of n bytes that arrived at now, and reports whether it is new. The numbers
// of a test start at 1.
func (c *count) add(m mark, n int, now time.Duration) bool {
	if !c.mark(m.id) {
		c.duplicates++
		return false
	}
	if c.received == 0 {
		c.first = now
	}
	c.last = now
	c.received++
	c.bytes += int64(n)
	// RFC 1889 §6.3.1. Only the difference of two transits matters, so the clocks of the hosts need
	// not agree.
	transit := now - m.sent
	if c.received > 1 {
		c.jitter += (float64((transit - c.transit).Abs()) - c.jitter) / 16
	}
	c.transit = transit
	c.delays.add(transit, c.received)
	return true
}

// delays are the transits of all datagrams, as differences from the first: the offset of the
// clocks, which may be decades, would leave their squares no precision.
type delays struct {
	first         time.Duration
	min, max      time.Duration
	mean, squares float64 // microseconds; by Welford's method
}

// add counts the transit of datagram n, from 1 on.
func (d *delays) add(transit time.Duration, n int64) {
	if n == 1 {
		d.first = transit
	}
	transit -= d.first
	d.min, d.max = min(d.min, transit), max(d.max, transit)
	micros := transit.Seconds() * 1e6
	before := micros - d.mean
	d.mean += before / float64(n)
	d.squares += before * (micros - d.mean)
}

// trips returns the one-way delays; offset is the wall clock at the zero of the receiver's clock.
func (c *count) trips(offset time.Duration) *trips {
	base := c.delays.first + offset
	t := &trips{count: c.received, min: base + c.delays.min, max: base + c.delays.max, squares: c.delays.squares,
		mean: base + time.Duration(c.delays.mean*1e3)}
	if d := (c.last - c.first).Seconds(); d > 0 {
		t.perSecond = int64(float64(c.received)/d + 0.5)
	}
	return t
}

// mark records a number; false if it is known, or too old to decide.
func (c *count) mark(id int64) bool {
	if id <= 0 {
		return false
	}
	switch ahead := id - c.highest; {
	case ahead >= seenWindow:
		clear(c.seen[:])
		c.highest = id
	case ahead > 0:
		for i := c.highest + 1; i < id; i++ {
			c.seen[i%seenWindow/64] &^= 1 << (i % 64)
		}
		c.highest = id
	case ahead <= -seenWindow || c.seen[id%seenWindow/64]&(1<<(id%64)) != 0:
		return false
	default:
		c.reordered++
	}
	c.seen[id%seenWindow/64] |= 1 << (id % 64)
	return true
}

// report returns the report for a peer that has sent total datagrams.
func (c *count) report(total int64) report {
	total = max(total, c.received)
	return report{
		bytes: c.bytes, duration: c.last - c.first, lost: total - c.received, reordered: c.reordered, datagrams: total,
		jitter: time.Duration(c.jitter),
	}
}
