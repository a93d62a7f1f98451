package stats_test

import (
	"fmt"

	"github.com/linerate/linerate/internal/base/stats"
)

// Eight pairs of segments, in Mb/s: without the change, and with it. The interval of the ratio lies
// above 1, so the change helps beyond doubt.
func ExampleSignedRank() {
	without := []float64{940, 938, 941, 935, 942, 939, 940, 937}
	with := []float64{981, 979, 985, 977, 983, 980, 978, 982}
	effect := stats.SignedRank(stats.PairedLogRatio(without, with), 0.95).Ratio()
	fmt.Printf("×%.3f (×%.3f to ×%.3f)\n", effect.Estimate, effect.Low, effect.High)
	// Output: ×1.044 (×1.042 to ×1.046)
}

// A plan of five looks shares the error of one: the more looks, the wider each interval.
func ExampleNewBoundary() {
	b, err := stats.NewBoundary([]int{6, 10, 16, 24, 32}, 0.95)
	fmt.Println(b.MaxPairs(), len(b.Looks), err)
	// Output: 32 5 <nil>
}
