package engine

import "time"

const (
	// unsentBytes is the most that a fast copying sender queues in front of the congestion window
	// (TCP_NOTSENT_LOWAT). With a long queue every acknowledgement sends the next segments from the
	// CPU that it arrived on, and a paced congestion control (BBR) sets a timer for each of them.
	// With a short one the sender's own thread sends: between two network namespaces, BBR, calls of
	// 2 MiB, 22 Gb/s without, 41 with 512 KiB, 55 with 256, 59 with 128, 61 with 64. Below it a NIC
	// has a queue of its own, of a millisecond (tcp_limit_output_bytes, BQL), so that no link runs
	// dry while the thread wakes up.
	unsentBytes = 128 << 10
	// It applies to streams faster than this, in bytes per second, which the CPU may limit; half of
	// this rate ends it,
	shortQueueRate = 10e9 / 8
	// and to paths shorter than this. On a longer path an acknowledgement, or the end of a loss
	// recovery, opens the window for more than a short queue holds: 1 Gb/s, 20 ms and one packet in
	// a thousand lost made 630 Mb/s instead of 700.
	shortQueuePath = time.Millisecond
)

// shortQueue keeps the queue of one sender short while that pays.
//
// This bound causes what the kernel then reports about time limited by the send buffer and about an
// application that has nothing to send; see Buffers.
type shortQueue struct {
	conn *Conn
	// never: the method gains nothing by it, the connection is paced, or the host has a lower bound
	// for all connections
	off   bool
	on    bool
	meter meter
}

// follow checks the rate from time to time.
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
			return // not known, before Linux 4.6: keep the long queue, as every program has it
		}
		q.on = q.conn.setUnsentLimit(unsentBytes) == nil
		q.off = !q.on
	}
}
