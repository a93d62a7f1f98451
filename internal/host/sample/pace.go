package sample

import "time"

// pace spreads costly reads, so that they take at most a share of the time. A driver that asks its
// card's firmware for its counters takes milliseconds, and meanwhile holds a lock that the
// configuration of the card needs as well.
type pace struct {
	took [4]time.Duration // the last times
	at   int
	next time.Duration // since boot
}

// paceShare is the share of the time that all of them together may take: one in paceShare.
const paceShare = 400

// due reports whether it is time to read again.
func (p *pace) due(now time.Duration) bool { return now+10*time.Millisecond >= p.next }

// done records how long a read took; others is the number of its kind. The shortest of the last
// times counts: on a busy host a read also lasts while the reader is not scheduled.
func (p *pace) done(now, took time.Duration, others int) {
	p.took[p.at%len(p.took)] = took
	p.at++
	cost := took
	for _, t := range p.took[:min(p.at, len(p.took))] {
		cost = min(cost, t)
	}
	p.next = now + min(time.Duration(others)*cost*paceShare, time.Minute)
}
