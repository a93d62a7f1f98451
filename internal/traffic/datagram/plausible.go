package datagram

import (
	"crypto/rand"
	"encoding/binary"
	"time"
)

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

// MaxFirst is the highest number of a first datagram that leaves enough others for any test.
const MaxFirst = 1<<47 - 1

// RandomNumber returns a number up to [MaxFirst] that cannot be guessed, for SendOptions.First and
// ReceiveOptions.First. The two ends agree on it over an encrypted channel. A forger who does not
// see the datagrams hits a plausible number with one of two thousand million tries, and after a
// silent second with one of three million.
func RandomNumber() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the program instead
	return binary.BigEndian.Uint64(b[:]) & MaxFirst
}

// plausible reports whether a datagram with a good header can be from the sender. The first one is
// believed where the receiver does not know its number.
func (r *Receiver) plausible(m Mark, arrived time.Duration) bool {
	highest, any := r.seen.highest, r.got.AllPackets > 0
	if r.first != nil {
		if m.Sequence < *r.first {
			return false
		}
		if !any {
			highest = *r.first
		}
	}
	if any || r.first != nil {
		if ahead := m.Sequence - highest; m.Sequence > highest && ahead > farAhead &&
			ahead-farAhead > uint64(max(0, arrived-r.lastAny).Microseconds())*mostPacketsPerMicrosecond {
			return false
		}
	}
	if !any {
		r.transit, r.lastAny = arrived-m.Sent, arrived
		return true
	}
	// The clocks of other dialects may be set during a test.
	if d := arrived - m.Sent - r.transit; r.native && (d > mostTransit || d < -mostTransit) {
		return false
	}
	r.lastAny = arrived
	return true
}
