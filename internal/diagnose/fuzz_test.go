package diagnose_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/linerate/linerate/internal/diagnose"
	"github.com/linerate/linerate/internal/diagnose/evidence"
)

// FuzzJudge checks that for any report of two hosts the answer is not empty, most important first,
// and valid JSON. A far host may lie, so no combination of numbers may break the verdict.
func FuzzJudge(f *testing.F) {
	seeds, err := fixtures()
	if err != nil {
		f.Fatal(err)
	}
	for _, x := range seeds {
		b, err := json.Marshal(x.Case)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, 1.0, 1.0)
	}
	f.Fuzz(func(t *testing.T, b []byte, rate, window float64) {
		var c evidence.Case
		if json.Unmarshal(b, &c) != nil || math.IsNaN(rate) || math.IsInf(rate, 0) || math.IsNaN(window) ||
			math.IsInf(window, 0) {
			return
		}
		// Scaling two numbers reaches corners that mutated text seldom reaches.
		for i := range c.Runs {
			c.Runs[i].ThroughputBitsPerSec *= rate
			for j := range c.Runs[i].Ends.Local.TCP {
				c.Runs[i].Ends.Local.TCP[j].MaxSndWndBytes = int64(
					float64(c.Runs[i].Ends.Local.TCP[j].MaxSndWndBytes) * window)
			}
		}
		found := diagnose.Judge(c)
		if len(found) == 0 {
			t.Fatal("no finding")
		}
		if _, err := json.Marshal(found); err != nil {
			t.Error(err)
		}
		for _, x := range found {
			if x.Code == "" || x.Title == "" || x.Confidence < 0 || x.Confidence > 1 || x.Rejected == nil ||
				x.Evidence == nil || x.Remedy.Knobs == nil {
				t.Errorf("malformed finding: %+v", x)
			}
		}
	})
}
