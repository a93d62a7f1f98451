package sample

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestTally(t *testing.T) {
	const top = 1 << 32
	for _, c := range []struct {
		name  string
		width width
		most  uint64
		was   []uint64 // the first two lead
		now   []uint64
		want  []uint64
	}{
		{"nothing", bitsUnknown, 0, []uint64{5, 6, 7}, []uint64{5, 6, 7}, []uint64{0, 0, 0}},
		{"forward", bitsUnknown, 0, []uint64{5, 6, 7}, []uint64{9, 6, 8}, []uint64{4, 0, 1}},
		{"through zero, alone", bitsUnknown, 0, []uint64{top - 100, 50, 7}, []uint64{200, 60, 8}, []uint64{300, 10, 1}},
		{"through zero, and known to be narrow", bits32, 0, []uint64{50, 50, top - 1}, []uint64{60, 50, 1},
			[]uint64{10, 0, 2}},
		{"through zero, and known to be wide", bits64, 0, []uint64{top - 100, 50, 7}, []uint64{200, 60, 8},
			[]uint64{0, 0, 0}},
		{"further through zero than it can have come", bitsUnknown, 250, []uint64{top - 100, 50, 7},
			[]uint64{200, 60, 8}, []uint64{0, 0, 0}},
		{"far from the top", bitsUnknown, 0, []uint64{top / 2, 50, 7}, []uint64{200, 60, 8}, []uint64{0, 0, 0}},
		{"two near the top", bitsUnknown, 0, []uint64{top - 100, top - 50, 7}, []uint64{200, 60, 8}, []uint64{0, 0, 0}},
		{"it was above 32 bits", bitsUnknown, 0, []uint64{2*top - 100, 50, 7}, []uint64{200, 60, 8}, []uint64{0, 0, 0}},
		{"anew, all", bitsUnknown, 0, []uint64{top - 100, 5000, 70}, []uint64{200, 60, 8}, []uint64{0, 0, 0}},
		{"anew, and one has passed its old value", bitsUnknown, 0, []uint64{1000, 5, 7}, []uint64{200, 60, 8},
			[]uint64{0, 0, 0}},
		{"a follower alone", bitsUnknown, 0, []uint64{1000, 500, 7}, []uint64{2000, 600, 1}, []uint64{1000, 100, 0}},
		{"wavers", bitsUnknown, 0, []uint64{1000, 500, 7}, []uint64{990, 600, 8}, []uint64{0, 100, 1}},
		{"more than can be", bitsUnknown, 100, []uint64{1000, 500, 7}, []uint64{math.MaxUint64, 600, 8},
			[]uint64{0, 100, 1}},
	} {
		tl := newTally(3, 2, c.width)
		tl.add(c.was, nil)
		var most func(int) uint64
		if c.most > 0 {
			most = func(int) uint64 { return c.most }
		}
		tl.add(c.now, most)
		for i, want := range c.want {
			if tl.sum[i] != want {
				t.Errorf("%s: counter %d: added %d, want %d", c.name, i, tl.sum[i], want)
			}
		}
	}
}

// A counter that wavered is counted on from its old value, and one that stays below it is believed
// in the end.
func TestTallyWavers(t *testing.T) {
	tl := newTally(1, 0, bits64)
	for _, n := range []uint64{1000, 995, 999, 1001} {
		tl.add([]uint64{n}, nil)
	}
	if tl.sum[0] != 1 {
		t.Errorf("1000, 995, 999, 1001: counted %d", tl.sum[0])
	}
	for range waverReadings + 1 {
		tl.add([]uint64{990}, nil)
	}
	tl.add([]uint64{991}, nil)
	if tl.sum[0] != 2 {
		t.Errorf("one more after a lower value that stayed: counted %d", tl.sum[0]-1)
	}
}

// thing is an interface as it really is: what passed it in each second, and what its counters say
// of that.
type thing struct {
	rng      *rand.Rand
	bits     uint
	truth    [4]uint64 // packets in and out, bytes in and out, of the present second
	counters [4]uint64 // since they began
}

// step lets a second pass.
func (x *thing) step() {
	x.truth = [4]uint64{}
	for direction := range 2 {
		if x.rng.IntN(4) == 0 {
			continue
		}
		packets := x.rng.Uint64N(100_000)
		x.truth[direction] = packets
		x.truth[2+direction] = packets * (60 + x.rng.Uint64N(1455))
	}
	for i, n := range x.truth {
		x.counters[i] += n
	}
}

// says gives the counters as they are read.
func (x *thing) says() []uint64 {
	now := make([]uint64, 4)
	for i, n := range x.counters {
		now[i] = n & (1<<x.bits - 1)
	}
	return now
}

// TestTallyNeverSpikes is the property: whatever becomes of a counter, what is added for a second
// is what happened in it, or nothing. Where counters begin anew and all of them pass their old
// values between two readings, is not known; the addition is then too small.
func TestTallyNeverSpikes(t *testing.T) {
	const perSecond = 200_000 * 1515 // the link's speed allows no more
	var wraps, resets, gaps, exact int
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 7))
		x := &thing{rng: rng, bits: []uint{32, 64}[rng.IntN(2)]}
		// Anywhere: bytes near the top of 32 bits, packets near it, or young. No packet has more
		// than a frame has room for, nor less than the least.
		for direction := range 2 {
			bytes := []uint64{rng.Uint64N(1 << 20), 1<<32 - rng.Uint64N(1<<30), 1<<38 + rng.Uint64N(1<<39)}[rng.IntN(3)]
			size := 60 + rng.Uint64N(1455)
			x.counters[direction], x.counters[2+direction] = bytes/size, bytes
		}
		tl := newTally(4, 4, bitsUnknown)
		var pending [4]uint64 // since the last reading: some come late
		seen := false
		anew := false
		for range 300 {
			before := x.says()
			x.step()
			for i := range pending {
				pending[i] += x.truth[i]
			}
			switch rng.IntN(40) {
			case 0: // driver loaded again in the middle of the second: some of it is in the new counters
				for i := range x.counters {
					x.counters[i] = x.truth[i] - rng.Uint64N(x.truth[i]+1)
				}
				anew = true
				resets++
			case 1:
				continue // no reading in this second
			}
			now := x.says()
			for i := range now {
				if !anew && now[i] < before[i] {
					wraps++
				}
			}
			was := append([]uint64(nil), tl.sum...)
			tl.add(now, func(i int) uint64 {
				if i < 2 {
					return 4 * perSecond / 60
				}
				return 4 * perSecond
			})
			for i := range now {
				added := tl.sum[i] - was[i]
				switch {
				case added > pending[i]:
					t.Fatalf("seed %d: counter %d of %d bits: added %d for %d that happened", seed, i, x.bits,
						added, pending[i])
				case !seen || anew:
				case added == pending[i]:
					exact++
				default:
					gaps++
					if added != 0 {
						t.Fatalf("seed %d: counter %d of %d bits: added %d for %d that happened", seed, i, x.bits,
							added, pending[i])
					}
				}
				pending[i] = 0
			}
			seen, anew = true, false
		}
	}
	// A test in which nothing goes back holds nothing, and an adder that adds nothing has no spikes
	// either. Only two counters that go through zero in the same second are left out, which none of
	// these do.
	if wraps < 100 || resets < 100 || exact < 400_000 || gaps > 0 {
		t.Errorf("%d wraps, %d resets, %d seconds exact, %d left out", wraps, resets, exact, gaps)
	}
	t.Logf("%d wraps, %d resets, %d seconds exact, %d left out", wraps, resets, exact, gaps)
}
