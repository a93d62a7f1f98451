package sample

import "math"

// width is how many bits a counter is known to have.
type width uint8

const (
	bitsUnknown width = iota // 64 in the kernel; the driver below may have 32
	bits32                   // the kernel itself keeps or prints 32
	bits64
)

// tally adds up what a group of counters counts while somebody looks: counters of one thing, which
// begin anew together. It is arithmetic alone.
//
// What it adds for a reading is what was counted since the one before, or nothing; never more. A
// counter that went back
//
//   - by a 64th of its value at most is taken to waver (sums over processors, iowait, statistics of
//     firmware): nothing is added until it has passed its old value;
//   - went through zero if it has, or may have, 32 bits, it alone of the leading counters went
//     back, and it came no further than most allows;
//   - otherwise began anew: a driver was loaded again, an interface was made anew. Then nothing is
//     added; if it is one of the leading counters, for the whole group, since the others began anew
//     as well, and one that has passed its old value already does not show it.
//
// A counter that had been above 32 bits is known to be wider and never goes through zero.
type tally struct {
	lead  int // the first so many are those that every use of the thing moves
	width width

	begun bool
	was   []uint64
	sum   []uint64
	wide  []bool
	held  []uint8
}

// waverReadings is for how many readings a counter may waver before the lower value is believed.
const waverReadings = 8

// wrapEvents is the most that a counter of 32 bits may have come since the reading before when
// nothing better is known: an eighth of its range.
const wrapEvents = 1 << 29

// implausible is how much faster than its link a counter may be: cards that are emulated do not
// keep to the speed that they claim.
const implausible = 16

func newTally(n, lead int, w width) *tally {
	return &tally{lead: lead, width: w, was: make([]uint64, n), sum: make([]uint64, n), wide: make([]bool, n),
		held: make([]uint8, n)}
}

// add takes a reading. most, if not nil, tells the most that counter i is likely to have come since
// the reading before: what is beyond implausible times that is no count, and not added. It is 0
// where nothing is known. The answer is false for the first reading and for one at which the group
// began anew.
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
	// Who went back, and not by wavering?
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

// round gives how far a counter of 32 bits came that went through zero. False: it has more bits, or
// came too far for that.
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

// forget begins the sums at zero; the next reading is the first.
func (t *tally) forget() {
	t.begun = false
	clear(t.sum)
	clear(t.held)
}
