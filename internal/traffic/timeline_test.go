package traffic

import (
	"testing"
)

// TestTimelineIsBounded: intervals that a far side makes up do not fill the near side's memory.
func TestTimelineIsBounded(t *testing.T) {
	var emitted int
	line := timeline{spec: Spec{Test: Stream, Direction: Up}, emit: func(Interval) { emitted++ }}
	for i := range 3 * MaxIntervals {
		line.addFar(part{Measured: true, Index: i, End: 1, Bytes: 1})
	}
	if n := len(line.far); n > 2*MaxIntervals {
		t.Errorf("%d intervals kept", n)
	}
	line.addOwn(part{Measured: true, End: 1})
	if emitted != 1 {
		t.Errorf("%d intervals told of one", emitted)
	}
}
