package sockperf

import (
	"net/netip"
	"time"

	"github.com/linerate/linerate/internal/traffic/admission"
)

// lowestPort is that of the first client; services have those below it.
const lowestPort = 1024

// judge decides about one datagram and counts it. If the datagram is to be answered, judge turns it
// into its answer in place, so the answer is never longer.
func judge(p []byte, from netip.AddrPort, gate *admission.Gate, b *book, now time.Duration) (answer bool) {
	g := b.page(from, now)
	h, ok := parseHeader(p)
	// sockperf also treats a length that is not the datagram's as an error, if it claims more than
	// there is.
	if !ok || int(h.length) != len(p) {
		g.malformed++
		return false
	}
	g.count(h.sequence, len(p))
	if !h.asks() {
		return false
	}
	// A forged request from the port of a service would make two services answer each other.
	if from.Port() < lowestPort || !gate.Allow(from.Addr(), 1, len(p)) {
		g.refused++
		return false
	}
	turn(p)
	g.answered++
	return true
}
