package sample

import "math"

// width is how many bits a counter is known to have.
type width uint8

const (
	bitsUnknown width = iota // 64 in the kernel; the driver below may have 32
	bits32                   // the kernel itself keeps or prints 32
	bits64
)

// tally sums the counts of a group of counters during observation: counters of one thing, which are
// reset together. It is pure arithmetic.
//
// For each reading it adds what was counted since the previous one, or nothing; never more. A
// counter that decreased
//
//   - by at most a 64th of its value wavers (sums over processors, iowait, statistics of firmware):
//     nothing is added until it has passed its old value;
//   - has wrapped if it has, or may have, 32 bits, is the only leading counter that decreased, and
//     advanced no further than most allows;
//   - otherwise was reset: a driver was reloaded or an interface created again. Then nothing is
//     added; for a leading counter that holds for the whole group, since the others were reset as
//     well, and one that has already passed its old value does not show it.
//
// A counter that was ever above 2³² is wider than 32 bits and never wraps.
type tally struct {
	lead  int // the number of leading counters, which every use of the thing moves
	width width

	begun bool
	was   []uint64
	sum   []uint64
	wide  []bool
	held  []uint8
}

// waverReadings is for how many readings a counter may waver before the lower value counts.
const waverReadings = 8

// wrapEvents is the most that a 32-bit counter may have advanced since the previous reading if
// nothing better is known: an eighth of its range.
const wrapEvents = 1 << 29

// implausible is how much faster than its link a counter may be: emulated cards exceed the speed
// that they report.
const implausible = 16

func newTally(n, lead int, w width) *tally {
	return &tally{lead: lead, width: w, was: make([]uint64, n), sum: make([]uint64, n), wide: make([]bool, n),
		held: make([]uint8, n)}
}

// add takes a reading. most, if not nil, returns the most that counter i is likely to have advanced
// since the previous reading, 0 if not known; an advance beyond implausible times that is not
// added. add returns false for the first reading and for one at which the group was reset.
func (t *tally) add(now []uint64, most func(i int) uint64) bool {
	if !t.begun {
		t.begun = true
		for i, n := range now {
			t.begin(i, n)
		}
		return false
	}
	limit := func(i int) uint64 {
		if most == nil {
			return 0
		}
		return most(i)
	}
	// Which counters decreased by more than wavering?
	leading, other := 0, 0
	for i, n := range now {
		if n < t.was[i] && !t.wavers(i, n) {
			if i < t.lead {
				leading++
			} else {
				other++
			}
		}
	}
	anew := false
	for i, n := range now {
		if i < t.lead && n < t.was[i] && !t.wavers(i, n) {
			if _, ok := t.round(i, n, limit(i)); !ok || leading > 1 {
				anew = true
			}
		}
	}
	if anew {
		for i, n := range now {
			t.begin(i, n)
		}
		return false
	}
	for i, n := range now {
		switch was := t.was[i]; {
		case n >= was:
			if m := limit(i); m == 0 || (n-was)/implausible <= m {
				t.sum[i] += n - was
			}
			t.begin(i, n)
		case t.wavers(i, n):
			t.held[i]++
		default:
			if d, ok := t.round(i, n, limit(i)); ok && (i < t.lead || leading == 0 && other == 1 || t.width == bits32 &&
				leading == 0) {
				t.sum[i] += d
			}
			t.begin(i, n)
		}
	}
	return true
}

func (t *tally) begin(i int, n uint64) {
	t.was[i], t.held[i] = n, 0
	t.wide[i] = t.wide[i] || n > math.MaxUint32
}

func (t *tally) wavers(i int, n uint64) bool {
	return t.held[i] < waverReadings && t.was[i]-n <= t.was[i]/64
}

// round returns the advance of a 32-bit counter that wrapped. ok is false if it has more bits, or
// advanced too far.
func (t *tally) round(i int, n, most uint64) (uint64, bool) {
	if t.width == bits64 || t.wide[i] {
		return 0, false
	}
	if most == 0 {
		most = wrapEvents
	}
	d := uint64(uint32(n - t.was[i]))
	return d, d <= min(most, math.MaxUint32/2)
}

// forget resets the sums to zero; the next reading is the first.
func (t *tally) forget() {
	t.begun = false
	clear(t.sum)
	clear(t.held)
}
