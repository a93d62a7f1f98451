package iperf2

import "time"

// seenWindow is how many numbers behind the highest one are remembered, so that a datagram that
// comes twice is not taken for one that comes late. Reordering beyond that is a path's that has
// lost more than its order.
const seenWindow = 1024

// count is what arrived of one UDP test, counted as the program does but that duplicates are told
// apart. The zero value is ready.
type count struct {
	received   int64 // datagrams, each once
	bytes      int64
	duplicates int64
	reordered  int64 // came after one with a higher number
	highest    int64 // number
	first      time.Duration
	last       time.Duration // arrivals, by the receiver's monotonic clock
	jitter     float64       // nanoseconds

	transit time.Duration // of the last datagram, plus the difference of the clocks
	seen    [seenWindow / 64]uint64
}

// add counts a datagram of n bytes that arrived at now, and tells whether it is new. The numbers of
// a test start at 1.
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
	// RFC 1889 §6.3.1; the clocks of the two hosts need not agree, only the difference of two
	// transits matters.
	transit := now - m.sent
	if c.received > 1 {
		c.jitter += (float64((transit - c.transit).Abs()) - c.jitter) / 16
	}
	c.transit = transit
	return true
}

// mark notes a number; false: it has been seen, or is too old to tell.
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

// report is what the peer is told when it has sent total datagrams.
func (c *count) report(total int64) report {
	total = max(total, c.received)
	return report{
		bytes: c.bytes, duration: c.last - c.first, lost: total - c.received, reordered: c.reordered, datagrams: total,
		jitter: time.Duration(c.jitter),
	}
}
