package datagram

import "time"

// Datagrams carry no proof of their sender: an attacker who guesses or sees the two addresses and
// ports of a test can send some of its own. These bounds keep a few of them from ruining the
// counts, and are beyond what any sender and path do.
const (
	// farAhead is how far a number may be ahead of the highest one without further questions. It is
	// half of the window, so that the true numbers that follow a false one still count.
	farAhead = windowBits / 2
	// mostPacketsPerMicrosecond is more than a sender sends on one socket. After a silence a number
	// may be ahead by as much more.
	mostPacketsPerMicrosecond = 50
	// mostTransit is the longest that the transit time may differ from that of the first datagram.
	// No path holds datagrams that long.
	mostTransit = time.Hour
)

// plausible reports whether a datagram with a good header can be from the sender. The first one is
// believed.
func (r *Receiver) plausible(m Mark, arrived time.Duration) bool {
	if r.got.AllPackets == 0 {
		r.transit, r.lastAny = arrived-m.Sent, arrived
		return true
	}
	if ahead := m.Sequence - r.seen.highest; m.Sequence > r.seen.highest && ahead > farAhead &&
		ahead-farAhead > uint64(max(0, arrived-r.lastAny).Microseconds())*mostPacketsPerMicrosecond {
		return false
	}
	// The clocks of other dialects may be set during a test.
	if d := arrived - m.Sent - r.transit; r.native && (d > mostTransit || d < -mostTransit) {
		return false
	}
	r.lastAny = arrived
	return true
}
