package engine

import "time"

const (
	// unsentBytes is as much as a fast copying sender queues in front of the congestion window
	// (TCP_NOTSENT_LOWAT). With a long queue every acknowledgement sends the next segments from
	// whatever CPU it came in on, and a paced congestion control (BBR) sets a timer for each of
	// them. With a short one the sender's own thread sends: between two network namespaces, BBR,
	// calls of 2 MiB, 22 Gb/s without, 41 with 512 KiB, 55 with 256, 59 with 128, 61 with 64. Below
	// it a card has a queue of its own, of a millisecond (tcp_limit_output_bytes, BQL), so that no
	// link runs dry while the thread wakes up.
	unsentBytes = 128 << 10
	// It is for streams that are faster than this, in bytes per second, so that the CPU may be what
	// limits them; half of it ends it.
	shortQueueRate = 10e9 / 8
	// And for paths that are shorter. On a longer one an acknowledgement, or the end of a loss
	// recovery, opens the window for more than a short queue holds: 1 Gb/s, 20 ms and one packet in
	// a thousand lost made 630 Mb/s instead of 700.
	shortQueuePath = time.Millisecond
)

// shortQueue keeps the queue of one sender short while that pays.
//
// What the kernel then says of time limited by the send buffer, and of an application that has
// nothing to send, is this bound's doing; see Buffers.
type shortQueue struct {
	conn *Conn
	// never: the method gains nothing by it, the connection is paced, or the host has a lower bound
	// for all of its own
	off   bool
	on    bool
	meter meter
}

// follow looks at the rate from time to time.
func (q *shortQueue) follow(now time.Duration, sent int64) {
	if q.off {
		return
	}
	_, all, ok := q.meter.read(now, sent)
	switch {
	case !ok:
	case q.on && all < shortQueueRate/2:
		q.on = false
		q.off = q.conn.setUnsentLimit(0) != nil
	case !q.on && all >= shortQueueRate:
		info, err := q.conn.Info()
		if err != nil || info.MinRTTMicros == 0 || time.Duration(info.MinRTTMicros)*time.Microsecond > shortQueuePath {
			return // not known, before Linux 4.6: the long queue is what every program has
		}
		q.on = q.conn.setUnsentLimit(unsentBytes) == nil
		q.off = !q.on
	}
}
