package datagram

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"
)

// remembered is window without a window: it keeps every number.
type remembered struct {
	seen    map[uint64]bool
	highest uint64
}

func (r *remembered) note(n uint64) arrival {
	switch {
	case len(r.seen) > 0 && n <= r.highest && r.highest-n >= windowBits:
		return late
	case r.seen[n]:
		return duplicate
	}
	first := len(r.seen) == 0
	r.seen[n] = true
	if first || n > r.highest {
		r.highest = n
		return inOrder
	}
	return reordered
}

func TestWindowAgreesWithMemory(t *testing.T) {
	for name, next := range map[string]func(r *rand.Rand, i int) uint64{
		"in order":        func(_ *rand.Rand, i int) uint64 { return uint64(i) },
		"swapped":         func(_ *rand.Rand, i int) uint64 { return uint64(i ^ 1) },
		"twice":           func(_ *rand.Rand, i int) uint64 { return uint64(i / 2) },
		"shuffled nearby": func(r *rand.Rand, i int) uint64 { return uint64(i + r.IntN(300)) },
		"words apart":     func(r *rand.Rand, i int) uint64 { return uint64(i*63 + r.IntN(130)) },
		"window's edge":   func(r *rand.Rand, i int) uint64 { return uint64(i + r.IntN(2)*(windowBits-2+r.IntN(4))) },
		"leaps":           func(r *rand.Rand, i int) uint64 { return uint64(i) * windowBits / 3 * uint64(r.IntN(3)+1) },
		"near the end":    func(r *rand.Rand, i int) uint64 { return math.MaxUint64 - uint64(r.IntN(windowBits)) },
	} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			w, m := &window{}, &remembered{seen: map[uint64]bool{}}
			for i := range 50000 {
				n := next(r, i)
				if got, want := w.note(n), m.note(n); got != want {
					t.Fatalf("number %d, the %d.: %d, want %d", n, i, got, want)
				}
			}
		})
	}
}

// FuzzWindow reads the input as steps from one number to the next.
func FuzzWindow(f *testing.F) {
	f.Add([]byte{1, 0, 1, 0, 0xff, 0xff})
	f.Add([]byte{0, 0x80, 1, 0, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, steps []byte) {
		w, m := &window{}, &remembered{seen: map[uint64]bool{}}
		n := uint64(1 << 32)
		for ; len(steps) >= 2; steps = steps[2:] {
			n += uint64(int64(int16(binary.LittleEndian.Uint16(steps))) * 5)
			if got, want := w.note(n), m.note(n); got != want {
				t.Fatalf("number %d: %d, want %d", n, got, want)
			}
		}
	})
}
