package datagram

import "time"

// pacer is the schedule of a sender: when the next packets are due, as the time since a moment that
// the caller chooses. It has no clock and does not sleep.
//
// Packet n is due at start + n·gap, independent of what happened before, so delays do not add up. A
// late sender may send at twice the rate until it has reached the schedule again; a delay beyond
// the credit moves the schedule instead.
type pacer struct {
	gap   float64 // nanoseconds between packets; 0: no schedule
	burst int     // packets sent together

	credit  time.Duration // how late the sender may be and still catch up
	atOnce  int           // bursts that a late sender may send without a pause; 0: one
	run     int           // of them, since the last pause
	started bool
	due     float64 // of the next packet, nanoseconds
	next    float64 // not before, nanoseconds: half the planned time after the last burst

	forgiven float64 // nanoseconds by which the schedule was moved
}

// Constants of the schedule.
const (
	// credit is how late a sender may be and still catch up: longer than the scheduler of a busy
	// host usually suspends a thread at a time.
	credit = 50 * time.Millisecond
	// longCredit is the same for a sender in bursts (SendOptions.Every): as in the programs that send
	// so, the mean of the whole test counts, and not the evenness.
	longCredit = time.Second
	// mostAtOnce is what such a sender may hand over at once when it is late: more than a busy host
	// suspends a thread at a time, and less than the queues of most paths take.
	mostAtOnce = 10 * time.Millisecond
	// closest is the planned time between two system calls of a sender. A call costs a microsecond
	// or two; the rest is for the packets in it.
	closest = 10 * time.Microsecond
	// catchUp is the share of the planned time between bursts that a late sender waits, so the rate
	// then doubles.
	catchUp = 0.5
)

// newPacer plans packets with gap between them, together in bursts of up to limit when single ones
// would be too close.
func newPacer(gap time.Duration, limit int) pacer { return newExactPacer(float64(gap), limit) }

// newExactPacer is newPacer in fractional nanoseconds, which a million packets per second need.
func newExactPacer(gap float64, limit int) pacer {
	p := pacer{gap: gap, burst: 1, credit: credit}
	if gap > 0 {
		for p.burst < limit && float64(p.burst)*gap < float64(closest) {
			p.burst++
		}
	}
	return p
}

// keepMean is for a sender in bursts, see longCredit and mostAtOnce. The burst is final.
func (p *pacer) keepMean() {
	p.credit, p.atOnce = longCredit, int(float64(mostAtOnce)/(p.gap*float64(p.burst)))
}

// take returns how many packets are due at now, at most the burst, or how long to wait for the
// next. The packets it returns count as sent.
func (p *pacer) take(now time.Duration) (packets int, wait time.Duration) {
	if p.gap == 0 {
		return p.burst, 0
	}
	at := float64(now)
	if !p.started {
		p.started, p.due, p.next = true, at, at
	}
	if ready := max(p.due, p.next); at < ready {
		return 0, time.Duration(ready-at) + 1
	}
	planned := p.gap * float64(p.burst)
	if excess := at - p.due - planned - float64(p.credit); excess > 0 {
		p.forgiven += excess
		p.due += excess
	}
	p.due += planned
	// Each pause of a busy host is longer than planned: with one burst for each, a sender that is late
	// would stay late, and half of the rate be missing.
	if p.run++; p.run < p.atOnce && p.due <= at {
		p.next = at
	} else {
		p.run, p.next = 0, at+planned*catchUp
	}
	return p.burst, 0
}
