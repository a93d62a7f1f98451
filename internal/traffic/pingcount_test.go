package traffic

import (
	"strings"
	"testing"
	"time"
)

// A window without a ping has no loss and no rate, and says why.
func TestCountPings(t *testing.T) {
	spec := Spec{Duration: 100 * time.Millisecond, Gap: 20 * time.Millisecond}
	for _, tc := range []struct {
		sent, answered int64
		loss           float64
	}{{0, 0, -1}, {10, 10, 0}, {10, 5, 0.5}, {10, 12, 0}} {
		r := Result{}
		r.DurationSeconds = 1
		r.countPings(tc.sent, tc.answered, spec)
		if tc.sent == 0 {
			if r.LossRatio != nil || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "no ping was sent") {
				t.Errorf("no ping: loss %v, warnings %q", r.LossRatio, r.Warnings)
			}
			continue
		}
		if r.LossRatio == nil || *r.LossRatio != tc.loss || r.PacketsPerSec != float64(tc.sent) || len(r.Warnings) > 0 {
			t.Errorf("%d sent, %d answered: %+v", tc.sent, tc.answered, r)
		}
	}
}
