package peer

import (
	"time"

	"github.com/linerate/linerate/internal/wire"
)

// WithCancelGrace returns the options with another cancelGrace.
func (o ConnectOptions) WithCancelGrace(d time.Duration) ConnectOptions {
	o.cancelGrace = d
	return o
}

// WithConfirmWithin returns the options with another confirmWithin.
func (o ServerOptions) WithConfirmWithin(d time.Duration) ServerOptions {
	o.confirmWithin = d
	return o
}

// NewClient is a client on an open channel, before its greeting.
func NewClient(conn *wire.Conn) *Client {
	c := &Client{
		conn: conn, waiting: make(map[uint64]inquiry), testing: make(chan struct{}, 1), finished: make(chan struct{}),
		options: ConnectOptions{Notify: func(string) {}, cancelGrace: cancelGrace},
	}
	go c.read()
	return c
}
