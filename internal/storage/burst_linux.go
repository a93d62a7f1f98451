package storage

import (
	"time"

	"github.com/linerate/linerate/internal/kernel/sys"
)

// bursts reports random reads as fast as possible beside other threads: their most frequent form
// has a loop of its own ([sys.Burst]).
func (l *load) bursts() bool {
	return l.spec.Test == RandomRead && l.spec.Rate == 0 && !l.drop && l.spec.Depth > 1
}

// burstTime bounds a burst; the counters of interim results are those of whole bursts.
const burstTime = time.Second

// bursting is calling in bursts.
func (l *load) bursting(w *worker, buffer []byte) error {
	step := burstTime
	if l.spec.Interval > 0 {
		step = min(step, l.spec.Interval/2)
	}
	var b sys.Burst
	used := len(b.Offsets) // of the offsets: a slow disk needs few of them in a burst
	for !l.stop.Load() {
		now := l.now()
		if now >= l.spec.Duration {
			return nil
		}
		for i := range used {
			b.Offsets[i] = l.offset(w, 0)
		}
		until := min(now+step, l.spec.Duration)
		failed, err := b.Read(l.fd, buffer, l.monotone+until, &l.stop)
		for _, took := range b.Took[:b.Done] {
			w.record(time.Duration(took))
		}
		used = b.Done
		if failed {
			return l.failed(&failure{buffer, b.Offsets[b.Done], b.Got, err})
		}
	}
	return nil
}
