package peer

import (
	"context"
	"fmt"
	"net"
	"sync"

	"github.com/linerate/linerate/internal/wire"
)

// maxMailbox and maxMailboxBytes bound the messages of one test that wait for their reader; a
// healthy test has a handful.
const (
	maxMailbox      = 1024
	maxMailboxBytes = 2 * wire.MaxMessageBytes // the far result of a long test is one large message
)

// mailbox holds the test.* messages of one running test, while the rest of the channel continues.
// It implements traffic's Control on top of the channel.
type mailbox struct {
	conn *wire.Conn

	mu    sync.Mutex
	queue []wire.Message
	bytes int // of their bodies
	over  bool
	ready chan struct{} // one place: a new message
	ended chan struct{}
}

func newMailbox(conn *wire.Conn) *mailbox {
	return &mailbox{conn: conn, ready: make(chan struct{}, 1), ended: make(chan struct{})}
}

// put adds a message. It drops a message that is too late or too much; the test then runs into its
// own bounds.
func (b *mailbox) put(m wire.Message) {
	b.mu.Lock()
	// It drops instead of waiting: the reader of the channel must continue, or it would miss
	// heartbeats and the end of the connection.
	if !b.over && len(b.queue) < maxMailbox && b.bytes+len(m.Body) <= maxMailboxBytes {
		b.queue = append(b.queue, m)
		b.bytes += len(m.Body)
	}
	b.mu.Unlock()
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// close ends the test's use of the channel. The reader of the channel calls it when the channel
// ends.
func (b *mailbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.over {
		b.over = true
		close(b.ended)
	}
}

// Arrived returns how many bytes have come over the channel.
func (b *mailbox) Arrived() int64 { return b.conn.Arrived() }

// Send sends a message of the test.
func (b *mailbox) Send(ctx context.Context, typ string, body any) error {
	return b.conn.Send(ctx, typ, body)
}

// Receive returns the next message of the test. It delivers all messages that came before the end
// of the channel.
func (b *mailbox) Receive(ctx context.Context) (wire.Message, error) {
	const op = "receive message of the test"
	for {
		// Read before the queue is examined: put refuses once the box is closed, so the queue is
		// complete by then.
		over := false
		select {
		case <-b.ended:
			over = true
		default:
		}
		if m, ok := b.take(); ok {
			return m, nil
		}
		if over {
			select {
			case <-b.conn.Done():
				return wire.Message{}, b.conn.Err(op)
			default:
				return wire.Message{}, fmt.Errorf("%s: %w", op, net.ErrClosed)
			}
		}
		select {
		case <-b.ready:
		case <-b.ended:
		case <-ctx.Done():
			return wire.Message{}, fmt.Errorf("%s: %w", op, ctx.Err())
		}
	}
}

// take pops the oldest message.
func (b *mailbox) take() (wire.Message, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		return wire.Message{}, false
	}
	m := b.queue[0]
	b.queue = b.queue[1:]
	b.bytes -= len(m.Body)
	return m, true
}
