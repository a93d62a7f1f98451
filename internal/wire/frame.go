package wire

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
)

// Message is one frame of the control channel: a 4-byte big-endian length, then this object as
// JSON.
type Message struct {
	Type string          `json:"type"`
	Body json.RawMessage `json:"body,omitempty"`
}

// MaxMessageBytes limits one frame in both directions.
const MaxMessageBytes = 16 << 20

// maxRequestBytes limits one frame that a Listener's channel accepts. Answers may be large (a
// host's snapshot, a long journal), but requests are small, and a server may have a thousand
// clients.
const maxRequestBytes = 256 << 10

// frameHeadBytes is the size of the length field at the start of each frame.
const frameHeadBytes = 4

// heartbeat is a frame without content.
var heartbeat = make([]byte, frameHeadBytes)

// appendFrame appends one encoded message.
func appendFrame(b []byte, typ string, body any) ([]byte, error) {
	m := Message{Type: typ}
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("encode %s message: %w", typ, err)
		}
		m.Body = encoded
	}
	encoded, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode %s message: %w", typ, err)
	}
	// Refused here, where the error can name the message; the peer could only end the channel.
	if len(encoded) > MaxMessageBytes {
		return nil, fmt.Errorf("encode %s message: %d bytes are over the limit of %d", typ, len(encoded),
			MaxMessageBytes)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(encoded)))
	return append(b, encoded...), nil
}

// readFrame reads one frame and returns its message and the message's size in memory. Size 0 is a
// heartbeat, whose arrival is its only effect. Memory grows with the bytes that have arrived, not
// with the length field. io.EOF is returned only between frames.
func readFrame(r io.Reader, limit int) (Message, int, error) {
	var head [frameHeadBytes]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return Message{}, 0, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n == 0 {
		return Message{}, 0, nil
	}
	if int64(n) > int64(limit) {
		return Message{}, 0, fmt.Errorf("%w: frame of %d bytes, the limit is %d", ErrProtocol, n, limit)
	}
	body, err := readGrowing(r, int(n))
	if err != nil {
		return Message{}, 0, err
	}
	var m Message
	if err := json.Unmarshal(body, &m); err != nil {
		return Message{}, 0, fmt.Errorf("%w: invalid message: %w", ErrProtocol, err)
	}
	if m.Type == "" {
		return Message{}, 0, fmt.Errorf("%w: message without a type", ErrProtocol)
	}
	return m, len(body), nil
}

// readGrowing reads n bytes, and doubles its buffer from 64 KiB as they arrive.
func readGrowing(r io.Reader, n int) ([]byte, error) {
	b := make([]byte, 0, min(n, 64<<10))
	for len(b) < n {
		if len(b) == cap(b) {
			b = append(make([]byte, 0, min(n, 2*cap(b))), b...)
		}
		got, err := io.ReadFull(r, b[len(b):cap(b)])
		b = b[:len(b)+got]
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, err
		}
	}
	return b, nil
}
