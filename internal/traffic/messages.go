package traffic

import (
	"context"
	"fmt"
	"time"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/traffic/datagram"
	"github.com/linerate/linerate/internal/wire"
)

// Control is the channel that a test is driven over; *wire.Conn is one. Send may be called while
// Receive is.
type Control interface {
	Send(ctx context.Context, typ string, body any) error
	Receive(ctx context.Context) (wire.Message, error)
}

// MsgStart is the type of the message that opens a test.
const MsgStart = "test.start"

// Types of the other messages; the comment of the package has their order and meaning.
const (
	msgAccept   = "test.accept"
	msgReady    = "test.ready"
	msgGo       = "test.go"
	msgSteady   = "test.steady"
	msgMark     = "test.mark"
	msgOpened   = "test.opened"
	msgInterval = "test.interval"
	msgBeat     = "test.beat"
	msgFull     = "test.full"
	msgSent     = "test.sent"
	msgCurtail  = "test.curtail"
	msgDone     = "test.done"
	msgStop     = "test.stop"
	msgResult   = "test.result"
	msgError    = "test.error"
)

// StartBody is the body of the message that opens a test, MsgStart.
type StartBody struct {
	Spec Spec `json:"spec"`
	// the near end knows acceptBody.FirstNumbers; older ones do not
	FirstNumbers bool `json:"first_numbers,omitempty"`
}

type acceptBody struct {
	EchoToken   []byte   `json:"echo_token,omitempty"`
	EchoPort    int      `json:"echo_port,omitempty"`
	AcceptToken []byte   `json:"accept_token,omitempty"` // what requests of crr start with
	AcceptPorts []uint16 `json:"accept_ports,omitempty"` // of crr, one for each stream
	// of udp, one for each socket: the number of its first datagram. It is a secret of the control
	// channel.
	FirstNumbers []uint64 `json:"first_numbers,omitempty"`
}

type sentBody struct {
	Streams []datagram.Tally `json:"streams"` // of the senders, in the order of their sockets
}

type resultBody struct {
	End          End   `json:"end"`
	Bytes        int64 `json:"bytes"`
	Verified     int64 `json:"verified_bytes,omitempty"`
	Transactions int64 `json:"transactions"`
	// of the far window, by the far clock; of an amount: until all of it had arrived
	Seconds       float64      `json:"seconds"`
	Window        float64      `json:"window_seconds"` // of the host's counters
	SendMethod    string       `json:"send_method,omitempty"`
	ReceiveMethod string       `json:"receive_method,omitempty"`
	UDPSent       *udpSent     `json:"udp_sent,omitempty"`
	UDPReceived   *udpReceived `json:"udp_received,omitempty"`
	Parts         []part       `json:"parts"`
	Warnings      []string     `json:"warnings,omitempty"`
}

// mostPackets is more than a hundred days at a hundred million packets per second, and far below
// where 64-bit sums overflow.
const mostPackets = 1 << 50

// plausible refuses counts that contradict one another: lost and received packets together are the
// sent ones.
func (u *udpReceived) plausible() bool {
	counted := func(n *uint64) bool { return n == nil || *n < mostPackets }
	return u.Sent < mostPackets && u.Received <= u.Sent && u.Lost <= u.Sent-u.Received && counted(u.Duplicates) &&
		counted(u.Reordered) &&
		u.SocketDrops >= 0 && u.SocketDrops < mostPackets && u.JitterSeconds >= 0 && u.JitterSeconds < longestDelay &&
		possible(u.DelayVariation)
}

// longestDelay is an upper bound of any delay or gap between packets of a test, in seconds: a
// hundred days.
const longestDelay = 1e7

// possible reports whether a far end's distribution is possible; nil, which means none, is
// possible.
func possible(d *stats.Latencies) bool {
	if d == nil {
		return true
	}
	for _, seconds := range []float64{d.Min, d.Mean, d.P50, d.P90, d.P99, d.P999, d.Max, d.StdDev} {
		if !(seconds >= 0 && seconds < longestDelay) { // written so that NaN is refused as well
			return false
		}
	}
	return d.Count < mostPackets && d.Min <= d.Max
}

// check refuses impossible figures of a far end, which would make sums and rates infinite.
func (b *resultBody) check() error {
	plausible := b.Bytes >= 0 && b.Bytes <= maxAmount && b.Transactions >= 0 && b.Verified >= 0 &&
		b.Verified <= maxAmount
	for _, seconds := range []float64{b.Seconds, b.Window} {
		plausible = plausible && (seconds == 0 || seconds >= time.Nanosecond.Seconds() && seconds < longestDelay)
	}
	if u := b.UDPReceived; u != nil {
		plausible = plausible && u.Bytes >= 0 && u.Bytes <= maxAmount && u.Seconds >= 0 &&
			u.Seconds < longestDelay && u.plausible()
	}
	if u := b.UDPSent; u != nil {
		plausible = plausible && u.Bytes >= 0 && u.Bytes <= maxAmount && u.Packets >= 0 &&
			u.Packets < mostPackets &&
			u.SocketErrors >= 0 && u.SocketErrors <= u.Packets && possible(u.Gaps)
	}
	if e := b.End; !(e.CPUSeconds >= 0 && e.CPUSeconds < 1e12) {
		plausible = false
	}
	for _, p := range b.Parts {
		plausible = plausible && p.plausible()
	}
	if !plausible {
		return fmt.Errorf("%w: %s message with impossible figures", ErrProtocol, msgResult)
	}
	return nil
}
