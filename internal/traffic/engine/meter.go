package engine

import "time"

// The rate is computed after at least this much time and this many bytes: a stream that needs
// longer for them is not fast enough to matter.
const (
	meterEvery = 5 * time.Millisecond
	meterAfter = 1 << 20
)

// meter measures the rate of one stream, and that of all streams of its thread, between two looks.
type meter struct {
	at    time.Duration // of the last look
	bytes int64         // of the stream until then

	shared   *int64 // bytes of all streams of the thread; nil: this is the only one
	sharedAt int64  // of them, at the last look
}

// due reports whether enough bytes have passed for a look at the clock.
func (m *meter) due(total int64) bool { return total-m.bytes >= meterAfter }

// read returns both rates since the last look, in bytes per second; ok is false if that was only a
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
