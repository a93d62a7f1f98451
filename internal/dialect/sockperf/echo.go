package sockperf

import (
	"net/netip"
	"time"

	"github.com/linerate/linerate/internal/traffic/admission"
)

// judge decides what becomes of one datagram, counts it, and turns it into its answer in place when
// it is to be answered. The answer is the datagram itself, so it is never longer.
func judge(p []byte, from netip.AddrPort, gate *admission.Gate, b *book, now time.Duration) (answer bool) {
	g := b.page(from, now)
	h, ok := parseHeader(p)
	// sockperf takes a length that is not the datagram's for an error as well, where it says more
	// than is there.
	if !ok || int(h.length) != len(p) {
		g.malformed++
		return false
	}
	g.count(h.sequence, len(p))
	if !h.asks() {
		return false
	}
	if !gate.Allow(from.Addr(), 1, len(p)) {
		g.refused++
		return false
	}
	turn(p)
	g.answered++
	return true
}
