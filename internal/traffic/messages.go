package traffic

import (
	"fmt"

	"github.com/linerate/linerate/internal/traffic/channel"
	"github.com/linerate/linerate/internal/traffic/datagram"
	"github.com/linerate/linerate/internal/traffic/plan"
)

// Control is the channel that a test is driven over; *wire.Conn is one. Send may be called while Receive is.
type Control = channel.Control

// MsgStart is the type of the message that opens a test; all types are of package channel.
const MsgStart = channel.Start

// StartBody is the body of the message that opens a test, MsgStart.
type StartBody struct {
	Spec Spec `json:"spec"`
}

type acceptBody struct {
	EchoToken   []byte   `json:"echo_token,omitempty"`
	EchoPort    int      `json:"echo_port,omitempty"`
	AcceptToken []byte   `json:"accept_token,omitempty"` // what requests of crr start with
	AcceptPorts []uint16 `json:"accept_ports,omitempty"` // of crr, one for each stream
}

type sentBody struct {
	Streams []datagram.Tally `json:"streams"` // of the senders, in the order of their sockets
}

type resultBody struct {
	End           End          `json:"end"`
	Bytes         int64        `json:"bytes"`
	Verified      int64        `json:"verified_bytes,omitempty"`
	Transactions  int64        `json:"transactions"`
	Seconds       float64      `json:"seconds"`        // of the far window, by the far clock; of an amount: until all of it was there
	Window        float64      `json:"window_seconds"` // of the host's counters
	SendMethod    string       `json:"send_method,omitempty"`
	ReceiveMethod string       `json:"receive_method,omitempty"`
	UDPSent       *udpSent     `json:"udp_sent,omitempty"`
	UDPReceived   *udpReceived `json:"udp_received,omitempty"`
	Parts         []part       `json:"parts"`
	Warnings      []string     `json:"warnings,omitempty"`
}

// check refuses figures of a far side that cannot be, and that would make infinities of sums and rates.
func (b *resultBody) check() error {
	const longest = 1e7 // seconds: a hundred days
	plausible := b.Bytes >= 0 && b.Bytes <= plan.MaxAmount && b.Transactions >= 0 && b.Verified >= 0 && b.Verified <= plan.MaxAmount
	for _, seconds := range []float64{b.Seconds, b.Window} {
		plausible = plausible && (seconds == 0 || seconds >= shortestPart.Seconds()/1000 && seconds < longest)
	}
	if u := b.UDPReceived; u != nil {
		plausible = plausible && u.Bytes >= 0 && u.Bytes <= plan.MaxAmount && u.Seconds >= 0 && u.Seconds < longest && u.Sent < 1<<50
	}
	if u := b.UDPSent; u != nil {
		plausible = plausible && u.Bytes >= 0 && u.Bytes <= plan.MaxAmount
	}
	if e := b.End; !(e.CPUSeconds >= 0 && e.CPUSeconds < 1e12) {
		plausible = false
	}
	for _, p := range b.Parts {
		plausible = plausible && p.plausible()
	}
	if !plausible {
		return fmt.Errorf("%w: %s message with impossible figures", ErrProtocol, channel.Result)
	}
	return nil
}
