package engine

import "time"

const (
	// A receiver that wakes for every segment spends more on waking than on the data. While it
	// reads, the kernel cannot acknowledge: the data wait in the backlog of a locked socket. So a
	// fast stream gathers data before its reader wakes, for this long at most,
	gatherTime = 500 * time.Microsecond
	// this much at most,
	maxGatherBytes = 1 << 20
	// or this much where many streams share a thread. Each of them then sends in bursts at the rate
	// of all, so the time to gather counts at that rate: waking at each segment because a stream is
	// slow on average cost half of the throughput with 64 streams. 128 KiB: 47 Gb/s, 256: 57, 384:
	// 57, 1 MiB: 51.
	maxSharedGatherBytes = 384 << 10
	// The bytes of a stream that is slow on average wait no longer than this,
	mostGatherTime = 20 * time.Millisecond
	// and never more than this part of the receive buffer, so that the window that the other end
	// sees stays nearly the same (buffers under 512 KiB, which limit a stream, are left alone),
	gatherShare = 8
	// and not at all where it would be less than the largest segment that the kernel assembles.
	minGatherBytes = 64 << 10
)

// gatherBytes returns the low water mark in bytes, up to most, for a stream with a rate in bytes
// per second and a receive buffer; all is the rate of all streams of the thread together; 1 is
// none.
func gatherBytes(rate, all float64, bufferBytes, most int) int {
	n := int(min(all*gatherTime.Seconds(), rate*mostGatherTime.Seconds(), float64(bufferBytes/gatherShare),
		float64(most)))
	if n < minGatherBytes {
		return 1
	}
	return n
}

// lowWater keeps the low water mark of one receiver in step with its rate.
type lowWater struct {
	conn  *Conn
	off   bool // leave it alone: the user asked for a buffer size, or the system refused
	mark  int  // bytes set; 0 and 1: none
	meter meter
}

// follow checks the rate from time to time.
func (l *lowWater) follow(now time.Duration, received int64) {
	if l.off {
		return
	}
	rate, all, ok := l.meter.read(now, received)
	if !ok {
		return
	}
	most := maxGatherBytes
	if l.meter.shared != nil {
		most = maxSharedGatherBytes
	}
	buffer, err := l.conn.receiveBuffer()
	if err != nil {
		l.off = true
		return
	}
	// A small change is not worth a call.
	if want := gatherBytes(rate, all, buffer, most); want > l.mark+l.mark/4 || want < l.mark-l.mark/4 {
		l.set(want)
	}
}

// drained withdraws the mark when a read of up to asked bytes returned less: the stream has become
// slow, and its last bytes must not wait for more.
func (l *lowWater) drained(got, asked int) {
	if l.mark > 1 && got < min(l.mark, asked) {
		l.set(1)
	}
}

func (l *lowWater) set(mark int) {
	if l.conn.setLowWater(mark) != nil {
		l.off = true
		return
	}
	l.mark = mark
}
