package wire

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"
)

// Conn is one authenticated control channel. Send may be called from several goroutines, Receive from one.
type Conn struct {
	rw     io.ReadWriteCloser
	sendMu sync.Mutex
}

// NewConn frames messages over a channel that is authenticated already (TLS, ssh stdio, a pipe in tests).
func NewConn(rw io.ReadWriteCloser) *Conn { return &Conn{rw: rw} }

type deadliner interface {
	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
}

// Send writes one frame; body is encoded as JSON and may be nil.
func (c *Conn) Send(ctx context.Context, typ string, body any) error {
	m := Message{Type: typ}
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("encode %s message: %w", typ, err)
		}
		m.Body = b
	}
	b, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode %s message: %w", typ, err)
	}
	if len(b) > MaxMessageBytes {
		return fmt.Errorf("send %s message: %d bytes is over the limit of %d", typ, len(b), MaxMessageBytes)
	}
	frame := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(b)), uint32(len(b)))
	frame = append(frame, b...)
	c.sendMu.Lock()
	defer c.sendMu.Unlock()
	if d, ok := c.rw.(deadliner); ok {
		stop := context.AfterFunc(ctx, func() { _ = d.SetWriteDeadline(time.Unix(1, 0)) })
		defer stop()
	}
	if _, err := c.rw.Write(frame); err != nil {
		return fmt.Errorf("send %s message: %w", typ, err)
	}
	return nil
}

// Receive reads one frame.
func (c *Conn) Receive(ctx context.Context) (Message, error) {
	if d, ok := c.rw.(deadliner); ok {
		stop := context.AfterFunc(ctx, func() { _ = d.SetReadDeadline(time.Unix(1, 0)) })
		defer stop()
	}
	var head [4]byte
	if _, err := io.ReadFull(c.rw, head[:]); err != nil {
		return Message{}, fmt.Errorf("receive message: %w", err)
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > MaxMessageBytes {
		return Message{}, fmt.Errorf("receive message: %d bytes is over the limit of %d", n, MaxMessageBytes)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(c.rw, b); err != nil {
		return Message{}, fmt.Errorf("receive message: %w", err)
	}
	var m Message
	if err := json.Unmarshal(b, &m); err != nil {
		return Message{}, fmt.Errorf("decode message: %w", err)
	}
	return m, nil
}

// Close ends the channel.
func (c *Conn) Close() error { return c.rw.Close() }
