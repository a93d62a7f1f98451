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

// mailbox holds the test.* messages of one running test; the rest of the channel goes on beside it.
// It is traffic's Control together with the channel it stands for.
type mailbox struct {
	conn *wire.Conn

	mu    sync.Mutex
	queue []wire.Message
	bytes int // of their bodies
	over  bool
	ready chan struct{} // one place: something new
	ended chan struct{}
}

func newMailbox(conn *wire.Conn) *mailbox {
	return &mailbox{conn: conn, ready: make(chan struct{}, 1), ended: make(chan struct{})}
}

// put adds a message. One that comes too late or is too much is dropped; the test then runs into
// its own bounds.
func (b *mailbox) put(m wire.Message) {
	b.mu.Lock()
	// Dropping, not waiting: the reader of the channel must go on, or it would miss the heartbeats
	// and the end of the connection.
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

// close ends the test's use of the channel; whoever reads the channel calls it when that has ended.
func (b *mailbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.over {
		b.over = true
		close(b.ended)
	}
}

// Send passes a message of the test on.
func (b *mailbox) Send(ctx context.Context, typ string, body any) error {
	return b.conn.Send(ctx, typ, body)
}

// Receive gives the next message of the test; those that came before the end of the channel are
// given first.
func (b *mailbox) Receive(ctx context.Context) (wire.Message, error) {
	const op = "receive message of the test"
	for {
		// Asked before the queue is looked at: put refuses once the box is closed, so what the
		// queue then lacks never comes.
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
