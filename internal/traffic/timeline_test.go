package traffic

import (
	"testing"
)

// TestTimelineIsBounded checks that intervals that a far end makes up do not fill the near end's
// memory.
func TestTimelineIsBounded(t *testing.T) {
	var emitted int
	line := newTimeline(Spec{Test: Stream, Direction: Up}, func(Interval) { emitted++ })
	for i := range 3 * maxIntervals {
		line.addFar(part{Measured: true, Index: i, End: 1, Bytes: 1})
	}
	if n := len(line.far); n > 2*maxIntervals {
		t.Errorf("%d intervals kept", n)
	}
	line.addOwn(part{Measured: true, End: 1})
	if emitted != 1 {
		t.Errorf("%d intervals emitted of one", emitted)
	}
}
