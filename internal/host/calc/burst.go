package calc

import (
	"math"
	"time"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/host/moderation"
)

// Burst asks what back-to-back frames a NIC holds: in memory of its own (Buffer), in its ring
// (Descriptors), or both; and how many frames a transfer over UDP makes (Transfer, as NFS sends
// it).
type Burst struct {
	Buffer      unit.Bytes
	Descriptors uint32
	Transfer    unit.Bytes
	Link        unit.BitRate
	MTUBytes    int           // payload of a frame; 0: 1500
	Interval    time.Duration // between two looks at the ring: interrupts, or ticks of polling
}

// The bytes of headers: of an Ethernet frame with its check sequence as a card stores it, of IPv4,
// of UDP, and of an NFS call or reply around its data (RFC 1813: about 100 to 140).
const (
	storedOverhead = 14 + 4
	ipv4Header     = 20
	udpHeader      = 8
	tcpHeader      = 20 + 12 // with timestamps
	rpcHeader      = 128
	leastMTU       = 68 // of a link that carries IPv4 (RFC 791)
)

// Result returns how many frames fit, how long the ring lasts at line rate, and how many frames the
// transfer makes.
func (b Burst) Result() (*Result, error) {
	mtu, err := mtuOf(b.MTUBytes, leastMTU)
	if err != nil {
		return nil, err
	}
	r := &Result{What: "burst", Formula: "frames = buffer / (MTU + 18), whole ones"}
	r.given("buffer", float64(b.Buffer), Bytes)
	r.given("ring", float64(b.Descriptors), Frames)
	r.given("transfer", float64(b.Transfer), Bytes)
	r.given("link", float64(b.Link), BitsPerSecond)
	r.given("MTU", float64(b.MTUBytes), Bytes)
	r.given("interval", b.Interval.Seconds(), Seconds)
	// A ring alone holds as many frames as it has descriptors, which needs no answer.
	if b.Buffer <= 0 && b.Transfer <= 0 && (b.Descriptors == 0 || b.Link <= 0) {
		return nil, missing("burst", "--buffer", "--ring with --link", "--transfer")
	}
	held := math.Inf(1)
	if b.Buffer > 0 {
		n := moderation.BufferFrames(b.Buffer, unit.Bytes(mtu+storedOverhead))
		r.add("frames that the buffer holds", float64(n), Frames, "buffer / (MTU %d + 18 bytes of header and check sequence)",
			mtu)
		held = float64(n)
	}
	if b.Descriptors > 0 {
		b.ring(r, mtu)
		held = min(held, float64(b.Descriptors))
	}
	if b.Transfer > 0 {
		carried := fragment(mtu)
		frames := float64(TransferFrames(b.Transfer, mtu, true))
		r.add("frames of a transfer over UDP", frames, Frames,
			"(transfer + 8 of UDP + %d of RPC and NFS) / %.0f bytes of a fragment (RFC 791), rounded up", rpcHeader, carried)
		switch {
		case !math.IsInf(held, 1) && frames > held:
			r.Notes = append(r.Notes, "a transfer does not fit: what follows the frames that are held is lost unless the "+
				"host empties the card meanwhile, and one lost fragment loses the whole transfer")
		case !math.IsInf(held, 1):
			r.Notes = append(r.Notes, "a transfer fits")
		}
	}
	return r.finish()
}

// fragment is what one fragment of a datagram carries: a multiple of eight bytes.
func fragment(mtu int) float64 { return math.Floor(float64(mtu-ipv4Header)/8) * 8 }

// TransferFrames returns how many frames one NFS transfer makes: fragments of a datagram, or
// segments of TCP with timestamps (RFC 7323). The MTU is in bytes.
func TransferFrames(transfer unit.Bytes, mtu int, udp bool) int {
	if udp {
		return int(math.Ceil((float64(transfer) + udpHeader + rpcHeader) / fragment(mtu)))
	}
	return int(math.Ceil((float64(transfer) + rpcHeader) / float64(mtu-ipv4Header-tcpHeader)))
}

// ring adds how long a ring lasts.
func (b Burst) ring(r *Result, mtu int) {
	if b.Link <= 0 {
		return
	}
	line := moderation.LineRate(b.Link, mtu)
	r.add("frames of the link", float64(line), PerSecond, "link / 8 / (MTU %d + 38)", mtu)
	r.add("ring is full after", moderation.RingTime(b.Descriptors, line).Seconds(), Seconds,
		"descriptors / frames of the link")
	if b.Interval > 0 {
		r.add("frames of an interval", float64(line)*b.Interval.Seconds(), Frames, "frames of the link × interval")
		if moderation.Overruns(b.Descriptors, line, b.Interval) {
			r.Notes = append(r.Notes, "the ring overruns within an interval at line rate")
		}
	}
}
