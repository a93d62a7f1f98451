package traffic

import (
	"time"

	"github.com/linerate/linerate/internal/traffic/engine"
	"github.com/linerate/linerate/internal/wire"
)

const (
	// An end looks whether all of an amount has arrived after half the time that the rest will
	// take, so that some ten looks find the end within shortestLook, which is 1 % of the time of
	// 25 MB at 10 Gb/s.
	shortestLook = 200 * time.Microsecond
	longestLook  = 10 * time.Millisecond
	// shortAmount is a duration in which the delay between the opening of the two windows is no
	// small part.
	shortAmount = 10 * shortestLook
)

// streamAmount ends a stream test when all bytes have arrived: every end that receives counts them,
// and reports to the other end when it has them all.
type streamAmount struct {
	bytes           int64
	sends, receives bool
	next            time.Duration // look
	full            time.Duration // when all of it had arrived here; 0: not yet
	peerFull        bool          // the other end has all that this one sends
}

func (a *streamAmount) due() time.Duration { return a.next }

func (a *streamAmount) over(c *conductor, now time.Duration) bool {
	a.look(c, now)
	return (!a.receives || a.full > 0) && (!a.sends || a.peerFull)
}

// look finds out whether all of the amount has arrived here.
func (a *streamAmount) look(c *conductor, now time.Duration) {
	if now < a.next || a.full > 0 || !a.receives {
		a.next = max(a.next, now+longestLook)
		return
	}
	r := c.read()
	got := r.bytes - c.first.bytes // including what the far end sent before this one opened its window
	if got >= a.bytes {
		a.full = r.at
		c.session.post(msgFull, nil)
		return
	}
	wait := longestLook
	if elapsed := r.at - c.window.open.at; got > 0 {
		wait = min(wait, time.Duration(float64(elapsed)*float64(a.bytes-got)/float64(got)/2))
	}
	a.next = r.at + max(shortestLook, wait)
}

func (*streamAmount) drained(*conductor, time.Duration) bool { return true }

func (a *streamAmount) handle(c *conductor, m wire.Message) (taken bool, err error) {
	if m.Type != msgFull || c.phase.Is() < engine.Measured {
		return false, nil
	}
	a.peerFull = true
	return true, nil
}

// account sets the time of the transfer. It begins when this end asks for the window, because what
// came on the way back was sent in that time.
func (a *streamAmount) account(c *conductor, b *resultBody) {
	if a.full > 0 {
		b.Seconds = max(0, (a.full - c.window.asked).Seconds())
	} else if a.receives {
		c.warn("only %d of %d bytes arrived within %v", b.Bytes, a.bytes, c.times.window)
	}
}
