package goal_test

import (
	"fmt"

	"github.com/linerate/linerate/internal/experiment/goal"
)

// More throughput, but only while the 99th percentile of the round trip stays below 5 ms.
func ExampleParse() {
	o, err := goal.Parse("throughput where p99_rtt<5ms")
	fmt.Println(o.Goal, len(o.Bounds), err)
	// Output: throughput 1 <nil>
}
