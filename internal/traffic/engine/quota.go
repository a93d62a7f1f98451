package engine

import "sync/atomic"

// Quota is how much the senders of one direction send together. Each takes a call's worth at a
// time, so fast streams send more of it than slow ones.
type Quota struct {
	unclaimed atomic.Int64
	unsent    atomic.Int64
	done      chan struct{}
}

// NewQuota makes a quota of payload bytes; zero or less is done from the start.
func NewQuota(bytes int64) *Quota {
	q := &Quota{done: make(chan struct{})}
	bytes = max(bytes, 0)
	q.unclaimed.Store(bytes)
	q.unsent.Store(bytes)
	if bytes == 0 {
		close(q.done)
	}
	return q
}

// Done is closed when the kernel has taken the last byte, which it has still to send: wait for the
// receiver to know the end of the transfer.
func (q *Quota) Done() <-chan struct{} { return q.done }

// claim takes up to n bytes for one sender, which must send them all; 0 when none are left.
func (q *Quota) claim(n int) int {
	left := q.unclaimed.Add(-int64(n))
	if left >= 0 {
		return n
	}
	// The last claim found less than it asked for, and later ones nothing.
	return int(max(int64(n)+left, 0))
}

// sent counts what the kernel took of a claim.
func (q *Quota) sent(n int) {
	if n > 0 && q.unsent.Add(-int64(n)) == 0 {
		close(q.done)
	}
}
