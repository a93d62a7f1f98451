package schedule

import "time"

// budget counts bytes by the hour, over a little more than a day: an hour counts until all of it is
// a day old. The zero value is empty.
type budget struct {
	hours map[int64]int64 // bytes by the number of hours since the scheduler's start
}

const hoursOfDay = 24

// hour returns the number of an hour; negative before the start.
func hour(at time.Duration) int64 {
	h := int64(at / time.Hour)
	if at < 0 && at%time.Hour != 0 {
		h--
	}
	return h
}

// add counts bytes that may have been sent by now.
func (b *budget) add(now time.Duration, bytes int64) {
	if b.hours == nil {
		b.hours = make(map[int64]int64)
	}
	b.hours[hour(now)] += bytes
	for h := range b.hours {
		if h < hour(now)-hoursOfDay {
			delete(b.hours, h)
		}
	}
}

// last returns at least what was sent within the last day.
func (b *budget) last(now time.Duration) int64 {
	sum := int64(0)
	for h, bytes := range b.hours {
		if h >= hour(now)-hoursOfDay {
			sum += bytes
		}
	}
	return sum
}
