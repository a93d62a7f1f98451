package load

import (
	"fmt"
	"math/bits"
	"slices"
	"testing"
)

// TestPackKeepsEveryQuery arranges bursts of several lengths and compares the datagrams that the
// kernel makes of the messages with the queries.
func TestPackKeepsEveryQuery(t *testing.T) {
	w := &worker{split: true, memory: make([]byte, 0, mostBurst*100)}
	for i := range mostBurst {
		w.slots = append(w.slots, []byte(fmt.Sprintf("query %d of %*d", i, 1+i%5, i)))
		w.lengths[i] = len(w.slots[i])
	}
	for n := 1; n <= mostBurst; n++ {
		var want, got []string
		for i := range n {
			want = append(want, string(w.slots[i]))
		}
		messages := w.pack(n)
		var placed uint64
		for i := range messages {
			if placed&w.placed[i] != 0 || bits.OnesCount64(w.placed[i])*max(w.segment[i], 1) > len(w.packed[i]) {
				t.Errorf("message %d of %d has the queries %b", i, n, w.placed[i])
			}
			placed |= w.placed[i]
			rest, segment := w.packed[i], w.segment[i]
			if segment == 0 {
				segment = len(rest)
			}
			if len(rest)%segment != 0 {
				t.Errorf("a message of %d octets in segments of %d", len(rest), segment)
			}
			for ; len(rest) > 0; rest = rest[segment:] {
				got = append(got, string(rest[:segment]))
			}
		}
		if bits.OnesCount64(placed) != n {
			t.Errorf("%d queries are placed as %b", n, placed)
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Fatalf("%d queries become %q", n, got)
		}
	}
	if messages := w.pack(mostBurst); messages > 10 {
		t.Errorf("queries of a few lengths become %d messages", messages)
	}
	w.split = false
	if messages := w.pack(mostBurst); messages != mostBurst {
		t.Errorf("%d queries become %d messages without splitting", mostBurst, messages)
	}
}
