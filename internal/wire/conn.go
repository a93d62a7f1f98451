package wire

import (
	"context"
	"encoding/json"
)

// Message is one frame of the control channel: a 4-byte big-endian length, then this object as JSON.
type Message struct {
	Type string          `json:"type"`
	Body json.RawMessage `json:"body,omitempty"`
}

// MaxMessageBytes bounds one frame in both directions.
const MaxMessageBytes = 16 << 20

// Control is what a test or a change needs of the channel; *Conn is it.
var _ interface {
	Send(ctx context.Context, typ string, body any) error
	Receive(ctx context.Context) (Message, error)
} = (*Conn)(nil)
