package engine

import "time"

// A rate is looked at after so much time and so many bytes at least: a stream that needs longer for
// them is not fast enough for anybody to care.
const (
	meterEvery = 5 * time.Millisecond
	meterAfter = 1 << 20
)

// meter tells the rate of one stream, and that of all streams of its thread, from look to look.
type meter struct {
	at    time.Duration // of the last look
	bytes int64         // of the stream until then

	shared   *int64 // bytes of all streams of the thread; nil: it has no others
	sharedAt int64  // of them, at the last look
}

// due tells whether enough bytes have passed for a look at the clock.
func (m *meter) due(total int64) bool { return total-m.bytes >= meterAfter }

// read tells both rates since the last look, in bytes per second; ok is false if that was only a
// moment ago.
func (m *meter) read(now time.Duration, total int64) (rate, all float64, ok bool) {
	if now-m.at < meterEvery {
		return 0, 0, false
	}
	seconds := (now - m.at).Seconds()
	rate = float64(total-m.bytes) / seconds
	all = rate
	if m.shared != nil {
		all = float64(*m.shared-m.sharedAt) / seconds
		m.sharedAt = *m.shared
	}
	m.at, m.bytes = now, total
	return rate, all, true
}
