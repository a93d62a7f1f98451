package sample

import "time"

// pace spreads what is dear, so that it takes no more than a share of the time: a driver that asks
// its card's firmware for its counters takes milliseconds, and holds a lock meanwhile that the
// configuration of the card takes as well.
type pace struct {
	took [4]time.Duration // the last times
	at   int
	next time.Duration // since boot
}

// paceShare is the part of the time that all of them together may take: one in so many.
const paceShare = 400

// due tells whether it is time again.
func (p *pace) due(now time.Duration) bool { return now+10*time.Millisecond >= p.next }

// done notes what it took; others is how many of its sort there are. The shortest of the last times
// is believed: on a busy host a reading takes as long as it is not let run.
func (p *pace) done(now, took time.Duration, others int) {
	p.took[p.at%len(p.took)] = took
	p.at++
	cost := took
	for _, t := range p.took[:min(p.at, len(p.took))] {
		cost = min(cost, t)
	}
	p.next = now + min(time.Duration(others)*cost*paceShare, time.Minute)
}
