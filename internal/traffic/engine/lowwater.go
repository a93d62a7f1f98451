package engine

import "time"

const (
	// A receiver that is woken for every segment that comes spends more on waking than on the data,
	// and while it reads the kernel cannot acknowledge: the data wait in the backlog of a locked
	// socket. So a fast stream is let gather before its reader wakes, for this long at most,
	gatherTime = 500 * time.Microsecond
	// this much at most,
	maxGatherBytes = 1 << 20
	// or this much where many streams share a thread. Each of them sends in bursts then, at the
	// rate of all; so the time to gather counts at that rate: waking at each segment because a
	// stream is slow on the average cost half of the throughput with 64 streams. 128 KiB: 47 Gb/s,
	// 256: 57, 384: 57, 1 MiB: 51.
	maxSharedGatherBytes = 384 << 10
	// Nor do the bytes of a stream that is slow on the average lie longer than this.
	mostGatherTime = 20 * time.Millisecond
	// never more than this part of the receive buffer, so that the window which the other end sees
	// stays nearly what it is without (buffers under 512 KiB, which are the ones that limit, are
	// left alone),
	gatherShare = 8
	// and not at all where it would be less than the largest segment that the kernel puts together.
	minGatherBytes = 64 << 10
)

// gatherBytes is the low water mark, of most bytes at the most, for a stream of a rate in bytes per
// second with a receive buffer, where all streams of the thread together have the rate all; 1 is
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
	off   bool // not to be touched: the buffer was asked for by hand, or the system refused
	mark  int  // bytes that are set; 0 and 1: none
	meter meter
}

// follow looks at the rate from time to time.
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

// drained takes the mark back when a read of up to asked bytes came back with less: the stream has
// become slow, and its last bytes must not wait for more.
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
