package engine

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/linerate/linerate/internal/kernel/sys"
)

// outflowBytes is one call of an [Outflow] until its stream is fast.
const outflowBytes = 128 << 10

// Outflow sends the repeated [Pattern] on a [Blocking] connection as [NewStreamSender] does: a
// block that stays in the cache, and on a fast stream long calls and a short queue. The end of a
// call of 128 KiB from a buffer is a segment of a few hundred bytes, which costs as much as a whole
// one. It is for servers of dialects that have no workers; one goroutine uses it.
type Outflow struct {
	conn  *Blocking
	from  source
	most  int // bytes of one call on a fast stream
	at    int // position in the pattern's period
	sent  int64
	base  time.Time
	short shortQueue
}

// Outflow returns the sender of a connection. A paced one makes no long calls.
func (b *Blocking) Outflow(paced bool) (*Outflow, error) {
	from, most, err := newSource(SendCopy, b.conn)
	if err != nil {
		return nil, fmt.Errorf("send by %s: %w", SendCopy, err)
	}
	return &Outflow{conn: b, from: from, most: most, base: time.Now(),
		short: shortQueue{conn: b.conn, off: paced || !b.conn.mayShorten()}}, nil
}

// CallBytes returns how much the next call should hand over: more while the stream is fast, because
// a long call of a slow stream would outlast the test.
func (f *Outflow) CallBytes() int {
	if f.short.on {
		return f.most
	}
	return outflowBytes
}

// Send hands over up to n bytes, of which it uses [Outflow.CallBytes] at most, and returns how many
// the kernel took. 0 without an error means that the socket was full for a fifth of a second.
func (f *Outflow) Send(n int) (int, error) {
	if !f.conn.enter() {
		return 0, net.ErrClosed
	}
	f.conn.conn.bound()
	sent, err := f.from.send(f.at, min(n, f.CallBytes()))
	err = f.conn.leave(err)
	f.at = (f.at + sent) % patternPeriod
	f.sent += int64(sent)
	if f.short.meter.due(f.sent) {
		f.short.follow(time.Since(f.base), f.sent)
	}
	if errors.Is(err, sys.ErrTimeout) {
		err = nil
	}
	return sent, err
}

// Close gives up what is not the connection's.
func (f *Outflow) Close() { f.from.close() }
